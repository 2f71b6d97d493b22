//! `verify --ping` and `--tcp`: what the pods need beyond their gateways, queried from inside each.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use serde_json::Value;
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use crate::common::background::{Background, HANG, tcpdump, wait_until};
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, Run};

type Target = (String, String, bool);

/// The answers that a pod got: kind, target and whether it answered.
fn targets(run: &Run, pod: &Pod<'_>) -> Vec<Target> {
    let targets = run.pod(pod)["targets"].clone();
    let targets = targets.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |target: &Value| {
        let answered = target["reachable"] == true;
        assert_eq!(target["rtt_us"].is_u64(), answered, "{target}");
        (text(&target["kind"]), text(&target["target"]), answered)
    };
    targets.iter().map(one).collect()
}

fn target(kind: &str, target: &str, answered: bool) -> Target {
    (kind.to_owned(), target.to_owned(), answered)
}

/// A listener in the gateway's namespace.
fn listener(node: &Node, port: u16) -> Background {
    let listener = Background::start(
        node.gateway.exec("socat").args([
            "-d",
            "-d",
            &format!("TCP-LISTEN:{port},fork"),
            "OPEN:/dev/null",
        ]),
        node.temp().join(format!("socat-{port}")),
    );
    listener.wait_for("listening on");
    listener
}

#[test]
fn pings_and_tcp_connections_go_out_from_inside_the_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    node.snapshot();
    let _listener = listener(&node, 8080);
    let tcpdump = tcpdump(&node, "icmp[icmptype] == 8 or tcp[tcpflags] == 2");
    let words = format!(
        "verify --ping {GATEWAY4} --ping {GATEWAY6} --tcp {GATEWAY4}:8080 --tcp {GATEWAY4}:8081"
    );
    let run = node
        .netfix_json(&words)
        .exits(1)
        .errors(&[("target-unreachable", pod.name())])
        .names(
            "target-unreachable",
            pod.name(),
            &["tcp 10.88.0.1:8081", "ECONNREFUSED"],
        );
    let expected = [
        target("ping", GATEWAY4, true),
        target("ping", GATEWAY6, true),
        target("tcp", "10.88.0.1:8080", true),
        target("tcp", "10.88.0.1:8081", false),
    ];
    assert_eq!(targets(&run, &pod), expected, "{}", run.transcript());
    for what in ["ICMP echo request", "10.88.0.1.8080: Flags [S]"] {
        tcpdump.wait_for(what);
        let text = tcpdump.text();
        let is_it = |line: &str| line.contains(&pod.address()) && line.contains(what);
        assert!(text.lines().any(is_it), "{what}:\n{text}");
    }
}

#[test]
fn the_screen_has_a_row_for_each_target() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let _listener = listener(&node, 8080);
    let words = format!("--color never verify -v --tcp {GATEWAY4}:8080");
    node.netfix(&words).exits(0).stdout_has(&[
        &format!("{} ", pod.name()),
        "tcp 10.88.0.1:8080",
        "gateways and targets",
    ]);
}

#[test]
fn targets_that_do_not_answer_share_one_time_limit() {
    let node = Node::new();
    let pods = node.simple_pods(5);
    node.snapshot();
    let begin = Instant::now();
    let run = node
        .netfix_json(
            "verify --answer-wait 2s --ping 10.88.0.99 --tcp 10.88.0.99:80 --ping 10.88.0.98",
        )
        .exits(1);
    assert!(begin.elapsed().as_secs() < 8, "{}", run.transcript());
    for pod in &pods {
        assert_eq!(run.pod(pod)["state"], "unreachable");
        assert!(targets(&run, pod).iter().all(|(.., answered)| !answered));
    }
}

#[test]
fn a_pod_that_never_had_a_network_is_not_asked() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let empty = node.pod("batch");
    node.snapshot();
    let run = node
        .netfix_json(&format!("verify --ping {GATEWAY4}"))
        .exits(0)
        .errors(&[]);
    assert_eq!(targets(&run, &pod), [target("ping", GATEWAY4, true)]);
    assert_eq!(targets(&run, &empty), []);
}

/// A process of the pod with a file system of its own, whose `/etc` has these files.
struct Rooted {
    process: Child,
}

impl Rooted {
    fn start(node: &Node, pod: &Pod<'_>, prepare: &str) -> Self {
        let ready = node.temp().join("ready");
        let script = format!(
            "mount -t tmpfs none /mnt && mkdir /mnt/etc && cp /bin/busybox /mnt && cd /mnt/etc && {prepare} && \
             touch {} && exec chroot /mnt /busybox sleep 600",
            ready.display()
        );
        let process = pod
            .ns
            .exec("unshare")
            .args(["--mount", "sh", "-c", &script])
            .spawn()
            .expect("a process in the pod");
        let rooted = Self { process };
        assert!(wait_until(|| {
            let root = format!("/proc/{}/root", rooted.process.id());
            ready.exists() && Path::new(&root).join("busybox").exists()
        }));
        rooted
    }
}

impl Drop for Rooted {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_name_is_looked_up_in_the_pods_hosts_file() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let nameless = node.pod("api").simple();
    node.snapshot();
    // A link out of the pod's root leads nowhere, although the machine has such a file.
    let _rooted = Rooted::start(
        &node,
        &pod,
        &format!("echo '{GATEWAY4} gate.shop' >hosts && ln -s ../../../../etc/fstab resolv.conf"),
    );
    let run = node
        .netfix_json("verify --ping gate.shop --ping other.shop --answer-wait 30s")
        .exits(1)
        .names(
            "target-unreachable",
            nameless.name(),
            &["ping gate.shop", "no process"],
        )
        .names(
            "target-unreachable",
            pod.name(),
            &["ping other.shop", "ENOENT"],
        );
    let expected = [
        target("ping", "gate.shop", true),
        target("ping", "other.shop", false),
    ];
    assert_eq!(targets(&run, &pod), expected, "{}", run.transcript());
}

#[test]
fn a_device_in_place_of_the_pods_files_is_never_opened() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let _rooted = Rooted::start(&node, &pod, "mkfifo hosts && mknod resolv.conf c 10 130");
    node.netfix_json("verify --ping gate.shop --answer-wait 3s")
        .exits(1)
        .names(
            "target-unreachable",
            pod.name(),
            &["ping gate.shop", "/etc/resolv.conf is not a file"],
        );
}

/// Answers questions for `A` of one name; for all others it answers that the name does not exist. An empty datagram ends it.
fn answer_questions(socket: &UdpSocket, name: &str, address: [u8; 4]) -> Vec<String> {
    let mut questions = Vec::new();
    let mut buffer = [0; 1500];
    while let Ok((length @ 1.., from)) = socket.recv_from(&mut buffer) {
        let query = Packet::parse(&buffer[..length]).expect("a DNS query");
        let question = query.questions[0].clone();
        let this = question.qname.to_string();
        let mut answer = Packet::new_reply(query.id());
        answer.set_flags(PacketFlag::RECURSION_AVAILABLE);
        if this != name {
            *answer.rcode_mut() = RCODE::NameError;
        } else if question.qtype == QTYPE::TYPE(TYPE::A) {
            let address = RData::A(A::from(std::net::Ipv4Addr::from(address)));
            let record = ResourceRecord::new(question.qname.clone(), CLASS::IN, 5, address);
            answer.answers.push(record);
        }
        answer.questions.push(question);
        let bytes = answer.build_bytes_vec().expect("a DNS answer");
        socket.send_to(&bytes, from).expect("send");
        questions.push(format!("{this} from {}", from.ip()));
    }
    questions
}

#[test]
fn a_name_is_asked_of_the_pods_name_server_with_its_search_list() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let socket = node
        .gateway
        .enter(|| UdpSocket::bind((GATEWAY4, 53)).expect("port 53"));
    socket.set_read_timeout(Some(HANG)).expect("a time limit");
    let server =
        std::thread::spawn(move || answer_questions(&socket, "db.shop.cluster", [10, 88, 0, 1]));
    let resolver = format!(
        "printf 'nameserver {GATEWAY4}\\nsearch x.cluster shop.cluster\\noptions ndots:5\\n' >resolv.conf"
    );
    let _rooted = Rooted::start(&node, &pod, &resolver);
    let _listener = listener(&node, 5432);
    let run = node
        .netfix_json("verify --tcp db:5432 --ping nowhere")
        .exits(1)
        .names(
            "target-unreachable",
            pod.name(),
            &["ping nowhere", "do not know"],
        );
    let expected = [
        target("ping", "nowhere", false),
        target("tcp", "db:5432", true),
    ];
    assert_eq!(targets(&run, &pod), expected, "{}", run.transcript());
    let end = || UdpSocket::bind("0.0.0.0:0")?.send_to(&[], (GATEWAY4, 53));
    pod.ns.enter(end).expect("the end of the server");
    let questions = server.join().expect("the name server");
    let first = format!("db.x.cluster from {}", pod.address());
    assert!(questions.contains(&first), "{questions:?}");
}

//! What programs have on a link and lose with it: it is named before the loss, and after it as long as a program counts on it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::background::Background;
use crate::common::namespace::Namespace;
use crate::common::{Node, Pod, ReportedProblem, Run};

const CODE: &str = "socket-lost";
const PROGRAM: &str = include_str!("../common/sockets.py");

/// A program in a namespace, with sockets on a link; it is killed in the end.
struct Holder(Background);

impl Holder {
    fn new(node: &Node, ns: &Namespace, words: &str) -> Self {
        let mut command = ns.exec("python3");
        command.args(["-c", PROGRAM]);
        command.args(words.split_whitespace());
        let name = words.replace([' ', ':', '.'], "-");
        let file = node
            .temp()
            .join(format!("{}-{}", ns.name(), &name[..name.len().min(40)]));
        let program = Background::start(&mut command, file);
        program.wait_for("ready");
        Self(program)
    }

    fn in_pod(node: &Node, pod: &Pod<'_>, words: &str) -> Self {
        Self::new(node, &pod.ns, words)
    }

    /// As a program is named.
    fn title(&self) -> String {
        format!("(pid {})", self.0.id())
    }

    fn signal(&self, signal: Signal, answer: &str) {
        let id = i32::try_from(self.0.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("a program that runs");
        self.0.wait_for(answer);
    }

    /// Leaves the groups and joins them again, and binds its other sockets again.
    fn joins_again(&self) {
        self.signal(Signal::SIGUSR1, "again");
    }

    fn leaves(&self) {
        self.signal(Signal::SIGUSR2, "left");
    }
}

/// The one finding about sockets, of this severity and object, with these words.
#[track_caller]
fn names(run: &Run, severity: &str, object: &str, words: &[&str]) -> ReportedProblem {
    let mut found = run.coded(CODE);
    assert_eq!(found.len(), 1, "{found:#?}\n{}", run.transcript());
    let one = found.remove(0);
    assert_eq!(
        (one.severity.as_str(), one.object.as_str()),
        (severity, object)
    );
    for word in words {
        assert!(one.has(word), "{word:?}: {one:?}");
    }
    one
}

#[track_caller]
fn is_calm(run: &Run) {
    assert_eq!(run.coded(CODE), [], "{}", run.transcript());
}

#[test]
fn a_membership_is_named_until_the_program_has_joined_again() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let holder = Holder::in_pod(&node, &pods[0], "eth0 group:239.7.7.7 group:ff15::85:5");
    let words = ["239.7.7.7 and ff15::85:5", "python3", &holder.title()];
    names(&node.snapshot(), "info", "eth0", &words);
    let run = node.netfix_json("check").exits(0);
    let one = names(&run, "info", "eth0", &words);
    assert_eq!(one.pod.as_deref(), Some(pods[0].name()));
    is_calm(&node.netfix("check").exits(0));
    node.lose_and_reload();
    let run = node.restore();
    names(&run, "warning", "eth0", &words);
    assert!(
        run.out.contains("programs of 1 pod must be restarted"),
        "{}",
        run.transcript()
    );
    // Neither a second restore nor a snapshot makes it well.
    let run = node.restore().lacks("nothing to do");
    names(&run, "warning", "eth0", &words);
    let both = node.snapshot().coded(CODE);
    assert!(
        both.iter()
            .any(|one| one.severity == "warning" && one.has("239.7.7.7")),
        "{both:#?}"
    );
    names(&node.netfix("check").exits(1), "warning", "eth0", &words);
    holder.joins_again();
    is_calm(&node.restore());
    is_calm(&node.netfix("check").exits(0));
}

#[test]
fn a_membership_that_a_program_gave_up_is_no_loss() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let left = Holder::in_pod(&node, &pod, "eth0 group:239.7.7.7 group:ff15::7");
    let ended = Holder::in_pod(&node, &pod, "eth0 group:239.7.7.8 packet");
    let groups = |run: &Run| {
        run.coded(CODE)
            .iter()
            .filter(|one| one.has("group"))
            .count()
    };
    assert_eq!(groups(&node.snapshot()), 1);
    left.leaves();
    node.lose_and_reload();
    drop(ended);
    is_calm(&node.restore());
    is_calm(&node.netfix("check").exits(0));
    is_calm(&node.snapshot());
}

#[test]
fn a_membership_that_another_program_brought_back_serves_both() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let first = Holder::in_pod(&node, &pod, "eth0 group:239.7.7.7");
    let second = Holder::in_pod(&node, &pod, "eth0 group:239.7.7.7 ");
    let run = node.snapshot();
    names(&run, "info", "eth0", &[&first.title(), &second.title()]);
    node.lose_and_reload();
    names(&node.restore(), "warning", "eth0", &[&second.title()]);
    second.joins_again();
    is_calm(&node.restore());
}

#[test]
fn what_the_kernel_joins_itself_is_no_program() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ns.set_sysctl("ipv6/conf/eth0/forwarding", "1");
    pod.ip("addr add 239.9.9.9/32 dev eth0 autojoin");
    pod.ip("link add vx0 type vxlan id 9 dev eth0 group 239.8.8.8 dstport 4789");
    pod.ip("link set vx0 up");
    assert!(pod.ip("maddr show dev eth0").contains("239.8.8.8"));
    let run = node.netfix("snapshot");
    is_calm(&run);
}

#[test]
fn a_packet_socket_is_named_also_where_no_snapshot_has_it() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let recorded = Holder::in_pod(&node, &pod, "eth0 packet any-packet");
    names(
        &node.snapshot(),
        "info",
        "eth0",
        &["packet socket", &recorded.title()],
    );
    node.lose_and_reload();
    names(
        &node.restore(),
        "warning",
        "eth0",
        &["packet socket", &recorded.title()],
    );
    names(
        &node.netfix("check").exits(1),
        "warning",
        "eth0",
        &[&recorded.title()],
    );
    recorded.joins_again();
    is_calm(&node.restore());
    is_calm(&node.netfix("check").exits(0));
    drop(recorded);
    node.snapshot();
    let late = Holder::in_pod(&node, &pod, "eth0 packet");
    node.lose_and_reload();
    names(
        &node.restore(),
        "warning",
        "packet socket",
        &[&late.title()],
    );
    names(
        &node.netfix("check").exits(1),
        "warning",
        "packet socket",
        &[&late.title()],
    );
}

#[test]
fn a_socket_that_a_program_of_the_host_has_in_a_pod_is_named() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    // In the pod's namespace only while it opens its sockets.
    let script = format!(
        "import ctypes, os, sys; enter = lambda ns: ctypes.CDLL(None).setns(ns, 0x40000000)\n\
         own = os.open('/proc/self/ns/net', 0); enter(os.open('{}', 0))\n\
         sys.argv = ['', 'eth0', 'packet', 'group:239.7.7.7']\n{}",
        pod.ns.path().display(),
        PROGRAM.replace("signal.signal(signal.SIGUSR1, again)", "enter(own)"),
    );
    let mut command = node.ns.exec("python3");
    command.args(["-c", &script]);
    let agent = Background::start(&mut command, node.temp().join("agent"));
    agent.wait_for("ready");
    let title = format!("(pid {})", agent.id());
    let named = |run: &Run| {
        let found = run.coded(CODE);
        assert_eq!(found.len(), 2, "{}", run.transcript());
        assert!(found.iter().all(|one| one.has(&title)), "{found:#?}");
    };
    named(&node.snapshot());
    node.lose_and_reload();
    named(&node.restore());
}

#[test]
fn the_programs_of_the_host_are_named_too() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.ns
        .ip("link add link eth0 name mv7 address 02:00:00:88:07:07 type macvlan mode bridge");
    node.ns.ip("link set mv7 up");
    node.ns.ip("link add apart type veth peer name apart1");
    node.ns.ip("link set apart up");
    let nic = Holder::new(&node, &node.ns, "eth0 packet group:224.0.0.18");
    let upper = Holder::new(&node, &node.ns, "mv7 group:ff02::5");
    let _apart = Holder::new(&node, &node.ns, "apart packet group:239.1.1.1");
    let both = |run: &Run, severity: &str| {
        let found = run.coded(CODE);
        let of = |object: &str, word: &str, title: &str| {
            let is_it = |one: &&ReportedProblem| {
                one.object == object && one.pod.is_none() && one.has(word) && one.has(title)
            };
            let one = found.iter().find(is_it);
            let one = one.unwrap_or_else(|| panic!("{object} {word}: {}", run.transcript()));
            assert_eq!(one.severity, severity);
        };
        of("eth0", "224.0.0.18", &nic.title());
        of("eth0", "packet socket", &nic.title());
        of("mv7", "ff02::5", &upper.title());
        assert_eq!(found.len(), 3, "{}", run.transcript());
    };
    both(&node.netfix("snapshot").exits(0), "info");
    node.lose_and_reload();
    let run = node.netfix("restore").exits(0);
    both(&run, "warning");
    assert!(
        run.out.contains("programs of the host must be restarted"),
        "{}",
        run.transcript()
    );
    both(&node.netfix("check").exits(1), "warning");
    nic.joins_again();
    upper.joins_again();
    is_calm(&node.restore());
}

#[test]
fn a_multicast_router_without_its_link_is_named_until_it_has_it_again() {
    let node = Node::new();
    let pod = node.pod("router").simple();
    let router = Holder::in_pod(&node, &pod, "eth0 router");
    let words = ["routes multicast", &router.title()];
    names(&node.snapshot(), "info", "eth0", &words);
    node.lose_and_reload();
    names(
        &node.restore(),
        "warning",
        "eth0",
        &["routed multicast", &router.title()],
    );
    router.joins_again();
    is_calm(&node.restore());
}

/// A container has its own `/dev`: its node of the device is made by mknod(1).
#[test]
fn an_open_character_device_is_known_by_its_numbers() {
    let node = Node::new();
    let pod = node.pod("vm");
    let add = format!(
        "link add link eth0 name eth0 netns {} type macvtap",
        pod.name()
    );
    node.ns.ip(&add);
    pod.ip("link set eth0 up");
    pod.ip("addr add 10.88.3.9/16 dev eth0");
    let device = node.temp().join("vhost-net-tap");
    let make = format!(
        "mknod {} c $(cat /sys/class/net/eth0/tap*/dev | tr : ' ')",
        device.display()
    );
    let result = pod.ns.exec("sh").args(["-c", &make]).status();
    assert!(result.is_ok_and(|status| status.success()), "{make}");
    let mut command = pod.ns.exec("python3");
    let script = format!(
        "import signal; f = open('{}', 'r+b', 0); print('ready', flush=True); signal.pause()",
        device.display()
    );
    command.args(["-c", &script]);
    let vm = Background::start(&mut command, node.temp().join("vm"));
    vm.wait_for("ready");
    let title = format!("(pid {})", vm.id());
    let words = ["character device", &title];
    names(&node.snapshot(), "info", "eth0", &words);
    node.lose_and_reload();
    names(&node.restore(), "warning", "eth0", &words);
    drop(vm);
    is_calm(&node.restore());
}

#[test]
fn thousands_of_memberships_of_a_tenant_are_one_line() {
    let node = Node::new();
    let pod = node.pod("tenant").simple();
    pod.ns.set_sysctl("ipv4/igmp_max_memberships", "10000");
    let groups: Vec<String> = (0..2000)
        .map(|at| format!("group:239.1.{}.{}", at / 250, at % 250))
        .collect();
    let holder = Holder::in_pod(&node, &pod, &format!("eth0 {}", groups.join(" ")));
    let begun = std::time::Instant::now();
    let one = names(&node.snapshot(), "info", "eth0", &[&holder.title(), "more"]);
    assert!(one.message.len() < 300, "{one:?}");
    node.lose_and_reload();
    names(
        &node.restore(),
        "warning",
        "eth0",
        &[&holder.title(), "more"],
    );
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let size = std::fs::metadata(node.checkpoint_of(&pod))
        .expect("a checkpoint")
        .len();
    assert!(size < 64 << 10, "{size}");
}

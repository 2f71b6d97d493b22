//! A container runtime that cannot be queried, or whose answer cannot be true: netfix concludes and changes nothing.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::runtimes::{
    Cgroup, Container, FakeCri, FakeDocker, Sandbox, Script, Step, auto, dead_socket, id, unique_id,
};
use crate::common::{Node, Pod, ReportedProblem, Run};

/// The time limit of a command: a runtime that has identified itself may be silent for 8 s.
const LIMIT: Duration = Duration::from_secs(30);

/// A node with an earlier snapshot, every file of which stays.
struct Refusals<'n> {
    node: &'n Node,
    files: Vec<(PathBuf, String)>,
}

impl<'n> Refusals<'n> {
    fn begin(node: &'n Node) -> Self {
        node.snapshot();
        let files = node.state_files();
        Self { node, files }
    }

    /// `netfix snapshot WORDS` refuses in time with `object` and `why`.
    fn refuses(&self, words: &str, object: &str, why: &str) {
        let netfix = || self.node.netfix_json(&format!("snapshot {words}"));
        self.refuses_each(netfix, &[(object, why)]);
    }

    /// One of a few attempts may be slow on a busy machine.
    fn refuses_each(&self, netfix: impl Fn() -> Run, reported: &[(&str, &str)]) {
        let is_soon = || {
            let started = Instant::now();
            let run = netfix().exits(4);
            let took = started.elapsed();
            let problems = run.coded("runtime-unreachable");
            for (object, why) in reported {
                let has_reason = |problem: &ReportedProblem| {
                    let message = &problem.message;
                    problem.object.contains(object)
                        && message.contains(why)
                        && (message.contains("--runtime none")
                            || message.contains("--runtime-endpoint"))
                };
                assert!(
                    problems.iter().any(has_reason),
                    "no message has {why:?} about {object}\n{}",
                    run.transcript()
                );
            }
            assert_eq!(
                self.files,
                self.node.state_files(),
                "the state folder was changed\n{}",
                run.transcript()
            );
            took < LIMIT
        };
        assert!(
            (0..3).any(|_| is_soon()),
            "netfix took longer than {LIMIT:?} each time"
        );
    }

    /// What the messages say helps.
    fn end(self) {
        self.node.netfix("snapshot --runtime none").exits(0);
    }
}

/// One refusal.
fn assert_refused_by(node: &Node, netfix: impl Fn() -> Run, reported: &[(&str, &str)]) {
    let refusals = Refusals::begin(node);
    refusals.refuses_each(netfix, reported);
    refusals.end();
}

fn socket(node: &Node) -> PathBuf {
    node.temp().join("runtime.sock")
}

#[test]
fn a_runtime_that_accepts_connections_and_never_answers() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    let _listener = UnixListener::bind(socket(&node)).expect("a socket");
    let refusals = Refusals::begin(&node);
    for which in ["auto", "docker"] {
        let words = auto(&socket(&node)).replace("auto", which);
        refusals.refuses(&words, "runtime.sock", "no answer");
    }
    refusals.end();
}

/// How a runtime that knows the pods may fail, each with the reason that netfix reports.
fn failing() -> [(Script, &'static str); 4] {
    let fails_at = |step| Script {
        fails_at: Some((step, "disk on fire")),
        ..Script::default()
    };
    let hangs = Script {
        hangs_at: Some(Step::Status),
        ..Script::default()
    };
    let dies = Script {
        dies_after: Some(2),
        ..Script::default()
    };
    [
        (hangs, "PodSandboxStatus"),
        (dies, "ECONNREFUSED"),
        (fails_at(Step::Version), "disk on fire"),
        (fails_at(Step::Status), "disk on fire"),
    ]
}

#[test]
fn a_runtime_that_hangs_when_inspecting_a_pod_dies_halfway_or_answers_with_an_error() {
    let node = Node::new();
    let pods = node.simple_pods(4);
    let refusals = Refusals::begin(&node);
    for (script, why) in failing() {
        let sandboxes = pods.iter().zip(1..);
        let script = Script {
            sandboxes: sandboxes
                .map(|(pod, number)| Sandbox::of(pod, "web", number))
                .collect(),
            ..script
        };
        let runtime = FakeCri::start(&socket(&node), script);
        let path = runtime.socket.display().to_string();
        refusals.refuses(&auto(&runtime.socket), &path, why);
    }
    refusals.end();
}

#[test]
fn a_slow_runtime_has_time_while_it_answers() {
    let node = Node::new();
    let pods = node.simple_pods(5);
    let sandboxes = pods.iter().zip(1..);
    let script = Script {
        sandboxes: sandboxes
            .map(|(pod, number)| Sandbox::of(pod, "web", number))
            .collect(),
        slow: Some(Duration::from_secs(2)),
        ..Script::default()
    };
    let runtime = FakeCri::start(&socket(&node), script);
    let run = node.netfix_json(&format!("snapshot {}", auto(&runtime.socket)));
    let run = run.exits(0);
    assert_eq!(run.pod(&pods[4])["source"], "cri", "{}", run.transcript());
}

#[test]
fn a_dead_runtime_whose_socket_is_left() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    dead_socket(&socket(&node));
    let refusals = Refusals::begin(&node);
    for which in ["auto", "docker"] {
        let words = auto(&socket(&node)).replace("auto", which);
        refusals.refuses(&words, "runtime.sock", "ECONNREFUSED");
    }
    refusals.end();
}

#[test]
fn a_runtime_whose_socket_is_not_at_the_given_path() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let refusals = Refusals::begin(&node);
    for which in ["auto", "docker"] {
        let words = auto(Path::new("/nowhere/runtime.sock")).replace("auto", which);
        refusals.refuses(&words, "/nowhere/runtime.sock", "ENOENT");
    }
    refusals.end();
}

#[test]
fn a_server_with_neither_protocol() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let runtime = FakeCri::start(
        &socket(&node),
        Script {
            services: Some(Vec::new()),
            ..Script::default()
        },
    );
    let refusals = Refusals::begin(&node);
    refusals.refuses(&auto(&runtime.socket), "runtime.sock", "neither");
    let words = auto(&runtime.socket).replace("auto", "cri");
    refusals.refuses(&words, "runtime.sock", "offers no CRI");
    refusals.end();
}

#[test]
fn docker_that_answers_with_an_error_or_hangs() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let failing = FakeDocker::failing(&node.temp().join("failing.sock"));
    let refusals = Refusals::begin(&node);
    refusals.refuses(&auto(&failing.socket), "failing.sock", "500");
    let web = Container {
        id: id(1),
        pid: pod.process_id(),
        ..Container::default()
    };
    let hanging = FakeDocker::hanging(&node.temp().join("hanging.sock"), vec![web]);
    refusals.refuses(&auto(&hanging.socket), "hanging.sock", "GET /containers/");
    refusals.end();
}

/// An engine of Docker whose list of containers has no end; the most that it could send to one client.
fn endless(socket: &Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(socket).expect("a socket");
    let most = Arc::new(AtomicUsize::new(0));
    let sent_at_most = most.clone();
    let serve = move |stream: UnixStream| {
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        while stream.read_line(&mut request).is_ok_and(|read| read > 2) {}
        let head = "HTTP/1.1 200 OK\r\nServer: Docker/20.10.24 (linux)\r\n";
        let stream = stream.get_mut();
        if request.starts_with("GET /_ping") {
            let _ = write!(stream, "{head}Content-Length: 2\r\n\r\nOK");
            return;
        }
        let _ = write!(stream, "{head}\r\n[");
        let mut sent = 0;
        while stream.write_all(&[b' '; 4096]).is_ok() {
            sent += 4096;
        }
        sent_at_most.fetch_max(sent, Ordering::SeqCst);
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream);
        }
    });
    most
}

#[test]
fn docker_whose_list_has_no_end() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let sent = endless(&socket(&node));
    let path = socket(&node).display().to_string();
    let refusals = Refusals::begin(&node);
    refusals.refuses(&auto(&socket(&node)), &path, "length limit exceeded");
    refusals.end();
    let sent = sent.load(Ordering::SeqCst) >> 20;
    assert!((16..18).contains(&sent), "{sent} MiB were read");
}

#[test]
fn all_silent_runtimes_are_reported_within_the_time_of_one() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let good = FakeCri::start(
        &node.temp().join("good.sock"),
        Script {
            sandboxes: vec![Sandbox::of(&pods[0], "web", 1)],
            ..Script::default()
        },
    );
    let (dead, silent) = (
        node.temp().join("dead.sock"),
        node.temp().join("silent.sock"),
    );
    dead_socket(&dead);
    let _listener = UnixListener::bind(&silent).expect("a socket");
    let sockets = [
        ("/run/containerd/containerd.sock", good.socket.as_path()),
        ("/run/crio/crio.sock", dead.as_path()),
        ("/run/docker.sock", silent.as_path()),
    ];
    let netfix = || node.netfix_with_sockets(&sockets, "snapshot --runtime auto -o json");
    let reported = [
        ("/run/crio/crio.sock", "ECONNREFUSED"),
        (
            "/run/crio/crio.sock",
            "--runtime-endpoint unix:///run/containerd/containerd.sock",
        ),
        ("/run/docker.sock", "no answer"),
    ];
    assert_refused_by(&node, netfix, &reported);
}

#[test]
fn no_runtime_although_the_user_requires_one() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let refusals = Refusals::begin(&node);
    for (which, path) in [
        ("cri", "/run/containerd/containerd.sock"),
        ("docker", "/run/docker.sock"),
    ] {
        let words = format!("snapshot --runtime {which} -o json");
        let netfix = || node.netfix_with_sockets(&[], &words);
        refusals.refuses_each(netfix, &[(which, path)]);
    }
    refusals.end();
    node.netfix_with_sockets(&[], "snapshot --runtime auto")
        .exits(0);
}

#[test]
fn a_runtime_that_returns_in_time_is_queried_again() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    dead_socket(&socket(&node));
    let mut command =
        node.netfix_command(&[], &format!("snapshot {} -o json", auto(&socket(&node))));
    let netfix = std::thread::spawn(move || Run::of(&mut command));
    std::thread::sleep(Duration::from_secs(1));
    std::fs::remove_file(socket(&node)).expect("the dead socket goes");
    let script = Script {
        sandboxes: vec![Sandbox::of(&pods[0], "web-0", 1)],
        ..Script::default()
    };
    let _runtime = FakeCri::start(&socket(&node), script);
    let run = netfix.join().expect("netfix ran");
    assert_eq!(run.exits(0).pod(&pods[0])["name"], "web-0");
}

#[test]
fn a_runtime_that_lists_no_pod_while_pods_run() {
    let node = Node::new();
    let pods = [
        node.pod("web").simple().with_process(),
        node.pod("db").simple().with_process(),
    ];
    let mounted_only = node.pod("tool").simple();
    let runtime = FakeCri::start(&socket(&node), Script::default());
    let refusals = Refusals::begin(&node);
    for pod in &pods {
        refusals.refuses(&auto(&runtime.socket), "runtime.sock", pod.name());
    }
    assert!(runtime.lists() >= 4, "it was not queried again");
    let run = node
        .netfix(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(4);
    run.lacks(mounted_only.name());
    let docker = FakeDocker::start(&node.temp().join("docker.sock"), Vec::new());
    refusals.refuses(&auto(&docker.socket), "docker.sock", pods[0].name());
    refusals.end();
}

#[test]
fn a_runtime_that_lists_no_pod_is_believed_without_contradiction() {
    let node = Node::new();
    let on_host = node.pod("web").simple().with_process();
    let without_process = node.pod("tool").simple();
    let without_link = node.pod("bare").with_process();
    let runtime = FakeCri::start(&socket(&node), Script::default());
    for pod in [&without_process, &without_link] {
        let words = format!("snapshot {} --pod {}", auto(&runtime.socket), pod.name());
        node.netfix(&words).exits(0);
    }
    node.netfix(&format!(
        "snapshot {} --pod {}",
        auto(&runtime.socket),
        on_host.name()
    ))
    .exits(4);
}

#[test]
fn a_runtime_that_lists_its_pods_a_moment_later_is_believed() {
    let node = Node::new();
    let pod = node.pod("web").simple().with_process();
    let sandbox = Sandbox::of(&pod, "web-0", 1);
    let hook = move |calls: usize, sandboxes: &mut Vec<Sandbox>| {
        if calls == 1 {
            sandboxes.push(sandbox.clone());
        }
    };
    let script = Script {
        hook: Some(Box::new(hook)),
        ..Script::default()
    };
    let runtime = FakeCri::start(&socket(&node), script);
    let run = node
        .netfix_json(&format!("snapshot {}", auto(&runtime.socket)))
        .exits(0);
    assert_eq!(run.pod(&pod)["name"], "web-0", "{}", run.transcript());
}

/// A machine as Docker's packages install it: containerd has no CRI, and Docker manages its containers.
fn with_dumb_containerd(node: &Node, known: Vec<Container>, words: &str) -> Run {
    let containerd = FakeCri::start(
        &node.temp().join("containerd.sock"),
        Script {
            services: Some(Vec::new()),
            ..Script::default()
        },
    );
    let docker = FakeDocker::start(&node.temp().join("docker.sock"), known);
    let sockets = [
        (
            "/run/containerd/containerd.sock",
            containerd.socket.as_path(),
        ),
        ("/run/docker.sock", docker.socket.as_path()),
    ];
    node.netfix_with_sockets(
        &sockets,
        &format!("snapshot --runtime auto {words} -o json"),
    )
}

fn container(pod: &Pod<'_>, number: u8) -> Container {
    Container {
        id: id(number),
        name: "web".to_owned(),
        pid: pod.process_id(),
        ..Container::default()
    }
}

#[test]
fn a_containerd_without_cri_hides_nothing_if_every_container_is_known() {
    let node = Node::new();
    let known = node.pod("web").simple().with_process();
    let by_hand = node.pod("tool").simple().with_process();
    let run = with_dumb_containerd(&node, vec![container(&known, 1)], "").exits(0);
    assert_eq!(run.pod(&known)["source"], "docker", "{}", run.transcript());
    assert_eq!(run.pod(&by_hand)["source"], "mount", "{}", run.transcript());
}

#[test]
fn a_containerd_without_cri_may_hide_an_unknown_container() {
    let node = Node::new();
    let known = node.pod("web").simple().with_process();
    let hidden = node.pod("db").simple().with_process();
    let cgroup = Cgroup::new(&format!("default/{}", unique_id()));
    cgroup.take(hidden.process_id());
    let netfix = || with_dumb_containerd(&node, vec![container(&known, 1)], "");
    assert_refused_by(
        &node,
        netfix,
        &[("/run/containerd/containerd.sock", hidden.name())],
    );
    let words = format!("--pod {}", &id(1)[..12]);
    with_dumb_containerd(&node, vec![container(&known, 1)], &words).exits(0);
}

//! Sockets on which no process listens, beside a runtime that answers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::runtimes::{FakeCri, Sandbox, Script, dead_socket};
use crate::common::{Node, Pod, Run};

const CONTAINERD: &str = "/run/containerd/containerd.sock";
const DOCKER: &str = "/run/docker.sock";
const ADVICE: &str = "--runtime-endpoint unix:///run/containerd/containerd.sock";

/// A containerd that reports these pods, and a Docker that is not running.
struct Runtimes<'n> {
    node: &'n Node,
    containerd: FakeCri,
    docker: PathBuf,
}

impl<'n> Runtimes<'n> {
    fn new(node: &'n Node, reported: &[Pod<'n>]) -> Self {
        let sandbox = |(pod, number)| Sandbox::of(pod, "web-0", number);
        let script = Script {
            sandboxes: reported.iter().zip(1..).map(sandbox).collect(),
            ..Script::default()
        };
        let docker = node.temp().join("dead.sock");
        dead_socket(&docker);
        Self {
            node,
            containerd: FakeCri::start(&node.temp().join("good.sock"), script),
            docker,
        }
    }

    fn netfix(&self, words: &str) -> Run {
        let sockets = [
            (CONTAINERD, &*self.containerd.socket),
            (DOCKER, &self.docker),
        ];
        let words = format!("{words} --runtime auto -o json");
        self.node.netfix_with_sockets(&sockets, &words)
    }

    /// The same where kubelet is configured for one of the two.
    fn netfix_with_kubelet(&self, endpoint: &str, words: &str) -> Run {
        let sockets = [
            (CONTAINERD, &*self.containerd.socket),
            (DOCKER, &self.docker),
        ];
        let words = format!("{words} --runtime auto -o json");
        self.node.netfix_with_kubelet(endpoint, &sockets, &words)
    }
}

fn assert_refused(run: &Run) {
    let problems = run.coded("runtime-unreachable");
    assert_eq!(problems.len(), 1, "{}", run.transcript());
    let message = &problems[0].message;
    assert!(
        message.contains("ECONNREFUSED")
            && message.contains(ADVICE)
            && !message.contains("--runtime none"),
        "{message}"
    );
}

#[test]
fn a_note_if_the_other_runtime_reports_every_pod() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let runtimes = Runtimes::new(&node, &pods);
    let is_soon = || {
        let begin = Instant::now();
        let run = runtimes.netfix("snapshot").exits(0);
        let took = begin.elapsed();
        assert_eq!(run.pod(&pods[0])["name"], "web-0", "{}", run.transcript());
        run.names("runtime-unreachable", "", &["ECONNREFUSED", "skipped"]);
        took < Duration::from_secs(2)
    };
    assert!((0..3).any(|_| is_soon()), "the dead socket was tried again");
    // Its namespace is on no link of the host.
    let _router = node.pod("router").with_process();
    let run = runtimes.netfix("check").exits(0);
    let problems = run.coded("runtime-unreachable");
    assert_eq!(problems[0].severity, "info", "{}", run.transcript());
    node.lose_and_reload();
    runtimes.netfix("restore").exits(0);
    for pod in &pods {
        assert!(pod.has_eth0());
    }
}

#[test]
fn a_refusal_if_a_pod_may_be_of_the_dead_one() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let runtimes = Runtimes::new(&node, &pods[..1]);
    let run = runtimes.netfix("snapshot").exits(4);
    assert_refused(&run);
    run.names("runtime-unreachable", "", &[pods[1].name()]);
    let run = runtimes.netfix(&format!("snapshot {ADVICE}")).exits(0);
    assert_eq!(run.pod(&pods[0])["name"], "web-0", "{}", run.transcript());
    // The selected pod is reported.
    runtimes.netfix("snapshot --pod shop/web-0").exits(0);
}

#[test]
fn the_runtime_that_kubelet_is_configured_for_must_answer() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let runtimes = Runtimes::new(&node, &pods);
    let begin = Instant::now();
    let run = runtimes.netfix_with_kubelet(DOCKER, "snapshot").exits(4);
    assert!(
        begin.elapsed() > Duration::from_secs(2),
        "it was not tried again: {}",
        run.transcript()
    );
    run.names("runtime-unreachable", "", &["ECONNREFUSED"]);
    let run = runtimes
        .netfix_with_kubelet(CONTAINERD, "snapshot")
        .exits(0);
    assert_eq!(run.pod(&pods[0])["name"], "web-0", "{}", run.transcript());
}

#[test]
fn the_runtime_that_kubelet_is_configured_for_is_queried_at_any_path() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let runtimes = Runtimes::new(&node, &pods);
    let socket = runtimes.containerd.socket.display().to_string();
    let run = node
        .netfix_with_kubelet(&socket, &[], "snapshot --runtime auto -o json")
        .exits(0);
    assert_eq!(run.pod(&pods[0])["name"], "web-0", "{}", run.transcript());
}

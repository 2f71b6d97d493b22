//! A node with its timers on: a snapshot every other turn and a check every turn, while pods come, go, are rebuilt, flap and
//! lose links, and the host loses and gets back its address. A real hour has the same turns at longer intervals.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, Run};

/// Between two checks; `NETFIX_CHECK_SECONDS=30` makes the hour of a node with the packaged timers.
const INTERVAL: Duration = Duration::from_millis(400);

/// What the node has lost, as the test knows it.
struct Watch<'n> {
    node: &'n Node,
    /// Pods that have lost something and were neither restored nor accepted.
    lost: BTreeSet<String>,
    is_host_lost: bool,
    interval: Duration,
    turn: usize,
    log: String,
    begin: Instant,
}

impl<'n> Watch<'n> {
    fn new(node: &'n Node) -> Self {
        let seconds = env::var("NETFIX_CHECK_SECONDS").ok();
        let seconds = seconds.map(|text| text.parse().expect("NETFIX_CHECK_SECONDS is a number"));
        Self {
            node,
            lost: BTreeSet::new(),
            is_host_lost: false,
            interval: seconds.map_or(INTERVAL, Duration::from_secs),
            turn: 0,
            log: String::new(),
            begin: Instant::now(),
        }
    }

    fn note(&mut self, what: &str) {
        let at = self.begin.elapsed().as_secs_f32();
        writeln!(self.log, "{at:7.1} s  {what}").expect("text");
    }

    fn loses(&mut self, pod: &Pod<'_>, what: &str) {
        self.note(&format!("{} {what}", pod.name()));
        self.lost.insert(pod.name().to_owned());
    }

    /// Lets the timers run for some turns, and judges each check.
    #[track_caller]
    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            let begin = Instant::now();
            self.turn += 1;
            if self.turn.is_multiple_of(2) {
                let is_well = self.lost.is_empty() && !self.is_host_lost;
                let run = self.node.netfix_alone("snapshot");
                self.note(&format!("snapshot {:?}", run.code));
                self.judge(
                    &run,
                    (run.code == Some(0)) == is_well,
                    "the snapshot's exit code",
                );
            }
            self.check();
            thread::sleep(self.interval.saturating_sub(begin.elapsed()));
        }
    }

    #[track_caller]
    fn check(&mut self) {
        let run = self.node.netfix_alone("check -o json");
        let document = run.json();
        let pods = document["pods"].as_array().expect("pods");
        let states: Vec<_> = pods
            .iter()
            .map(|pod| format!("{} {}", name(pod), pod["state"]))
            .collect();
        self.note(&format!("check {:?}: {}", run.code, states.join(", ")));
        let is_well = self.lost.is_empty() && !self.is_host_lost;
        self.judge(
            &run,
            run.code == Some(if is_well { 0 } else { 2 }),
            "the check's exit code",
        );
        let reported: BTreeSet<String> = pods
            .iter()
            .filter(|pod| {
                ["degraded", "no-checkpoint"].contains(&pod["state"].as_str().expect("a state"))
            })
            .map(name)
            .collect();
        self.judge(&run, reported == self.lost, "the lost pods");
        let problems = document["problems"].as_array().expect("problems");
        let of_sound = problems.iter().find(|problem| {
            let of = problem["pod"].as_str();
            let is_finding = problem["severity"] != "info";
            is_finding && of.is_some_and(|of| !self.lost.contains(of))
        });
        self.judge(&run, of_sound.is_none(), "a sound pod raises something");
    }

    #[track_caller]
    fn judge(&self, run: &Run, is_right: bool, what: &str) {
        assert!(
            is_right,
            "{what}; lost: {:?}, host {}\n{}\n{}",
            self.lost,
            self.is_host_lost,
            run.transcript(),
            self.log
        );
    }

    /// What a person does in the end.
    #[track_caller]
    fn restore(&mut self, code: i32, left: &[&Pod<'_>]) {
        let run = self.node.netfix_alone("restore");
        self.note(&format!("restore {:?}", run.code));
        self.lost = left.iter().map(|pod| pod.name().to_owned()).collect();
        self.is_host_lost = false;
        self.judge(&run, run.code == Some(code), "the restore's exit code");
    }

    #[track_caller]
    fn accept(&mut self, whom: &str) {
        let run = self.node.netfix_alone(&format!("snapshot --accept {whom}"));
        self.note(&format!("snapshot --accept {whom} {:?}", run.code));
        self.lost.remove(whom);
        self.is_host_lost &= whom != "host";
        let is_well = self.lost.is_empty() && !self.is_host_lost;
        self.judge(
            &run,
            (run.code == Some(0)) == is_well,
            "the exit code of --accept",
        );
    }
}

/// A mounted namespace's name, which is its pod's id.
fn name(pod: &Value) -> String {
    pod["id"].as_str().expect("an id").to_owned()
}

fn flap(pod: &Pod<'_>) {
    pod.ip("link set eth0 down");
    pod.ip("link set eth0 up");
}

#[test]
fn in_an_hour_of_timers_what_is_lost_stays_critical_and_no_sound_pod_raises_anything() {
    let node = Node::new();
    let mut pods = node.simple_pods(3);
    let mut watch = Watch::new(&node);
    node.netfix_alone("snapshot").exits(0);
    watch.turns(2);

    // Pods come, change and go.
    pods.push(node.pod("young").simple());
    watch.note("a pod came");
    watch.turns(3);
    pods[0].ip("addr add 10.88.7.1/32 dev eth0");
    pods[0].ip("route add 10.99.0.0/16 via 10.88.0.9 proto bgp");
    watch.turns(2);
    pods[0].ip("addr del 10.88.7.1/32 dev eth0");
    pods[0].ip("route del 10.99.0.0/16");
    watch.note("a VIP moved, a daemon withdrew a route");
    node.netfix_alone("snapshot").exits(0);
    watch.turns(2);
    pods[1].ns.replace();
    pods[1].macvlan("mode bridge", "");
    pods[1].up_with_address();
    watch.note("a pod was rebuilt");
    watch.turns(3);
    pods.pop().expect("the young pod").ns.delete();
    watch.note("a pod went");
    watch.turns(2);

    // A pod flaps: its default route is gone, whatever the timers do.
    flap(&pods[0]);
    watch.loses(&pods[0], "flapped");
    watch.turns(5);
    watch.restore(0, &[]);
    watch.turns(2);

    // One loses its link; a young one, which no snapshot has, its own a moment later.
    pods[1].ip("link del eth0");
    watch.loses(&pods[1], "lost its link");
    watch.turns(3);
    let young = node.pod("young").simple();
    young.ip("link set eth0 down");
    young.ip("link del eth0");
    watch.loses(&young, "came and lost its link");
    watch.turns(2);
    watch.restore(5, &[&young]);
    watch.turns(2);
    watch.accept(young.name());
    watch.turns(2);

    // The host's address and default routes go, and come back.
    node.ns.ip("addr del 10.88.0.2/16 dev eth0");
    watch.is_host_lost = true;
    watch.note("the host lost its address");
    watch.turns(3);
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    node.ns.ip(&format!("route add default via {GATEWAY4}"));
    watch.is_host_lost = false;
    watch.note("the host's address came back");
    watch.turns(2);

    // The NIC goes, and comes back bare.
    node.lose_and_reload();
    watch.is_host_lost = true;
    for pod in &pods {
        watch.loses(pod, "lost the NIC");
    }
    watch.turns(4);
    watch.restore(0, &[]);
    watch.turns(3);

    // What a person gives up is well from then on.
    pods[2].ip("route del default");
    watch.loses(&pods[2], "lost its default route");
    node.ns.ip(&format!("-6 route del default via {GATEWAY6}"));
    watch.is_host_lost = true;
    watch.turns(2);
    watch.accept(pods[2].name());
    watch.turns(2);
    watch.accept("host");
    watch.turns(2);
    eprint!("{}", watch.log);
}

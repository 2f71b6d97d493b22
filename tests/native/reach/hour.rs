//! A node on an ordinary day, with real daemons: two pods with keepalived, a dnsmasq that leases addresses and sends router
//! advertisements, pods that are deployed and removed. `check` finds nothing but what is really lost, and that each time.
//!
//! `NETFIX_MINUTES=60 cargo test --features failpoints,fuzzing --test native ordinary_day` runs it for an hour.

use std::fs;
use std::path::Path;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::background::{Background, wait_until};
use crate::common::namespace::Namespace;
use crate::common::numbers::Numbers;
use crate::common::problem::ReportedProblem;
use crate::common::{GATEWAY4, Node, Pod, tool};
use crate::roundtrip::number;

/// The address that both routers share, and that of their virtual MAC.
const SHARED: [&str; 2] = ["10.88.77.77", "10.88.77.78"];
/// The link of the virtual MAC.
const VIRTUAL: &str = "vrrp.51";
/// As many pods as are deployed at most.
const DEPLOYED: usize = 4;
const LEASE: &str = "#!/bin/sh
case $1 in
deconfig) ip -4 addr flush dev $interface scope global; ip link set $interface up ;;
bound | renew)
    ip addr replace $ip/$mask dev $interface valid_lft $lease preferred_lft $lease
    ip route replace default via $router dev $interface proto dhcp ;;
esac
";

/// So many make a short day, of every kind: the same ones each time.
const EVENTS: usize = 9;

/// What may really be lost of a pod, or of the host below it; and what undoes what a restore does not.
const LOSSES: [(usize, &str, &str); 8] = [
    (0, "pod route del default", ""),
    (0, "pod addr flush dev eth0", ""),
    (0, "pod link del eth0", ""),
    (0, "pod rule add prohibit pref 10", "rule del pref 10"),
    (1, "pod link set eth0 down", ""),
    (1, "pod route del default", ""),
    (1, "host link set web1 nomaster", ""),
    (1, "host link set br1 down", ""),
];

struct Day<'n> {
    node: &'n Node,
    n: Numbers,
    /// A macvlan and a port of a bridge, which are lost now and then.
    steady: [Pod<'n>; 2],
    /// The first one has the shared addresses if it runs; of the others each has one else.
    routers: [Router<'n>; 3],
    deployed: Vec<Pod<'n>>,
    served: Option<Background>,
    log: Vec<String>,
    /// Whether the shared addresses have moved since the last snapshot.
    has_moved: bool,
    findings: Vec<String>,
    checks: usize,
}

/// A machine that runs keepalived, with the numbers of the shared addresses that it may have.
struct Router<'n> {
    ns: &'n Namespace,
    shares: &'static [usize],
    priority: u8,
    keepalived: Option<Background>,
}

impl Router<'_> {
    fn start(&mut self, folder: &Path) {
        let (name, priority) = (self.ns.name(), self.priority);
        let file = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let mut text = "global_defs {\n vrrp_version 3\n}\n".to_owned();
        for number in self.shares {
            let (address, mac) = (SHARED[*number], ["", "use_vmac"][*number]);
            let instance = format!(
                "vrrp_instance shared{number} {{\n state BACKUP\n interface eth0\n virtual_router_id 5{number}\n \
                 priority {priority}\n advert_int 0.3\n {mac}\n virtual_ipaddress {{\n {address}/32\n }}\n}}\n"
            );
            text.push_str(&instance);
        }
        fs::write(file("conf"), text).expect("the configuration");
        let mut keepalived = self.ns.exec("keepalived");
        keepalived.args([
            "--vrrp",
            "--dont-fork",
            "--log-console",
            "-f",
            &file("conf"),
        ]);
        keepalived.args(["-p", &file("pid"), "-r", &file("vrrp")]);
        self.keepalived = Some(Background::start(&mut keepalived, file("log").into()));
    }

    fn has(&self, address: &str) -> bool {
        self.ns.ip("addr").contains(&format!(" {address}/"))
    }
}

/// Ends a daemon as its unit does.
fn stop(daemon: Option<Background>) {
    if let Some(daemon) = daemon {
        let id = Pid::from_raw(i32::try_from(daemon.id()).expect("a process id"));
        kill(id, Signal::SIGTERM).expect("a signal");
        daemon.finish();
    }
}

fn is_reached(ns: &Namespace, address: &str) -> bool {
    let mut ping = tool::command("ping", ["-n", "-q", "-c1", "-W1", address]);
    ns.enter(|| tool::try_run(&mut ping).is_ok())
}

/// A second NIC, whose pods are ports of a bridge.
fn bridged(node: &Node) {
    let gateway = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth1 type veth peer name up1 netns {gateway}"
    ));
    node.gateway.ip("link set up1 up");
    node.gateway.ip("addr add 10.95.0.1/24 dev up1");
    node.ns.ip("link add br1 type bridge");
    for line in ["eth1 master br1", "eth1 up", "br1 up"] {
        node.ns.ip(&format!("link set {line}"));
    }
}

/// Another machine of the segment.
fn elsewhere(node: &Node) -> Namespace {
    let name = format!("{}away", node.ns.name());
    let ns = Namespace::new(&name);
    let link = format!("link add link up0 name eth0 netns {name} type macvlan mode bridge");
    node.gateway.ip(&link);
    ns.ip("link set eth0 up");
    ns.ip("addr add 10.88.0.200/16 dev eth0");
    ns
}

fn port<'n>(node: &'n Node, name: &str, number: usize) -> Pod<'n> {
    let pod = node.pod(name);
    let name = pod.name();
    node.ns.ip(&format!(
        "link add web{number} type veth peer name eth0 netns {name}"
    ));
    node.ns.ip(&format!("link set web{number} master br1 up"));
    pod.ip("link set eth0 up");
    pod.ip(&format!("addr add 10.95.0.{}/24 dev eth0", 9 + number));
    pod.ip("route add default via 10.95.0.1");
    pod
}

impl<'n> Day<'n> {
    fn new(node: &'n Node, routers: [&'n Namespace; 3]) -> Self {
        bridged(node);
        let router = |ns, priority, shares| Router {
            ns,
            shares,
            priority,
            keepalived: None,
        };
        let [first, second, elsewhere] = routers;
        Self {
            node,
            n: Numbers::new(number("NETFIX_SEED", 351)),
            steady: [node.pod("web").simple(), port(node, "port", 1)],
            routers: [
                router(first, 200, &[0, 1]),
                router(second, 150, &[0]),
                router(elsewhere, 100, &[1]),
            ],
            deployed: Vec::new(),
            served: None,
            log: Vec::new(),
            has_moved: false,
            findings: Vec::new(),
            checks: 0,
        }
    }

    fn note(&mut self, what: String) {
        eprintln!("{what}");
        self.log.push(what);
    }

    /// dnsmasq at the gateway.
    fn serve(&mut self) {
        let folder = self.node.temp();
        let leases = format!("--dhcp-leasefile={}", folder.join("leases").display());
        let mut dnsmasq = self.node.gateway.exec("dnsmasq");
        dnsmasq.args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0"]);
        dnsmasq.args(["--user=root", "--pid-file", "--log-facility=-", &leases]);
        dnsmasq.args(["--interface=up0", "--bind-interfaces", "--enable-ra"]);
        dnsmasq.args(["--dhcp-range=10.88.200.1,10.88.200.200,255.255.0.0,2m"]);
        dnsmasq.args([
            "--dhcp-range=fd88::,ra-only,64,10m",
            "--ra-param=up0,10,120",
        ]);
        self.served = Some(Background::start(&mut dnsmasq, folder.join("dnsmasq")));
    }

    /// Every finding needs a cause.
    fn check(&mut self, is_lost: bool) {
        let is_advertised = |ns: &Namespace| ns.ip("-6 route show default").contains("proto ra");
        let has_lost = is_lost && self.log.last().is_some_and(|last| last.contains("eth0"));
        let node = &self.node.ns;
        let listening = [
            &self.steady[0].ns,
            self.routers[0].ns,
            self.routers[1].ns,
            node,
        ];
        let listening = &listening[usize::from(has_lost)..];
        assert!(
            wait_until(|| listening.iter().all(|ns| is_advertised(ns))),
            "no advertisement"
        );
        let run = self.node.netfix_json("check");
        self.checks += 1;
        let problems = run.problems().into_iter();
        let is_shared = |object: &str| SHARED.iter().any(|one| object.contains(one));
        let has_cause = |one: &ReportedProblem| match one.code.as_str() {
            // The kernel adds this route of a link anew, after those of the others, each time that the link gets carrier.
            "drift"
                if one
                    .object
                    .starts_with("~ in this order: route multicast ff00::/8") =>
            {
                true
            }
            // keepalived 2.2 does not mark its addresses as its own, and makes the link of a virtual router anew.
            "drift" => self.has_moved && (is_shared(&one.object) || one.object.contains(VIRTUAL)),
            "ifindex-differs" => self.has_moved && one.object.contains(VIRTUAL),
            "checkpoint-missing" => {
                let pod = one.pod.iter().chain([&one.object]);
                pod.into_iter().any(|name| name.contains(".deploy"))
            }
            _ => false,
        };
        let found: Vec<_> = problems
            .filter(|one| one.severity != "info" && !has_cause(one))
            .collect();
        if (run.code == Some(2)) != is_lost || found.is_empty() == is_lost {
            let last = self.log.last().cloned().unwrap_or_default();
            self.findings
                .push(format!("after {last}: {}", run.transcript()));
            eprintln!("WRONG {}", self.findings.last().expect("a finding"));
        }
    }

    /// One thing that happens on a node.
    fn event(&mut self) {
        match self.n.below(8) {
            0 | 1 if self.deployed.len() < DEPLOYED => {
                let name = format!("deploy{}", self.checks);
                let pod = if self.n.below(2) == 0 {
                    self.node.pod(&name).simple()
                } else {
                    port(self.node, &name, 100 + self.checks % 100)
                };
                self.note(format!("{} is deployed", pod.name()));
                self.deployed.push(pod);
            }
            0..=2 if !self.deployed.is_empty() => {
                let pod = self.deployed.remove(0);
                self.note(format!("{} is removed", pod.name()));
            }
            3 => self.fail_over(),
            4 => {
                self.note("dnsmasq is started again".to_owned());
                stop(self.served.take());
                self.serve();
            }
            5 => self.lose(),
            6 => {
                self.note("a snapshot".to_owned());
                self.has_moved = false;
                let code = self.node.netfix("snapshot").code;
                if code != Some(0) {
                    self.findings.push(format!("snapshot: {code:?}"));
                }
            }
            _ => self.note("nothing happens".to_owned()),
        }
    }

    /// The first router ends, or comes back.
    fn fail_over(&mut self) {
        let daemon = self.routers[0].keepalived.take();
        self.has_moved = true;
        let is_ended = daemon.is_some();
        if is_ended {
            self.note("the master ends".to_owned());
            stop(daemon);
        } else {
            self.note("the master comes back".to_owned());
            self.routers[0].start(&self.node.temp());
        }
        self.wait_for_masters(is_ended);
    }

    /// Each shared address is where it belongs, and only there.
    fn wait_for_masters(&self, is_ended: bool) {
        let [first, second, third] = &self.routers;
        let masters = if is_ended {
            [second, third]
        } else {
            [first, first]
        };
        let is_there = || {
            masters.into_iter().zip(SHARED).all(|(master, one)| {
                let mut routers = self.routers.iter();
                routers.all(|router| router.has(one) == ptr::eq(router, master))
            })
        };
        assert!(wait_until(is_there), "a router has no shared address");
    }

    /// Something is lost, found, and restored.
    fn lose(&mut self) {
        let (victim, line, undo) =
            LOSSES[usize::try_from(self.n.below(8)).expect("a small number")];
        self.note(format!("pod {victim} loses: {line}"));
        let (place, words) = line.split_once(' ').expect("a place");
        // A pod has a good record before.
        self.node.snapshot();
        self.has_moved = false;
        let pod = &self.steady[victim];
        let gateway = [GATEWAY4, "10.95.0.1"][victim];
        let ns = if place == "pod" {
            &pod.ns
        } else {
            &self.node.ns
        };
        ns.ip(words);
        assert!(!is_reached(&pod.ns, "192.0.2.1"), "{line} loses nothing");
        if self.n.below(2) == 0 {
            self.node.netfix("snapshot");
        }
        self.check(true);
        let restored = self.node.netfix("restore");
        let pod = &self.steady[victim].ns;
        let is_back = if undo.is_empty() {
            wait_until(|| is_reached(pod, gateway))
        } else {
            is_reached(pod, gateway)
        };
        if (restored.code == Some(0)) != is_back || is_back != undo.is_empty() {
            let last = restored.transcript();
            eprintln!("WRONG {last}");
            self.findings.push(last);
        }
        if !is_back {
            let ns = if place == "pod" { pod } else { &self.node.ns };
            ns.ip(undo);
        }
        assert!(
            wait_until(|| is_reached(pod, gateway)),
            "{line} is for ever"
        );
    }
}

#[test]
fn an_ordinary_day_has_no_finding_without_a_cause() {
    let minutes = tool::number("NETFIX_MINUTES");
    let node = Node::new();
    node.gateway.ip("addr add 192.0.2.1/32 dev lo");
    // Without it a neighbour advertisement lacks the router flag, and its reader removes the default route (RFC 4861, 7.2.5).
    node.gateway.set_sysctl("ipv6/conf/all/forwarding", "1");
    let routers = [(); 2].map(|()| node.pod("router").simple());
    let elsewhere = elsewhere(&node);
    let [first, second] = &routers;
    let mut day = Day::new(&node, [&first.ns, &second.ns, &elsewhere]);
    day.serve();
    let leased = node.pod("leased");
    leased.macvlan("mode bridge", "");
    let script = node.temp().join("lease");
    tool::program(LEASE, &script);
    let mut client = leased.ns.exec("busybox");
    client
        .args(["udhcpc", "-f", "-i", "eth0", "-s"])
        .arg(&script);
    let _client = Background::start(&mut client, node.temp().join("udhcpc"));
    for router in &mut day.routers {
        router.start(&node.temp());
    }
    let is_up = || leased.ip("addr").contains("10.88.200.");
    assert!(wait_until(is_up), "no lease");
    day.wait_for_masters(false);
    node.snapshot();
    let begin = Instant::now();
    let is_over = |day: &Day<'_>| match minutes {
        Some(minutes) => begin.elapsed() >= Duration::from_secs(60 * minutes),
        None => day.log.len() >= EVENTS,
    };
    while !is_over(&day) {
        day.event();
        day.check(false);
        if minutes.is_some() {
            thread::sleep(Duration::from_secs(4));
        }
    }
    for router in &mut day.routers {
        stop(router.keepalived.take());
    }
    stop(day.served.take());
    let (checks, events) = (day.checks, day.log.len());
    eprintln!(
        "{checks} checks, {events} events, {} without a cause",
        day.findings.len()
    );
    assert!(day.findings.is_empty(), "{:#?}", day.findings);
}

//! The clocks: the wall clock is set between two commands, by NTP after a dead battery or by hand, and time passes. A library in
//! front of libc's shifts what netfix reads; the kernel counts on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::common::kept::{json, with_checksum};
use crate::common::{Node, Pod, Run, tool};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(const char *name) { char *text = getenv(name); return text ? atol(text) : 0; }
static long stepped(void) {
    char text[32] = "";
    char *path = getenv("STEP_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) { if (read(file, text, sizeof text - 1) < 0) text[0] = 0; close(file); }
    return shift("STEPPED") + atol(text);
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    int result = syscall(SYS_clock_gettime, clock, t);
    if (result) return result;
    t->tv_sec += shift("PASSED");
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) t->tv_sec += stepped();
    return 0;
}
time_t time(time_t *to) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); if (to) *to = t.tv_sec; return t.tv_sec; }
"#;

const DAY: i64 = 86_400;

/// The clocks that netfix reads on a node.
struct Clocks<'a> {
    node: &'a Node,
    library: PathBuf,
}

/// A moment: how far the wall clock is off, and how long ago the test began, in seconds.
#[derive(Clone, Copy, Default)]
struct At {
    stepped: i64,
    passed: i64,
}

fn stepped(stepped: i64) -> At {
    At { stepped, passed: 0 }
}

fn later(passed: i64) -> At {
    At { stepped: 0, passed }
}

impl<'a> Clocks<'a> {
    fn of(node: &'a Node) -> Self {
        let (source, library) = (node.temp().join("clock.c"), node.temp().join("clock.so"));
        fs::write(&source, SHIM).expect("a source file");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        tool::run(compiler.arg(&library).arg(&source));
        Self { node, library }
    }

    fn environment(&self, at: At) -> Vec<String> {
        let At { stepped, passed } = at;
        vec![
            format!("LD_PRELOAD={}", self.library.display()),
            format!("STEPPED={stepped}"),
            format!("PASSED={passed}"),
            format!("STEP_FILE={}", self.node.temp().join("step").display()),
        ]
    }

    fn netfix(&self, at: At, words: &str) -> Run {
        let environment = self.environment(at);
        let mut wrapper = vec!["timeout", "600", "env"];
        wrapper.extend(environment.iter().map(String::as_str));
        Run::of(&mut self.node.netfix_command(&wrapper, words))
    }

    /// On a machine without other pods, without a selection.
    fn netfix_alone(&self, at: At, words: &str) -> Run {
        let environment = self.environment(at).join(" ");
        self.node.alone(&format!("export {environment}"), words)
    }
}

/// What the kernel has of the lifetimes of the pod's addresses on eth0: valid, by address.
fn lifetimes(pod: &Pod<'_>) -> Vec<(String, u64)> {
    let text = pod.ip("-j addr show dev eth0");
    let links: Value = serde_json::from_str(&text).expect("JSON of ip");
    let addresses = links[0]["addr_info"].as_array().expect("addresses");
    let global = addresses.iter().filter(|one| one["scope"] == "global");
    let mut all: Vec<_> = global
        .map(|one| {
            let local = one["local"].as_str().expect("an address");
            let valid = one["valid_life_time"].as_u64();
            (local.to_owned(), valid.expect("a lifetime"))
        })
        .collect();
    all.sort();
    all
}

fn lease(pod: &Pod<'_>, verb: &str, seconds: u32) {
    for address in ["10.88.0.44/16", "fd88::44/64"] {
        pod.ip(&format!(
            "addr {verb} {address} dev eth0 valid_lft {seconds} preferred_lft {seconds}"
        ));
    }
}

/// A pod with two leased addresses, and a route of the lease.
fn leased(node: &Node, seconds: u32) -> Pod<'_> {
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 up");
    lease(&pod, "add", seconds);
    pod.ip("route add default via 10.88.0.1 proto dhcp src 10.88.0.44");
    pod
}

#[test]
fn a_clock_that_is_set_costs_no_lease_its_time() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let pod = leased(&node, 7200);
    for (first, second) in [
        (Some(-900_000_000), None),
        (Some(DAY), None),
        (Some(DAY), Some(-DAY)),
    ] {
        let _ = fs::remove_dir_all(node.state_dir());
        lease(&pod, "replace", 7200);
        for snapshot in [first, second].into_iter().flatten() {
            clocks.netfix(stepped(snapshot), "snapshot").exits(0);
        }
        node.lose_and_reload();
        let run = clocks.netfix(stepped(0), "restore").exits(0);
        let left = lifetimes(&pod);
        assert_eq!(left.len(), 2, "{left:?} {}", run.transcript());
        for (address, valid) in left {
            assert!((7100..=7200).contains(&valid), "{address}: {valid}");
        }
    }
}

#[test]
fn the_lifetime_of_a_route_goes_on_by_the_time_that_passes() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let pod = node.pod("web").simple();
    pod.ip("route add fd50::/32 dev eth0 expires 5000");
    let left = || -> u32 {
        let routes = pod.ip("-6 route show fd50::/32");
        let left = routes.split("expires ").nth(1).unwrap_or_default();
        let left = left.split("sec").next().unwrap_or_default().parse();
        left.unwrap_or_else(|_| panic!("no lifetime: {routes}"))
    };
    for (now, expected) in [
        (stepped(-DAY), 4900..=5000),
        (stepped(DAY), 4900..=5000),
        (later(1000), 3900..=4000),
        (
            At {
                stepped: -500,
                passed: 1000,
            },
            3900..=4000,
        ),
    ] {
        pod.ip("route replace fd50::/32 dev eth0 expires 5000");
        node.snapshot();
        node.lose_and_reload();
        clocks.netfix(now, "restore").exits(0);
        assert!(expected.contains(&left()), "{expected:?}: {}", left());
    }
    // A record of an older netfix has the wall clock alone.
    pod.ip("route replace fd50::/32 dev eth0 expires 5000");
    node.snapshot();
    let file = node.checkpoint_of(&pod);
    let mut old = json(&node.stored_of(&pod));
    let own = old["netfix"].as_object_mut().expect("netfix's part");
    assert!(own.remove("created_boottime").is_some());
    fs::write(&file, with_checksum(old, "/netfix/checksum")).expect("an old checkpoint");
    node.lose_and_reload();
    clocks.netfix(stepped(1000), "restore").exits(0);
    assert!((3900..=4000).contains(&left()), "{}", left());
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("a time").as_secs()
}

fn metric(text: &str, name: &str) -> u64 {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(&format!("{name} ")));
    let value = value.and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name}: {text}"))
}

#[test]
fn a_clock_that_is_set_makes_no_checkpoint_stale() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let _pods = node.simple_pods(1);
    let textfile = node.temp().join("netfix.prom");
    for snapshot in [-900_000_000, -30 * DAY, 30 * DAY] {
        let _ = fs::remove_dir_all(node.state_dir());
        clocks.netfix_alone(stepped(snapshot), "snapshot").exits(0);
        let check = format!("check --textfile {}", textfile.display());
        clocks.netfix_alone(stepped(0), &check).exits(0);
        let metrics = fs::read_to_string(&textfile).expect("metrics");
        assert!(metric(&metrics, "netfix_checkpoint_oldest_age_seconds") < 100);
        let last = metric(&metrics, "netfix_snapshot_last_success_timestamp_seconds");
        assert!((now() - 100..=now()).contains(&last), "{last}: {metrics}");
        let status = clocks
            .netfix_alone(stepped(0), "status -o json")
            .exits(0)
            .json();
        let age = status["status"]["last_success_age"].as_u64();
        assert!(age.is_some_and(|age| age < 100), "{status}");
        // Nothing is dated in the future, or in another year.
        let today = tool::run(Command::new("date").args(["-u", "+%F"]));
        for words in ["check --nagios", "list -o wide", "list --generations"] {
            let run = clocks.netfix_alone(stepped(0), words).exits(0);
            // Of more than a minute ago: the time.
            let is_today = run.out.contains(today.trim());
            assert!(
                is_today || run.out.contains(" s ago"),
                "{}",
                run.transcript()
            );
        }
    }
}

#[test]
fn a_clock_that_is_set_back_hides_no_stale_checkpoint() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let _pods = node.simple_pods(1);
    clocks.netfix_alone(stepped(DAY), "snapshot").exits(0);
    let run = clocks
        .netfix_alone(later(7200), "check --max-age 1h")
        .exits(2);
    assert_eq!(
        run.coded("checkpoint-stale").len(),
        2,
        "{}",
        run.transcript()
    );
    clocks
        .netfix_alone(later(7200), "check --max-age 3h")
        .exits(0);
}

#[test]
fn a_lease_that_its_client_renewed_after_the_snapshot_comes_back_with_half_of_it() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let pod = leased(&node, 1800);
    // The record is older than the lease; what was left at the snapshot is nearly over.
    for (seconds, passed) in [(1800, 3600), (2000, 1500)] {
        lease(&pod, "replace", seconds);
        node.snapshot();
        lease(&pod, "replace", seconds);
        let check = clocks.netfix(later(passed), "check -o json").exits(0);
        assert_eq!(check.problems().len(), 1, "{}", check.transcript());
        assert_eq!(check.coded("leased").len(), 1, "{}", check.transcript());
        node.lose_and_reload();
        let restore = clocks.netfix(later(passed), "restore -o json").exits(0);
        assert_eq!(restore.problems().len(), 1, "{}", restore.transcript());
        assert_eq!(restore.coded("leased").len(), 1, "{}", restore.transcript());
        let left = lifetimes(&pod);
        assert_eq!(left.len(), 2, "{left:?}");
        let half = u64::from(seconds / 2);
        for (address, valid) in left {
            assert!((half - 100..=half).contains(&valid), "{address}: {valid}");
        }
        let routes = pod.ip("route show default");
        assert!(routes.contains("via 10.88.0.1 dev eth0"), "{routes}");
    }
}

#[test]
fn a_lease_is_known_whole_also_when_a_part_of_it_has_passed() {
    let node = Node::new();
    let pod = leased(&node, 7200);
    std::thread::sleep(Duration::from_millis(2500));
    node.snapshot();
    let checkpoint = json(&node.stored_of(&pod));
    let addresses = checkpoint["netfix"]["state"]["addresses"].clone();
    let addresses = addresses.as_array().expect("addresses");
    let leased: Vec<_> = addresses
        .iter()
        .filter(|one| one["valid_lft"].is_u64())
        .collect();
    assert_eq!(leased.len(), 2, "{addresses:?}");
    for one in leased {
        let elapsed = one["lft_elapsed"].as_u64().unwrap_or_default();
        let whole = one["valid_lft"].as_u64().unwrap_or_default() + elapsed;
        assert!(elapsed >= 2 && (7200..=7201).contains(&whole), "{one}");
    }
}

#[test]
fn a_lease_that_is_added_again_for_its_place_keeps_what_the_kernel_counts() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 up");
    let add = |address: &str, seconds: u32| {
        pod.ip(&format!(
            "addr add {address} dev eth0 valid_lft {seconds} preferred_lft {seconds}"
        ));
    };
    add("10.88.0.44/16", 1800);
    add("10.88.0.45/16", 1800);
    node.snapshot();
    pod.ip("addr flush dev eth0 scope global");
    add("10.88.0.45/16", 5000);
    add("10.88.0.44/16", 7000);
    node.restore();
    let listed = pod.ip("-4 -o addr show dev eth0");
    let first = listed.find("10.88.0.44/16").expect("the primary one");
    assert!(first < listed.find("10.88.0.45/16").expect("the other"));
    for ((address, valid), whole) in lifetimes(&pod).into_iter().zip([7000, 5000]) {
        assert!((whole - 100..=whole).contains(&valid), "{address}: {valid}");
    }
}

/// The words of a window; what [`Node::alone`] adds are arguments of COMMAND.
fn upgrade(node: &Node, command: &str) -> String {
    let state = node.state_dir();
    format!(
        "upgrade --state-dir {} --yes --foreground --no-pause --watch 0s --answer-wait 1s -- {command}",
        state.display()
    )
}

#[test]
fn the_newest_window_is_the_one_that_was_opened_last_whatever_the_clock_was() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let _pods = node.simple_pods(1);
    let window = |at, command: &str| clocks.netfix_alone(at, &upgrade(&node, command));
    window(stepped(3600), "true").exits(0);
    window(stepped(0), "false").exits(1);
    let id = |run: Run, pointer: &str| {
        let document = run.json();
        let id = document.pointer(pointer).and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("{document:#}")).to_owned()
    };
    let now = |words: &str| clocks.netfix_alone(stepped(0), words);
    let newest = id(now("report -o json").exits(0), "/report/id");
    let list = now("report --list -o json").exits(0).json();
    let listed: Vec<_> = list["windows"]
        .as_array()
        .expect("windows")
        .iter()
        .collect();
    assert_eq!(listed.len(), 2, "{list:#}");
    assert_eq!(listed[1]["id"], newest.as_str());
    assert_eq!(listed[1]["window"]["exit"], 1, "{list:#}");
    let earlier = listed[0]["id"].as_str().expect("an id");
    assert!(earlier > newest.as_str(), "{earlier} {newest}");
    now("wait").exits(1);
    assert_eq!(
        id(now("status -o json").exits(0), "/status/last/id"),
        newest
    );
    let textfile = node.temp().join("netfix.prom");
    now(&format!("check --textfile {}", textfile.display()));
    let metrics = fs::read_to_string(&textfile).expect("metrics");
    assert_eq!(metric(&metrics, "netfix_last_window_exit_code"), 1);
    // A third one at an even earlier time is the newest then, and nothing is dated in the future.
    window(stepped(-7200), "true").exits(0);
    let third = id(now("report -o json").exits(0), "/report/id");
    assert!(third < newest, "{third} {newest}");
    now(&format!("check --textfile {}", textfile.display()));
    let metrics = fs::read_to_string(&textfile).expect("metrics");
    let name = "netfix_last_window_start_timestamp_seconds ";
    let started = metrics.lines().find_map(|line| line.strip_prefix(name));
    let seconds = started.and_then(|text| text.split('.').next()?.parse::<u64>().ok());
    let expected = self::now() - 200..=self::now() + 5;
    assert!(
        seconds.is_some_and(|one| expected.contains(&one)),
        "{metrics}"
    );
}

#[test]
fn a_clock_that_is_set_while_a_window_is_open_is_noted_in_its_report() {
    let node = Node::new();
    let clocks = Clocks::of(&node);
    let _pods = node.simple_pods(1);
    for (step, note) in [("3600", "set by +1 h"), ("-3600", "set by -1 h")] {
        fs::write(node.temp().join("step"), "0").expect("the clock");
        let script = node.temp().join("sets");
        let text = format!(
            "#!/bin/sh\necho {step} >{}\n",
            node.temp().join("step").display()
        );
        tool::program(&text, &script);
        let words = upgrade(&node, &script.display().to_string());
        clocks.netfix_alone(stepped(0), &words).exits(0);
        let report = clocks
            .netfix_alone(stepped(0), "report -o json")
            .exits(0)
            .json();
        let set = report["report"]["clock_set"]
            .as_i64()
            .expect("how far it was set");
        let expected: i64 = step.parse::<i64>().expect("seconds") * 1000;
        assert!((set - expected).abs() < 5000, "{set}");
        let ended = report["report"]["ended"].as_u64().expect("an end");
        assert!(ended < 60_000, "{ended}");
        clocks
            .netfix_alone(stepped(0), "report")
            .exits(0)
            .stdout_has(&[note]);
    }
    fs::write(node.temp().join("step"), "0").expect("the clock");
    clocks
        .netfix_alone(stepped(0), &upgrade(&node, "true"))
        .exits(0);
    let report = clocks
        .netfix_alone(stepped(0), "report -o json")
        .exits(0)
        .json();
    assert_eq!(report["report"]["clock_set"], Value::Null, "{report:#}");
}

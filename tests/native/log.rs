//! The log: the records and fields in journald, the lines of `-v`, and that logging never blocks netfix.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::common::journald::{Entry, Journald, StalledJournald};
use crate::common::{Node, Run};

fn of_target<'e>(entries: &'e [Entry], target: &str) -> Vec<&'e Entry> {
    entries
        .iter()
        .filter(|entry| entry["TARGET"] == target)
        .collect()
}

fn messages(entries: &[Entry], target: &str) -> Vec<String> {
    of_target(entries, target)
        .into_iter()
        .map(|entry| entry["MESSAGE"].clone())
        .collect()
}

#[test]
fn a_degraded_pod_is_in_the_journal_with_its_code_and_its_namespace() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let journald = Journald::start(&node);
    node.snapshot();
    pods[1].ip("link del eth0");
    let run = Run::of(&mut journald.netfix(&node, "snapshot"))
        .exits(5)
        .errors(&[("degraded", pods[1].name())]);
    let entries = journald.entries();
    let found = of_target(&entries, "netfix::problem");
    assert_eq!(found.len(), 1, "{entries:#?}");
    let entry = found[0];
    assert_eq!(
        (&*entry["CODE"], &*entry["POD"], &*entry["PRIORITY"]),
        ("degraded", pods[1].name(), "3")
    );
    assert_eq!(entry["NETNS"], format!("/run/netns/{}", pods[1].name()));
    assert!(
        run.err.contains(&entry["MESSAGE"]),
        "{entry:?}\n{}",
        run.transcript()
    );
    assert!(
        entries
            .iter()
            .all(|entry| entry["SYSLOG_IDENTIFIER"] == "netfix"),
        "{entries:#?}"
    );
    let reported = messages(&entries, "netfix::command");
    assert_eq!(
        (reported.len(), &*reported[0]),
        (2, "snapshot begins"),
        "{reported:?}"
    );
    let end = of_target(&entries, "netfix::command")[1];
    assert_eq!(
        (&*end["EXIT"], &*end["COMMAND"]),
        ("5", "snapshot"),
        "{end:?}"
    );
    // stderr is the same without journald.
    let without = node.netfix("snapshot").exits(5);
    assert_eq!(run.err, without.err);
    assert_eq!(without.err.lines().count(), 1, "{}", without.transcript());
}

/// A restore of three pods logs its steps, which are more than the kernel queues for journald.
#[test]
fn a_slow_journald_gets_every_step_of_a_restore_with_its_pod() {
    let node = Node::new();
    // In total much longer than netfix waits for a journald that does not read.
    let journald = Journald::slow(&node, Duration::from_millis(250));
    let pods = node.simple_pods(3);
    node.snapshot();
    node.lose_and_reload();
    let run = Run::of(&mut journald.netfix(&node, "restore -o json")).exits(0);
    assert_eq!(run.err, "", "{}", run.transcript());
    let mut logged: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in of_target(&journald.entries(), "netfix::step") {
        assert_eq!(entry["PRIORITY"], "6", "{entry:?}");
        let pod = entry.get("POD").cloned().unwrap_or_default();
        logged
            .entry(pod)
            .or_default()
            .push(entry["MESSAGE"].clone());
    }
    let lines = |steps: &serde_json::Value| -> Vec<String> {
        serde_json::from_value(steps.clone()).expect("a list of steps")
    };
    for pod in &pods {
        assert_eq!(
            logged[pod.name()],
            lines(&run.pod(pod)["steps"]),
            "{}",
            run.transcript()
        );
    }
    assert_eq!(
        logged[""],
        lines(&run.json()["node"]["steps"]),
        "{}",
        run.transcript()
    );
    for pod in &pods {
        assert!(pod.has_eth0());
    }
}

#[test]
fn a_check_of_a_healthy_node_is_one_line() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let journald = Journald::start(&node);
    node.snapshot();
    // Worth a record, but not in every run.
    pods[0].ip("addr add 192.0.2.77/32 dev eth0");
    let run = Run::of(&mut journald.netfix(&node, "check -o json"));
    let entries = journald.entries();
    let found = run.json()["problems"].as_array().expect("problems").clone();
    assert!(
        found.iter().any(|problem| problem["severity"] == "info"),
        "{}",
        run.transcript()
    );
    let worse = found
        .iter()
        .filter(|problem| problem["severity"] != "info")
        .count();
    assert_eq!(
        of_target(&entries, "netfix::problem").len(),
        worse,
        "{entries:#?}"
    );
    assert_eq!(
        messages(&entries, "netfix::command").len(),
        1,
        "{entries:#?}"
    );
    assert_eq!(entries.len(), worse + 1, "{entries:#?}");
}

#[test]
fn the_wait_of_a_quiet_command_is_in_the_journal() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let journald = Journald::start(&node);
    node.snapshot();
    let file = std::fs::File::open(node.state_dir().join("lock")).expect("the lock's file");
    let _held = Flock::lock(file, FlockArg::LockExclusiveNonblock).expect("the lock is free");
    Run::of(&mut journald.netfix(&node, "snapshot -q --lock-wait 200ms"))
        .exits(4)
        .lacks("waiting");
    let entries = journald.entries();
    let waits = format!("waiting for the lock held by pid {}", std::process::id());
    assert_eq!(messages(&entries, "netfix"), [waits], "{entries:#?}");
    assert_eq!(
        of_target(&entries, "netfix::problem")[0]["CODE"],
        "lock-held",
        "{entries:#?}"
    );
}

#[test]
fn a_journald_that_reads_nothing_does_not_block_netfix() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(crate::common::Pod::capture).collect();
    let journald = StalledJournald::start(&node);
    node.snapshot();
    node.lose_and_reload();
    let begin = Instant::now();
    let run = Run::of(&mut journald.netfix(&node, "restore")).exits(0);
    let end = run.err.lines().last().unwrap_or_default();
    let lost = end
        .strip_prefix("netfix: log entries lost: ")
        .and_then(|rest| rest.split_once(". journald"))
        .and_then(|(count, _)| count.parse().ok());
    // The start, the end, and at least one step for each pod.
    assert!(
        lost.is_some_and(|lost: usize| lost >= 5),
        "{}",
        run.transcript()
    );
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_dead_journald_does_not_fail_the_command() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    // Its socket still exists, but no process listens.
    let dead = Journald::start(&node).end();
    assert!(node.temp().join("journal/socket").exists());
    let run = Run::of(&mut dead.netfix(&node, "snapshot")).exits(0);
    assert!(run.err.is_empty(), "{}", run.transcript());
    node.netfix("list").exits(0).stdout_has(&[pods[0].name()]);
}

/// One line of `-v`.
#[derive(Debug)]
struct Message {
    sent: bool,
    kind: String,
    flags: Vec<String>,
    netns: Option<String>,
    content: String,
    /// `ok`, or the name of an errno.
    answer: String,
}

fn parse(line: &str) -> Option<Message> {
    let rest = line.strip_prefix("netlink ")?;
    let (direction, rest) = rest.split_once(' ').expect("a direction");
    let (head, content) = rest
        .split_once(": ")
        .unwrap_or_else(|| panic!("no content in {line}"));
    let mut head = head.split(' ');
    let kind = head.next().expect("a type").to_owned();
    assert!(kind.starts_with("RTM_"), "{line}");
    let sent = match direction {
        ">" => true,
        "<" => false,
        other => panic!("{other} is no direction: {line}"),
    };
    let flags: Vec<_> = if sent {
        head.next().expect("flags").split('|').collect()
    } else {
        Vec::new()
    };
    let netns = head.nth(1).map(str::to_owned);
    let (content, answer) = if sent {
        content.rsplit_once(" -> ").expect("an answer")
    } else {
        (content, "")
    };
    let flags = flags.into_iter().map(str::to_owned).collect();
    Some(Message {
        sent,
        kind,
        flags,
        netns,
        content: content.to_owned(),
        answer: answer.to_owned(),
    })
}

/// Type and flags of every netlink message of this kind that strace saw.
fn seen_by_strace(calls: &[&str], verb: &str) -> Vec<(String, Vec<String>)> {
    let mut seen = Vec::new();
    for call in calls {
        for part in call.split("nlmsg_type=").skip(1) {
            let (kind, rest) = part.split_once(',').expect("a type and more");
            let (_, flags) = rest.split_once("nlmsg_flags=").expect("flags");
            let flags = flags.split(',').next().expect("flags").split('|');
            let mut flags: Vec<_> = flags
                .map(|flag| flag.trim_start_matches("NLM_F_").to_owned())
                .collect();
            flags.sort();
            if kind.starts_with(verb) {
                seen.push((kind.to_owned(), flags));
            }
        }
    }
    seen.sort();
    seen
}

#[test]
fn dash_vv_shows_every_netlink_change_with_flags_content_and_result() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    let trace = node.netfix_traced("restore -vv");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    let shown: Vec<Message> = trace.run.err.lines().filter_map(parse).collect();
    let sent: Vec<_> = shown
        .iter()
        .filter(|m| m.sent && m.kind.starts_with("RTM_NEW"))
        .collect();
    assert!(
        sent.iter().all(|message| message.answer == "ok"),
        "{}",
        trace.run.transcript()
    );
    // strace decodes the sockets of the node's namespace, from which netfix creates the links.
    let home = sent
        .iter()
        .find(|message| message.kind == "RTM_NEWLINK")
        .expect("a link is made");
    let from_home = sent.iter().filter(|message| message.netns == home.netns);
    let mut changes: Vec<_> = from_home
        .map(|m| (m.kind.clone(), m.flags.clone()))
        .collect();
    for (_, flags) in &mut changes {
        flags.sort();
    }
    changes.sort();
    assert_eq!(
        changes,
        seen_by_strace(&trace.netlink_changes(), "RTM_NEW"),
        "{}",
        trace.run.transcript()
    );
    for pod in &pods {
        let address = pod.address();
        assert!(
            sent.iter().any(|m| m.kind == "RTM_NEWADDR"
                && m.netns != home.netns
                && m.content.contains(&address)),
            "no address {address}: {}",
            trace.run.transcript()
        );
    }
    let questions = shown
        .iter()
        .filter(|message| message.sent && message.kind.starts_with("RTM_GET"))
        .count();
    assert!(
        questions > 0 && shown.iter().any(|message| !message.sent),
        "{}",
        trace.run.transcript()
    );
}

#[test]
fn dash_vv_shows_the_errno_of_a_refused_message() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose_and_reload();
    // Another link has the MAC, so the pod's link cannot go up.
    let mac = pods[0].mac();
    node.ns.ip(&format!(
        "link add thief link eth0 address {mac} type macvlan mode bridge"
    ));
    node.ns.ip("link set thief up");
    let run = node
        .netfix("restore -vv")
        .exits(1)
        .errors(&[("mac-conflict", pods[0].name())]);
    let refused: Vec<Message> = run
        .err
        .lines()
        .filter_map(parse)
        .filter(|m| m.sent && m.answer != "ok")
        .collect();
    let busy = |message: &Message| ["EADDRINUSE", "EBUSY"].contains(&message.answer.as_str());
    assert!(
        refused.iter().any(busy),
        "{refused:?}\n{}",
        run.transcript()
    );
}

#[test]
fn dash_vv_adds_messages_and_does_not_change_the_result() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let run = node.netfix("snapshot").exits(0);
    assert!(run.err.is_empty(), "{}", run.transcript());
    let plain = node.netfix("list -o json").exits(0);
    let verbose = node.netfix("list -o json -vv").exits(0);
    assert_eq!(plain.out, verbose.out);
    let snapshot = node.netfix("snapshot -vv -o json").exits(0);
    assert_eq!(snapshot.json()["exit"], 0, "{}", snapshot.transcript());
    assert!(
        snapshot.err.lines().filter_map(parse).count() > 5,
        "{}",
        snapshot.transcript()
    );
    for line in snapshot.err.lines() {
        assert!(
            line.starts_with("netlink ") || line.starts_with("netfix: "),
            "{line}"
        );
    }
}

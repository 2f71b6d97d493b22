//! What of the host names its NIC by the ifindex, which a reload changes: it is named before the loss, and after it until it is cured. Judged
//! by nft(8) and ss(8).

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::background::Background;
use crate::common::{Node, ReportedProblem, Run};

const CODE: &str = "ifindex-named";
const RULES: &str = "flush ruleset
    table inet fw {
        set wan { type iface_index; elements = { eth0 }; }
        chain in {
            type filter hook input priority 0;
            iif eth0 tcp dport 7777 drop
            iif @wan tcp dport 7778 drop
            iifname eth0 tcp dport 7779 drop
            iif lo accept
        }
    }";

fn load_rules(node: &Node) {
    let mut nft = node.ns.exec("nft");
    let status = nft.arg(RULES).stdin(Stdio::null()).status();
    assert!(status.expect("nft").success());
}

fn shown(node: &Node, program: &str, words: &str) -> String {
    let mut command = node.ns.exec(program);
    let output = command.args(words.split_whitespace()).output();
    String::from_utf8_lossy(&output.expect("a program").stdout).into_owned()
}

/// The one finding about eth0, with these words.
#[track_caller]
fn names(run: &Run, severity: &str, words: &[&str]) -> ReportedProblem {
    let mut found = run.coded(CODE);
    found.retain(|one| one.object == "eth0");
    assert_eq!(found.len(), 1, "{found:#?}\n{}", run.transcript());
    let one = found.remove(0);
    assert_eq!(one.severity, severity, "{one:?}");
    for word in words {
        assert!(one.has(word), "{word:?}: {one:?}");
    }
    one
}

#[track_caller]
fn is_calm(run: &Run) {
    let mut found = run.coded(CODE);
    found.retain(|one| one.severity != "info");
    assert_eq!(found, [], "{}", run.transcript());
}

#[test]
fn rules_that_name_the_nic_are_told_until_they_are_loaded_again() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    load_rules(&node);
    let index = node.ns.index_of("eth0");
    let named = format!(
        "2 nft rules (inet fw in handle 3 and inet fw in handle 4) name its ifindex {index}"
    );
    names(
        &node.netfix_json("snapshot").exits(0),
        "warning",
        &[&named, "another one"],
    );
    names(&node.netfix_json("check").exits(1), "warning", &[&named]);
    node.lose_and_reload();
    let former = format!(
        "former ifindex {index} ({} now), and no packet matches",
        node.ns.index_of("eth0")
    );
    let ruleset = shown(&node, "nft", "list ruleset");
    assert!(ruleset.contains(&format!("iif {index} ")), "{ruleset}");
    let words = ["2 nft rules", former.as_str(), "nft -f"];
    for command in ["restore", "restore", "verify"] {
        names(&node.netfix_json(command).exits(5), "error", &words);
    }
    names(&node.netfix_json("check").exits(2), "error", &words);
    // A snapshot, of which the record has the present ifindex, does not make it well.
    node.netfix("snapshot").exits(0);
    names(&node.netfix_json("check").exits(2), "error", &words);
    load_rules(&node);
    is_calm(&node.netfix_json("restore").exits(0));
    names(
        &node.netfix_json("check").exits(1),
        "warning",
        &["2 nft rules"],
    );
    let node_file = std::fs::read_to_string(node.state_dir().join("node.json"));
    assert!(node_file.expect("a record").contains("\"former_indexes\""));
    node.snapshot();
    let node_file = std::fs::read_to_string(node.state_dir().join("node.json"));
    assert!(!node_file.expect("a record").contains("\"former_indexes\""));
}

#[test]
fn a_program_whose_socket_is_on_the_former_nic_is_told_until_it_has_bound_again() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let mut command = node.ns.exec("python3");
    command.args(["-c", include_str!("../common/sockets.py")]);
    command.args(["eth0", "bound:7000", "lite:7001", "local:7002"]);
    let program = Background::start(&mut command, node.temp().join("program"));
    program.wait_for("ready");
    let title = format!("udp port 7000 of python3 (pid {})", program.id());
    let words = [
        title.as_str(),
        "udplite port 7001",
        "udp port 7002",
        "name its ifindex",
    ];
    names(&node.netfix_json("snapshot").exits(0), "info", &words);
    names(&node.netfix_json("check").exits(0), "info", &words);
    node.lose_and_reload();
    let index = node.ns.index_of("eth0");
    let former = format!(" ({index} now), and no packet is received: restart the programs");
    let words = [title.as_str(), "udp port 7002", former.as_str()];
    names(&node.netfix_json("restore").exits(5), "error", &words);
    names(&node.netfix_json("check").exits(2), "error", &words);
    // The former sockets stay open, and the program does not need them.
    let id = i32::try_from(program.id()).expect("a process id");
    kill(Pid::from_raw(id), Signal::SIGUSR1).expect("a program that runs");
    program.wait_for("again");
    let sockets = shown(&node, "ss", "-Hnulp sport 7000");
    assert_eq!(sockets.lines().count(), 2, "{sockets}");
    assert!(sockets.contains("%eth0:7000"), "{sockets}");
    is_calm(&node.netfix_json("restore").exits(0));
    is_calm(&node.netfix_json("check").exits(0));
}

#[test]
fn rules_that_match_another_link_are_told_until_they_are_loaded_again_or_given_up() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    load_rules(&node);
    let index = node.ns.index_of("eth0");
    node.snapshot();
    node.lose_and_reload();
    node.ns
        .ip(&format!("link add taker index {index} type bridge"));
    let ruleset = shown(&node, "nft", "list ruleset");
    assert!(ruleset.contains("iif \"taker\" "), "{ruleset}");
    let former = format!(
        "former ifindex {index} ({} now). taker has that one now",
        node.ns.index_of("eth0")
    );
    let words = [
        "2 nft rules",
        former.as_str(),
        "a packet of taker matches",
        "nft -f",
    ];
    for command in ["restore", "verify"] {
        names(&node.netfix_json(command).exits(5), "error", &words);
    }
    names(&node.netfix_json("check").exits(2), "error", &words);
    // A snapshot, of which the record has the ifindex as that of the other link, does not make it well.
    node.netfix("snapshot").exits(0);
    names(&node.netfix_json("check").exits(2), "error", &words);
    // The rules are for the other link.
    node.netfix("snapshot --accept host").exits(0);
    is_calm(&node.netfix_json("check").exits(0));
    is_calm(&node.netfix_json("restore").exits(0));
}

//! `plan` and `diff`: they list steps and differences, and change nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::background::Monitor;
use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run};

#[test]
fn plan_lists_the_missing_macvlans_and_creates_none() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    let (in_pod, on_node) = (
        Monitor::of(&pods[0].ns, &node),
        Monitor::of(&node.ns, &node),
    );
    let files = node.state_files();
    let run = node.netfix_json("plan").exits(0).errors(&[]);
    for pod in &pods {
        let steps = run.steps(pod);
        let creates: Vec<_> = steps
            .iter()
            .filter(|step| step.contains("macvlan"))
            .collect();
        let begin = format!("+ macvlan eth0 on eth0 mode bridge address {} ", pod.mac());
        assert!(
            creates.len() == 1 && creates[0].starts_with(&begin),
            "{steps:#?}"
        );
        let address = format!("+ address {}/16 dev eth0", pod.address());
        assert!(steps.contains(&address), "{steps:#?}");
    }
    let screen = node.netfix("plan").exits(0);
    assert_eq!(
        screen.out.matches("+ macvlan eth0").count(),
        2,
        "one line a pod\n{}",
        screen.transcript()
    );
    assert_eq!(in_pod.heard(), "", "plan changed the pod");
    assert_eq!(on_node.heard(), "", "plan changed the node");
    assert_eq!(files, node.state_files(), "plan changed the state folder");
    assert!(pods.iter().all(|pod| !pod.has_eth0()));
}

/// The steps in a document: of the host (`""`) and of every pod that has steps.
fn all_steps(run: &Run) -> BTreeMap<String, Vec<String>> {
    let texts = |steps: &Value| -> Vec<String> {
        let steps = steps.as_array().into_iter().flatten();
        steps
            .map(|step| step.as_str().expect("a step is a text").to_owned())
            .collect()
    };
    let json = run.json();
    let pods = json["pods"].as_array().into_iter().flatten();
    let of_pods = pods.map(|pod| {
        let id = pod["id"].as_str().expect("an id").to_owned();
        (id, texts(&pod["steps"]))
    });
    of_pods
        .chain([(String::new(), texts(&json["node"]["steps"]))])
        .filter(|(_, steps)| !steps.is_empty())
        .collect()
}

/// The plan after a loss is printed twice; the restore does the same, and afterwards the plan is empty.
fn assert_restore_follows_the_plan(
    node: &Node,
    pods: &[Pod<'_>],
    (host, before): (&Capture, &[Capture]),
) {
    let planned = all_steps(&node.netfix_json("plan").exits(0).errors(&[]));
    assert!(!planned.is_empty(), "nothing was lost");
    let dry = all_steps(&node.netfix_json("restore --dry-run").exits(0).errors(&[]));
    assert_eq!(dry, planned, "the dry run is another plan");
    let restored = node.netfix_json("restore").exits(0).errors(&[]);
    assert_eq!(all_steps(&restored), planned, "{}", restored.transcript());
    for (pod, before) in pods.iter().zip(before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(host);
    let rest = all_steps(&node.netfix_json("plan --exit-code").exits(0));
    assert!(rest.is_empty(), "{rest:#?}");
}

/// One object of every kind that a plan has steps for.
fn furnish(pod: &Pod<'_>) {
    pod.ip("link set eth0 mtu 1400 txqueuelen 77 alias furnished");
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip("addr add 10.88.7.1/24 label eth0:one dev eth0");
    pod.ip("route add 172.16.0.0/12 via 10.88.0.3 metric 50");
    pod.ip("route add 172.16.0.0/12 dev eth0 scope link metric 60 table 7");
    pod.ip("rule add from 10.88.7.1 table 7 priority 1000");
    pod.ip("neigh add 10.88.0.77 lladdr 02:00:00:77:00:01 nud permanent dev eth0");
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    pod.ns.set_sysctl("ipv4/neigh/eth0/gc_stale_time", "77");
}

fn lose_single_parts(pods: &[Pod<'_>]) {
    pods[0].ip("addr del 10.88.7.1/24 dev eth0");
    pods[0].ip("route del 172.16.0.0/12 via 10.88.0.3 metric 50");
    pods[0].ip("neigh del 10.88.0.77 dev eth0");
    pods[0].ip("link set eth0 mtu 1300");
    pods[0].ns.set_sysctl("ipv4/conf/eth0/arp_notify", "0");
    pods[1].ip("route del default");
}

#[test]
fn restore_follows_the_plan_after_a_reload_for_an_interface_that_went_down_and_for_single_parts() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    furnish(&pods[0]);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let host = node.capture();
    node.snapshot();
    node.lose_and_reload();
    assert_restore_follows_the_plan(&node, &pods, (&host, &before));
    pods[0].ip("link set eth0 down");
    assert_restore_follows_the_plan(&node, &pods, (&host, &before));
    lose_single_parts(&pods);
    assert_restore_follows_the_plan(&node, &pods, (&host, &before));
}

#[test]
fn the_exit_codes_of_plan_and_diff_show_differences() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    for words in ["diff", "plan --exit-code"] {
        let run = node.netfix_json(words).exits(0);
        assert!(all_steps(&run).is_empty(), "{}", run.transcript());
    }
    node.lose_and_reload();
    for (words, code) in [("plan", 0), ("plan --exit-code", 3)] {
        let run = node.netfix_json(words).exits(code);
        assert_eq!(run.json()["exit"], code);
        assert!(!run.steps(&pods[0]).is_empty(), "{}", run.transcript());
    }
    let run = node.netfix_json("diff").exits(3);
    for pod in &pods {
        let lines = run.steps(pod);
        assert!(
            lines.iter().any(|line| line.contains(" eth0")),
            "{}",
            run.transcript()
        );
    }
    node.restore();
    node.netfix("diff").exits(0);
}

#[test]
fn diff_lists_a_single_changed_property() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let only = |pod: &Pod<'_>, what: &str, words: &[&str]| {
        let run = node.netfix_json("diff").exits(3);
        let all = all_steps(&run);
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            [pod.name()],
            "{}",
            run.transcript()
        );
        let lines = &all[pod.name()];
        let names_all = |line: &String| words.iter().all(|word| line.contains(word));
        assert!(
            lines.iter().all(|line| line.contains(what)) && lines.iter().any(names_all),
            "{lines:#?}"
        );
    };
    pods[1].ip("link set eth0 mtu 1400");
    only(&pods[1], "mtu", &["link eth0", "1400", "1500"]);
    pods[1].ip("link set eth0 mtu 1500");
    pods[0].ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    only(&pods[0], "arp_notify", &["net/ipv4/conf/eth0/"]);
}

#[test]
fn without_the_nic_plan_and_diff_say_what_is_missing_and_how_many_pods_wait_for_it() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    node.lose();
    for command in ["plan", "diff", "plan --exit-code"] {
        node.netfix(command)
            .exits(5)
            .lacks("nothing to do")
            .stdout_has(&["cannot plan: the host's eth0 is missing; 2 pods wait for it"]);
    }
}

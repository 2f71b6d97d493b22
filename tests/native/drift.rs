//! `plan` and `diff`: what would be done, and what differs; nothing is touched.

use crate::common::Node;
use crate::common::background::Monitor;

#[test]
fn plan_prints_the_macvlans_it_would_create_and_creates_none() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    let (in_pod, on_node) = (Monitor::of(&pods[0].ns, &node), Monitor::of(&node.ns, &node));
    let files = node.state_files();
    let run = node.netfix("plan").exits(0).says(&[
        "+ macvlan eth0",
        pods[0].name(),
        pods[1].name(),
        &pods[0].mac(),
        &pods[0].address(),
    ]);
    assert!(run.out.matches("+ macvlan eth0").count() == 2, "one line a pod\n{}", run.told());
    assert_eq!(in_pod.heard(), "", "plan changed the pod");
    assert_eq!(on_node.heard(), "", "plan changed the node");
    assert_eq!(files, node.state_files(), "plan changed the state folder");
    assert!(pods.iter().all(|pod| !pod.has_eth0()));
}

#[test]
fn plan_exit_code_tells_whether_there_is_drift() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.netfix("plan --exit-code").exits(0).does_not_say("+ macvlan");
    node.lose_and_reload();
    node.netfix("plan --exit-code").exits(3).says(&["+ macvlan eth0", pods[0].name()]);
    node.netfix("plan").exits(0);
}

#[test]
fn a_dry_run_is_the_plan() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose_and_reload();
    let plan = node.netfix("plan").exits(0);
    let dry = node.netfix("restore --dry-run").exits(0);
    assert_eq!(plan.out, dry.out, "the dry run prints another plan");
    assert!(!pods[0].has_eth0(), "a dry run created an interface");
}

#[test]
fn diff_tells_by_its_exit_code_whether_anything_differs() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.netfix("diff").exits(0);
    node.lose_and_reload();
    node.netfix("diff").exits(3).says(&[pods[0].name(), pods[1].name(), "eth0"]);
    node.restore();
    node.netfix("diff").exits(0);
}

#[test]
fn diff_sees_a_single_changed_property() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[1].ip("link set eth0 mtu 1400");
    node.netfix("diff").exits(3).says(&[pods[1].name(), "mtu", "1400", "1500"]);
    pods[1].ip("link set eth0 mtu 1500");
    pods[0].ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    node.netfix("diff").exits(3).says(&[pods[0].name(), "arp_notify"]);
}

#[test]
fn diff_of_one_pod_does_not_speak_of_the_others() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("route del default");
    node.netfix(&format!("diff {}", pods[1].name())).exits(0).does_not_say(pods[0].name());
    node.netfix(&format!("diff {}", pods[0].name())).exits(3).says(&[pods[0].name(), "default"]);
}

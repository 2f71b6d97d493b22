//! What the guard leaves alone: deleted links, open windows, the work of another netfix, and a loss that repeats.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::{Guard, add_upper, beside, once, pod_on, remembered, starting, unplanned, upgrade};
use crate::common::background::{Background, wait_until};
use crate::common::runtimes::{FakeCri, Sandbox, Script};
use crate::common::{Node, Pod};

#[test]
fn a_link_that_somebody_deleted_is_told_once_and_restored_only_if_wanted() {
    let node = Node::new();
    add_upper(&node);
    let pods = [pod_on(&node, "web", "vx0"), node.pod("db").simple()];
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    node.ns.ip("link del vx0");
    guard.says("link-deleted: vx0: was deleted while eth0 stayed");
    guard.says("left alone");
    // Any event makes it look again.
    node.ns.ip("link add other0 type bridge");
    thread::sleep(Duration::from_secs(3));
    assert_eq!(guard.text().matches("link-deleted").count(), 1);
    assert!(!node.ns.has_link("vx0") && !pods[0].has_eth0());
    assert!(guard.windows().is_empty());
    drop(guard);
    once(&node, "--also-deleted").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_deleted_link_stays_deleted_when_the_pods_of_another_nic_are_restored() {
    let node = Node::new();
    node.ns.ip("link add eth1 type veth peer name up1");
    node.ns.ip("link set eth1 up");
    node.ns.ip("link set up1 up");
    add_upper(&node);
    let (deleted, other) = (pod_on(&node, "web", "vx0"), pod_on(&node, "db", "eth1"));
    let before = other.capture();
    node.snapshot();
    node.ns.ip("link del vx0");
    node.ns.ip("link del eth1");
    node.ns.ip("link add eth1 type veth peer name up1");
    node.ns.ip("link set up1 up");
    once(&node, "").stderr_has(&["link-deleted: vx0"]);
    other.assert_same_as(&before);
    assert!(!node.ns.has_link("vx0") && !deleted.has_eth0());
}

#[test]
fn what_somebody_changed_in_a_pod_that_lost_nothing_stays_when_others_are_restored() {
    let node = Node::new();
    let load = || {
        node.ns.ip("link add eth1 type veth peer name up1");
        node.ns.ip("link set eth1 up");
        node.ns.ip("link set up1 up");
    };
    load();
    let (changed, lost) = (node.pod("web").simple(), pod_on(&node, "db", "eth1"));
    let bridged = node.pod("api");
    node.ns.batch(&format!(
        "link add br1 type bridge\nlink set br1 up\naddr add 10.55.0.1/24 dev br1
        link add v1 type veth peer name eth0 netns {}\nlink set v1 master br1 up\n",
        bridged.name()
    ));
    bridged.ns.batch(
        "link set eth0 up\naddr add 10.55.0.2/24 dev eth0\nroute add default via 10.55.0.1\n",
    );
    let before = lost.capture();
    node.snapshot();
    node.ns.ip("link set v1 nomaster");
    changed.ns.batch(
        "link set eth0 down\nlink set eth0 address 02:00:00:88:07:07\nlink set eth0 mtu 1400\nlink set eth0 up
        route replace default via 10.88.0.254\n",
    );
    changed.ns.set_sysctl("ipv4/conf/eth0/rp_filter", "2");
    // On the host, on the NIC that stays.
    node.ns.batch(
        "link set eth0 mtu 1450\naddr del 10.88.0.2/16 dev eth0\naddr add 10.88.0.3/16 dev eth0
        route replace default via 10.88.0.254\n",
    );
    let host = || node.ns.ip("-j addr show dev eth0") + &node.ns.ip("-j route show dev eth0");
    let (as_changed, host_as_changed) = (changed.capture(), host());
    node.ns.ip("link del eth1");
    load();
    once(&node, "").stderr_has(&["1 of 1 pod restored"]);
    lost.assert_same_as(&before);
    let port = node.ns.ip("link show v1");
    assert!(!port.contains("master"), "{port}");
    changed.assert_same_as(&as_changed);
    assert_eq!(host(), host_as_changed);
}

#[test]
fn a_loss_that_is_left_alone_is_named_and_nothing_is_called_well() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.netfix_alone("snapshot").exits(0);
    node.netfix_alone("guard --once")
        .exits(0)
        .stderr_has(&["watching: nothing to restore"]);
    let named = |words: &[&str]| {
        let run = node.netfix_alone("guard --once").exits(1).stderr_has(words);
        assert!(
            !run.err.contains("nothing to restore"),
            "{}",
            run.transcript()
        );
    };
    // A pod's addresses.
    pods[0].ip("addr flush dev eth0");
    named(&[
        "left alone: ",
        pods[0].name(),
        "has lost all its",
        "under it stayed",
    ]);
    // A link that is down, beside it.
    pods[1].ip("link set eth0 down");
    named(&[pods[0].name(), pods[1].name(), "is down"]);
    let deeds = beside(&node, "status -o json").json();
    let deeds = deeds["status"]["guard"]["deeds"].as_array().cloned();
    let deeds = deeds.expect("deeds");
    assert_eq!(deeds.len(), 2, "{deeds:#?}");
    let last = deeds[1]["text"].as_str().expect("words");
    assert!(
        last.contains("left alone: ") && last.contains("is down"),
        "{last}"
    );
    node.netfix_alone("restore").exits(0);
    // One history: what was left alone, then the restore.
    let listed = beside(&node, "report --list -o json").exits(0).json();
    let listed = listed["windows"].as_array().cloned().expect("lines");
    let left = listed.iter().map(|line| line["left"]["text"].as_str());
    let left: Vec<_> = left
        .map(|text| text.map(|text| text.contains("left alone")))
        .collect();
    assert_eq!(left, [Some(true), Some(true), None], "{listed:#?}");
    beside(&node, "report --list")
        .exits(0)
        .stdout_has(&["Left alone", "1 window"]);
    // The host's own.
    let host = node.ns.ip("-j addr show dev eth0");
    node.ns.ip("addr flush dev eth0");
    named(&["the host (eth0 has lost all its"]);
    node.netfix_alone("restore").exits(0);
    assert_ne!(node.ns.ip("-4 -br addr show dev eth0").trim(), "", "{host}");
    node.netfix_alone("guard --once").exits(0);
    // A pod whose record nobody can read.
    let checkpoint = node.checkpoint_of(&pods[0]);
    fs::write(&checkpoint, "{").expect("a damaged checkpoint");
    fs::remove_dir_all(node.state_dir().join("generations")).expect("the generations");
    named(&[pods[0].name(), "its checkpoint cannot be read"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert!(unplanned(&node).is_empty());
}

#[test]
fn a_selector_that_matches_no_pod_is_not_found() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let run = node.netfix("guard --once --pod shop/nosuch").exits(4);
    run.stderr_has(&["not-found: ", "--pod shop/nosuch"]);
    let mut command = node.netfix_command(&[], "guard --pod shop/nosuch");
    let guard = Background::start(&mut command, node.temp().join("nosuch"));
    assert!(
        wait_until(|| guard.text().contains("not-found: ")),
        "{}",
        guard.text()
    );
    assert!(!guard.text().contains("nothing of"), "{}", guard.text());
}

#[test]
fn a_pod_that_is_torn_down_while_the_guard_waits_for_a_nic_gets_nothing_back() {
    let node = Node::new();
    let nic = |number: u32| {
        let pair = format!("link add eth{number} type veth peer name up{number}");
        node.ns.ip(&pair);
        node.ns.ip(&format!("link set eth{number} up"));
        node.ns.ip(&format!("link set up{number} up"));
    };
    nic(1);
    nic(2);
    let pods = [
        node.pod("web").simple(),
        pod_on(&node, "api", "eth1"),
        pod_on(&node, "db", "eth2"),
    ];
    let before = pods[0].capture();
    let sandboxes = (1..).zip(&pods);
    let sandboxes = sandboxes.map(|(number, pod)| Sandbox::of(pod, pod.name(), number));
    let script = Script {
        sandboxes: sandboxes.collect(),
        ..Script::default()
    };
    let cri = FakeCri::start(&node.temp().join("cri.sock"), script);
    let socket = cri.socket.display();
    let runtime = format!("--runtime cri --runtime-endpoint unix://{socket}");
    node.netfix(&format!("snapshot {runtime}")).exits(0);
    node.ns.ip("link del eth2");
    node.lose_and_reload();
    let words = format!("--nic-wait 4s {runtime}");
    let mut guard = starting(&node, &words).spawn().expect("a guard");
    let window = node.state_dir().join("window.json");
    assert!(wait_until(|| window.exists()));
    cri.change(|script| {
        script.sandboxes.remove(1);
    });
    pods[1].ip("link del eth0");
    guard.wait().expect("its end");
    pods[0].assert_same_as(&before);
    assert!(!pods[1].has_eth0(), "restored in a pod that is torn down");
}

#[test]
fn nothing_is_done_in_an_open_window() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    let script = node.temp().join("upgrade.sh");
    let path = node.state_dir().join("window.json");
    fs::write(&script, "ip link del eth0; sleep 3; exit 1\n").expect("a script");
    let script_path = script.display().to_string();
    let mut command = upgrade(&node, "--force", &["sh", &script_path]);
    let window = Background::start(&mut command, node.temp().join("upgrade"));
    guard.says("the window of `netfix upgrade` is open");
    assert!(wait_until(|| !path.exists()), "{}", window.text());
    window.finish();
    // The window is over, and the NIC is missing.
    guard.says("waiting for eth0");
    assert!(guard.windows().is_empty());
    node.reload();
    guard.closes(1);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn another_netfix_is_waited_for_and_what_it_has_restored_is_not_restored_again() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    node.lose();
    let mut command = node.netfix_command(&[], "restore --nic-wait 60s --watch 3s");
    let restore = Background::start(command.stdin(Stdio::null()), node.temp().join("restore"));
    let lock = node.state_dir().join("lock");
    let is_held = || fs::read_to_string(&lock).is_ok_and(|text| text.contains("(restore)"));
    assert!(wait_until(is_held), "{}", restore.text());
    node.reload();
    assert!(wait_until(|| pods.iter().all(Pod::has_eth0)));
    restore.finish();
    let is_told = || {
        guard
            .text()
            .lines()
            .last()
            .is_some_and(|line| line.contains("watching"))
    };
    assert!(wait_until(is_told), "{}", guard.text());
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert!(guard.windows().is_empty(), "{}", guard.text());
}

#[test]
fn a_loss_that_repeats_is_given_up_until_a_person_restores() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    node.snapshot();
    let mut attempts = 0;
    let mut text = String::new();
    for _ in 0..60 {
        node.lose_and_reload();
        let run =
            node.netfix("guard --once --watch 0s --manager-wait 0s --nic-wait 0s --backoff 200ms");
        text += &run.err;
        if run.err.contains("loss-repeats") {
            break;
        }
        if run.err.contains(": netfix report ") {
            attempts += 1;
            pods[0].assert_same_as(&before);
        }
        thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(attempts, 10, "{text}");
    assert!(
        text.contains("the loss repeats: attempt 10 is due in"),
        "{text}"
    );
    assert!(
        text.contains("lost again after 10 restores in a row"),
        "{text}"
    );
    assert_eq!(remembered(&node)["losses"]["eth0"]["given_up"], true);
    once(&node, "").exits(1);
    assert!(!pods[0].has_eth0(), "it had given up");
    node.netfix("check")
        .exits(2)
        .names("loss-repeats", "", &["10 restores in a row"]);
    node.restore();
    node.netfix("check").has_no("loss-repeats");
    once(&node, "").exits(0).stderr_has(&["watching"]);
    node.lose_and_reload();
    once(&node, "").exits(0);
    pods[0].assert_same_as(&before);
}

#[test]
fn without_a_snapshot_nothing_is_called_well() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    let run = once(&node, "").exits(1);
    run.stderr_has(&["no snapshot of this boot to compare with. Run `netfix snapshot`"]);
    assert!(!node.state_dir().exists());
    node.snapshot();
    let run = once(&node, "").exits(0);
    run.stderr_has(&["watching: nothing to restore"]);
}

//! A pod with more objects than any pod should have: it costs the others nothing.

use std::fmt::Write as _;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::{Value, json};

use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run, kept};

/// A pod with so many routes.
fn pod_with_routes(node: &Node, count: u32) -> Pod<'_> {
    let pod = node.pod("routes").simple();
    pod.ns.batch(&lines(0..count, |high, low| {
        format!("route add 172.16.{high}.{low} via 10.88.0.1")
    }));
    pod
}

/// One line for each number, as a batch of ip(8).
fn lines(numbers: std::ops::Range<u32>, line: impl Fn(u32, u32) -> String) -> String {
    numbers.fold(String::new(), |mut all, number| {
        let _ = writeln!(all, "{}", line(number >> 8, number & 0xff));
        all
    })
}

/// A pod whose macvlan lets so many source MACs through.
fn pod_with_sources(node: &Node, count: u32) -> Pod<'_> {
    let pod = node.pod("sources");
    pod.macvlan("mode source", "");
    pod.ns.batch(&lines(0..count, |high, low| {
        format!("link set eth0 type macvlan macaddr add 02:00:00:00:{high:02x}:{low:02x}")
    }));
    pod.up_with_address();
    pod
}

#[test]
fn a_macvlan_with_5400_source_macs_comes_back() {
    let node = Node::new();
    let pods = [pod_with_sources(&node, 5400), node.pod("plain").simple()];
    node.assert_all_survive_a_loss(&pods);
}

/// Fails unless a snapshot stores all pods as a generation, although one has an object that no restore could bring back.
fn is_reported_and_costs_no_generation(
    node: &Node,
    strange: &Pod<'_>,
    plain: &Pod<'_>,
    words: &[&str],
) {
    let run = node.netfix_json("snapshot").exits(5);
    let run = run.errors(&[("unsupported", strange.name())]);
    let run = run.names("unsupported", strange.name(), words);
    assert_eq!(run.json()["kept"]["generation"], 1, "{}", run.transcript());
    assert!(node.checkpoint_of(plain).exists());
}

#[test]
fn more_source_macs_than_the_kernel_can_list_are_reported_and_the_other_pods_are_stored() {
    let node = Node::new();
    let (strange, plain) = (pod_with_sources(&node, 5600), node.pod("plain").simple());
    is_reported_and_costs_no_generation(&node, &strange, &plain, &["link"]);
}

#[test]
fn a_route_that_the_kernel_cannot_list_is_reported_and_the_other_pods_are_stored() {
    let node = Node::new();
    let (strange, plain) = (node.pod("hops").simple(), node.pod("plain").simple());
    strange.ip("addr add fd88::99:99/64 dev eth0");
    strange.ns.batch(&lines(0..1500, |high, low| {
        format!("route append fd50::/64 via fd88::1:{high:x}:{low:x} dev eth0")
    }));
    is_reported_and_costs_no_generation(&node, &strange, &plain, &["EMSGSIZE"]);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("unsupported", strange.name())]);
    assert!(strange.has_eth0() && plain.has_eth0());
}

/// A window whose COMMAND does nothing. A pod of another test that changes while it is read could not be told from one at risk.
fn window(node: &Node) -> Run {
    let words = "upgrade -o json --yes --foreground --no-pause --watch 0s";
    let mut upgrade = node.script_alone("true", "exec \"$@\" -- true", words);
    Run::of(&mut upgrade).exits(0).errors(&[])
}

/// A pod with more routes than are read of it stops no window.
fn windows_name_it_and_go_on(node: &Node, large: &Pod<'_>, plain: &Pod<'_>) {
    // Without a record it is read whole.
    let first = window(node);
    assert_eq!(first.pod(plain)["state"], "in-sync");
    node.netfix("check")
        .exits(1)
        .names("pod-budget", large.name(), &["5000"]);
    let verify = node.netfix_json("verify").exits(5);
    let verify = verify
        .errors(&[])
        .names("gateway-unknown", large.name(), &["5000"]);
    assert_eq!(verify.pod(large)["state"], "unknown");
    assert_eq!(verify.pod(large)["gateways"][0]["reachable"], true);
    assert_eq!(verify.pod(plain)["state"], "reachable");
    plain.ip("link set eth0 mtu 1400");
    let second = window(node).names("pod-budget", large.name(), &["5000"]);
    assert_eq!(second.pod(large)["state"], "unknown");
    assert_eq!(second.pod(plain)["state"], "in-sync");
}

/// `node.json` has the checkpoint of the large pod but for its routes. Returns it.
fn the_large_checkpoint_is_kept_apart(node: &Node, large: &Pod<'_>) -> Value {
    let state = kept::node_json(&node.state_dir());
    let parts = state["large"].as_object().cloned().unwrap_or_default();
    assert_eq!(parts.keys().collect::<Vec<_>>(), [large.name()]);
    let part = &parts[large.name()]["checkpoint"]["netfix"]["state"];
    assert!(part["addresses"].to_string().contains(&large.address()));
    assert_eq!(part["routes"], json!([]));
    state
}

/// Beyond its budget, the large pod is restored after the others.
fn restore_with_a_small_budget(node: &Node, large: &Pod<'_>) {
    let mut restore = node.netfix_command(&["timeout", "600"], "restore -o json");
    let run = Run::of(restore.args(["--pod-budget", "1ms"])).exits(0);
    let run = run.errors(&[]).names("pod-budget", large.name(), &["1 ms"]);
    assert_eq!(run.pod(large)["state"], "restored");
}

/// How often a file is opened meanwhile.
fn opened(file: &Path, meanwhile: impl FnOnce()) -> usize {
    let watch = inotify::init(CreateFlags::NONBLOCK).expect("an inotify instance");
    // The kernel joins events that are alike and follow each other.
    let wanted = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
    inotify::add_watch(&watch, file, wanted).expect("a watch");
    meanwhile();
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut space);
    std::iter::from_fn(|| events.next().map(drop).ok()).count() / 2
}

/// After a loss, a damaged checkpoint of the large pod changes nothing in it; the right one does.
fn restore_with_a_damaged_checkpoint(node: &Node, large: &Pod<'_>, plain: (&Pod<'_>, &Capture)) {
    let bare = large.capture();
    let file = node.checkpoint_of(large);
    let text = fs::read_to_string(&file).expect("the checkpoint");
    fs::write(&file, text.replacen("172.16.3.7", "172.16.3.8", 1)).expect("a damaged one");
    node.netfix("restore")
        .exits(5)
        .errors(&[("checkpoint-corrupt", large.name())]);
    bare.assert_same(&large.capture(), "the pod with a damaged checkpoint");
    plain.0.assert_same_as(plain.1);
    fs::write(&file, &text).expect("the checkpoint");
    node.restore();
}

#[test]
fn a_pod_with_more_routes_than_are_read_stops_no_window_and_comes_back_in_its_own_turn() {
    let node = Node::new();
    let (large, plain) = (pod_with_routes(&node, 12_000), node.pod("plain").simple());
    let before = large.capture();
    windows_name_it_and_go_on(&node, &large, &plain);
    let of_plain = plain.capture();
    let come_back = || {
        large.assert_same_as(&before);
        plain.assert_same_as(&of_plain);
    };
    node.lose_and_reload();
    node.netfix("check")
        .exits(2)
        .errors(&[("degraded", large.name()), ("degraded", plain.name())]);
    node.restore();
    come_back();

    // The same node without any record.
    fs::remove_dir_all(node.state_dir()).expect("the state directory");
    node.snapshot();
    let mut state = the_large_checkpoint_is_kept_apart(&node, &large);
    node.lose_and_reload();
    // That both are lost is known without their routes: of the large one the checksum alone is read.
    let look = || {
        let looked = node.netfix("guard --once --report-only");
        looked.exits(1).stderr_has(&["would restore"]);
    };
    assert_eq!(opened(&node.checkpoint_of(&large), look), 1);
    restore_with_a_small_budget(&node, &large);
    come_back();
    node.netfix("diff").exits(0);
    node.lose_and_reload();
    restore_with_a_damaged_checkpoint(&node, &large, (&plain, &of_plain));
    come_back();

    // A node.json of an older netfix.
    state.as_object_mut().expect("an object").remove("large");
    let older = kept::with_checksum(state, "/checksum");
    fs::write(node.state_dir().join("node.json"), older).expect("node.json");
    node.lose_and_reload();
    node.restore();
    come_back();
}

#[test]
fn neither_rules_nor_neighbours_of_a_pod_stop_a_window() {
    let node = Node::new();
    let pods = ["rules", "neighbours"].map(|name| node.pod(name).simple());
    pods[0].ns.batch(&lines(0..6000, |high, low| {
        format!("rule add from 172.16.{high}.{low} lookup 100")
    }));
    pods[1].ns.batch(&lines(0..6000, |high, low| {
        format!(
            "neigh add 10.88.{}.{low} lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
            high + 100
        )
    }));
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let check = node.netfix("check").exits(1);
    for pod in &pods {
        assert!(
            check.err.is_empty() && check.out.contains(pod.name()),
            "{}",
            check.transcript()
        );
    }
    window(&node);
    node.lose_and_reload();
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn thousands_of_addresses_of_a_pod_stop_no_window_here_or_of_another_host() {
    let [node, other] = [Node::new(), Node::new()];
    let _web = node.pod("web").simple();
    let large = other.pod("many").simple();
    large.ip("link add d0 type veth peer name d1");
    large.ns.batch(&lines(0..6000, |high, low| {
        format!("addr add 172.16.{high}.{low}/32 dev d0")
    }));
    window(&node);
    let mut preview = other.netfix_command(&["timeout", "600"], "upgrade --dry-run -o json");
    let preview = Run::of(preview.args(["--", "true"])).exits(0);
    preview.errors(&[]);
    window(&other);
}

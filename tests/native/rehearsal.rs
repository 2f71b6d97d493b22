//! Before a loss, the pods are restored in a twin of the node: what would come back otherwise is told, and nothing is changed.

mod elsewhere;
mod safety;

use serde_json::Value;

use crate::common::{Node, Pod, Run};

fn rehearse(node: &Node) -> Run {
    node.netfix_json("check --rehearse")
}

fn figures(run: &Run) -> Value {
    run.json()["check"]["rehearsal"].clone()
}

/// A route of the pod's kernel that its kernel would make again.
fn lose_the_broadcast_route(pod: &Pod<'_>) {
    let routes = pod.ip("-j route show table local type broadcast dev eth0");
    let routes: Value = serde_json::from_str(&routes).expect("JSON");
    let to = routes[0]["dst"]
        .as_str()
        .expect("a broadcast route")
        .to_owned();
    pod.ip(&format!("route del broadcast {to} dev eth0 table local"));
}

/// Three pods with objects of several kinds.
fn with_objects(node: &Node) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(3);
    pods[0].ip("link set eth0 mtu 1400 alias uplink");
    pods[0].ip("addr add 10.9.0.5/24 dev eth0 label eth0:1");
    pods[0].ip("route add 10.10.0.0/16 via 10.9.0.1 metric 7 mtu 1300");
    pods[1].ip("rule add from 10.9.0.0/24 table 77 pref 100");
    pods[1].ip("route add default dev eth0 table 77");
    pods[1].ip("route add blackhole 10.66.0.0/16");
    pods[2].ip("-6 addr add fd00:9::5/64 dev eth0 nodad");
    pods[2].ip("-6 route add fd00:10::/48 via fd00:9::1 dev eth0");
    pods[2].ip("neigh add 10.88.99.99 lladdr 02:00:00:00:00:99 dev eth0");
    pods
}

/// A pod with a link that stays, on which it has routes.
fn with_a_link_that_stays(node: &Node) -> Pod<'_> {
    let pod = node.pod("stays").simple();
    let host = node.ns.name();
    pod.ip(&format!(
        "link add over type veth peer name under netns {host}"
    ));
    pod.ip("link set over up");
    pod.ip("addr add 10.55.0.2/24 dev over");
    pod.ip("route add 10.56.0.0/16 via 10.55.0.1 dev over");
    pod.ip("rule add from 10.55.0.2 table 55");
    pod.ip("route add default via 10.55.0.1 dev over table 55");
    pod
}

/// A pod with a link that was up once, which has given it a queue.
fn with_a_link_that_was_up(node: &Node) -> Pod<'_> {
    let pod = node.pod("queue").simple();
    node.ns.ip(&format!(
        "link add link eth0 name net1 netns {} type macvlan mode bridge",
        pod.name()
    ));
    pod.ip("link set net1 up");
    pod.ip("link set net1 down");
    assert!(pod.ip("link show net1").contains("noqueue"));
    pod
}

/// A pod on a bridge of the host without a port, which stays in the twin.
fn on_a_bridge(node: &Node) -> Pod<'_> {
    node.ns.ip("link add br0 type bridge");
    node.ns.ip("link set br0 up");
    node.ns.ip("addr add 10.54.0.1/24 dev br0");
    let pod = node.pod("bridge");
    node.ns.ip(&format!(
        "link add link br0 name new0 netns {} type macvlan mode bridge",
        pod.name()
    ));
    pod.ip("link set new0 name eth0 up");
    pod.ip("addr add 10.54.0.10/24 dev eth0");
    pod
}

#[test]
fn pods_that_come_back_identical_are_counted_and_nothing_is_changed() {
    let node = Node::new();
    let mut pods = with_objects(&node);
    let learned = node.pod("learned").simple();
    pods.push(with_a_link_that_stays(&node));
    pods.push(with_a_link_that_was_up(&node));
    let bridged = on_a_bridge(&node);
    node.snapshot();
    for ns in [&learned.ns, &node.ns] {
        // A controller, or the probe of a gateway by a netfix that was killed.
        ns.ip("neigh add 10.88.99.98 lladdr 02:00:00:00:00:98 dev eth0 nud reachable extern_learn");
    }
    pods.extend([learned, bridged]);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let (host, files) = (node.capture(), node.state_files());
    let run = rehearse(&node).exits(0);
    let figures = figures(&run);
    // The one on the bridge loses nothing.
    assert_eq!(
        (&figures["pods"], &figures["identical"]),
        (&6.into(), &6.into()),
        "{figures}"
    );
    assert_eq!(figures["unproven"], 0, "{figures}");
    assert_eq!(figures["host"], true, "{figures}");
    run.lacks("rehearsal-differs");
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
    assert_eq!(node.state_files(), files);
    node.netfix("check --rehearse").exits(0).stdout_has(&[
        "rehearsed: 6 of 6 pods come back identical (",
        "; the restore took ",
    ]);
}

#[test]
fn an_object_that_no_record_can_have_is_told_and_a_pod_without_its_network_is_not_rehearsed() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    lose_the_broadcast_route(&pods[0]);
    node.snapshot();
    // netfix has nothing to restore, and says so.
    node.netfix("diff").exits(0);
    node.netfix("check").exits(0);
    let run = rehearse(&node).exits(2);
    let found = run.coded("rehearsal-differs");
    assert_eq!(found.len(), 1, "{}", run.transcript());
    assert!(
        found[0].pod.as_deref() == Some(pods[0].name()),
        "{}",
        run.transcript()
    );
    assert!(found[0].has("table 255"), "{}", run.transcript());
    let figures = figures(&run);
    assert_eq!(
        (&figures["pods"], &figures["identical"]),
        (&2.into(), &1.into()),
        "{figures}"
    );
    is_not_rehearsed_without_its_network(&node, &pods[0]);
}

fn is_not_rehearsed_without_its_network(node: &Node, pod: &Pod<'_>) {
    pod.ip("link del eth0");
    let run = rehearse(node).exits(2);
    let run = run.names("degraded", pod.name(), &["eth0"]);
    assert_eq!(figures(&run)["pods"], 1, "{}", run.transcript());
}

#[test]
fn what_came_after_the_snapshot_is_a_warning() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.snapshot();
    pods[1].ip("route add 10.77.0.0/16 dev eth0");
    pods[2].ip("neigh add 10.88.99.98 lladdr 02:00:00:00:00:98 dev eth0 nud noarp");
    pods[2].ip("neigh add 10.88.99.99 dev eth0 managed");
    let run = rehearse(&node).exits(1);
    let found = run.coded("rehearsal-differs").into_iter();
    let (of_neighbours, found): (Vec<_>, Vec<_>) =
        found.partition(|one| one.pod.as_deref() == Some(pods[2].name()));
    for neighbour in ["10.88.99.98", "10.88.99.99"] {
        let is_found = of_neighbours.iter().any(|one| one.has(neighbour));
        assert!(is_found, "{}", run.transcript());
    }
    assert_eq!(found.len(), 1, "{}", run.transcript());
    assert!(found[0].has("10.77.0.0/16"), "{}", run.transcript());
    node.snapshot();
    let run = rehearse(&node).exits(0).has_no("rehearsal-differs");
    assert_eq!(figures(&run)["identical"], 3, "{}", run.transcript());
}

#[test]
fn links_come_back_on_the_link_below_them_on_the_host_and_in_a_pod() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip("link add mv1 link eth0 type macvlan mode bridge");
    pods[0].ip("link set mv1 up");
    node.ns
        .ip("link add mv0 link eth0 type macvlan mode bridge");
    node.ns.ip("link set mv0 up");
    node.snapshot();
    let run = rehearse(&node).lacks("IFLA_LINK");
    assert_eq!(figures(&run)["identical"], 1, "{}", run.transcript());
}

//! Routes that say that the kernel has made them, and entries of the table `local`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{assert_settled, prepared};
use crate::common::Node;
use crate::common::namespace::{Namespace, unique_name};
use crate::fidelity::{STABLE_SECRET, are_repaired, come_back, numbered};

/// What a network manager adds: addresses without their routes, and these by its own with another metric.
const BY_MANAGER: [&str; 7] = [
    "addr add 10.85.0.51/24 brd + dev eth0 noprefixroute",
    "route add 10.85.0.0/24 dev eth0 proto kernel scope link src 10.85.0.51 metric 100",
    "route add 10.86.0.0/16 via 10.85.0.1 dev eth0 proto static metric 100",
    "-6 addr add fd85::51/64 dev eth0 noprefixroute nodad",
    "-6 route add fd85::/64 dev eth0 proto kernel metric 100",
    "-6 route add default via fd85::1 dev eth0 proto static metric 100",
    "-6 route add fe80::/64 dev eth0 proto kernel metric 1024",
];

#[test]
fn the_hosts_connected_routes_that_a_network_manager_made_come_back() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    for line in BY_MANAGER {
        node.ns.ip(line);
    }
    let (of_pod, of_node) = (pod.capture(), node.capture());
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    pod.assert_same_as(&of_pod);
    node.assert_same_as(&of_node);
    assert_settled(&node);
}

#[test]
fn a_route_that_no_address_would_bring_comes_back_whoever_it_says_made_it() {
    come_back(&[
        &BY_MANAGER,
        &["route add 10.88.0.0/16 dev eth0 proto kernel scope link metric 50"],
        &["route add 10.88.0.0/17 dev eth0 proto kernel scope link"],
        &["route add 10.77.0.0/16 via 10.88.0.1 dev eth0 proto kernel"],
        &["route add 10.77.0.0/16 dev eth0 proto kernel scope link mtu 1400"],
        &[
            "route add 10.77.0.0/16 proto kernel nexthop via 10.88.0.1 dev eth0 nexthop via 10.88.0.3 dev eth0",
        ],
        &["route add local 10.99.7.0/24 dev eth0 table local proto kernel"],
        &["route add broadcast 10.88.0.77 dev eth0 table local proto kernel scope link"],
        &["route add fe80::/64 dev eth0 proto kernel metric 1024"],
        &["route add fd77::/64 dev eth0 proto kernel metric 256 expires 5000"],
        &["route add fd77::/64 dev eth0 proto kernel mtu 1400"],
        &["route add local fd77::/64 dev eth0 table local proto kernel"],
        &["route add multicast ff05::/16 dev eth0 table local proto kernel metric 256"],
    ]);
}

/// Also routes without a link, and the entries of the kernel's own link-local address.
#[test]
fn what_says_that_the_kernel_made_it_and_entries_of_the_table_local_are_not_forgotten() {
    let address = [
        "addr add fd10:NN::5/64 dev eth0",
        "route add default via fd10:NN::1",
    ];
    are_repaired(&[
        (
            &["route add blackhole 10.66.0.0/16 proto kernel"],
            &["route del blackhole 10.66.0.0/16"],
        ),
        (
            &["route add unreachable fd66::/32 proto kernel"],
            &["route del fd66::/32"],
        ),
        (&address, &["-6 route flush table all dev eth0"]),
        (&address, &["-6 route flush table local dev eth0"]),
        (
            &address,
            &["-6 route del local fd10:NN::5 dev eth0 table local"],
        ),
        (
            &address,
            &["-6 route del multicast ff00::/8 dev eth0 table local"],
        ),
        (&[], &["-6 route flush table local dev eth0"]),
        (&STABLE_SECRET, &["-6 route flush table local dev eth0"]),
    ]);
}

#[test]
fn a_connected_route_with_another_source_is_behind_the_kernels_or_in_its_place_as_before() {
    let node = Node::new();
    let rows = ["append", "replace"].map(|verb| {
        [
            "addr add 10.77.0.NN/32 dev eth0".to_owned(),
            format!("route {verb} 10.88.0.0/16 dev eth0 proto kernel scope link src 10.77.0.NN"),
        ]
    });
    let pods = [1, 2].map(|row| {
        let [address, route] = &rows[row - 1];
        numbered(&node, row, &[address, route])
    });
    let routes = || pods[0].ip("route show 10.88.0.0/16");
    let (before, replaced) = (routes(), pods[1].capture());
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    assert_eq!(routes(), before);
    pods[1].assert_same_as(&replaced);
    assert_settled(&node);
}

#[test]
fn entries_of_a_new_ipv6_address_that_the_kernel_adds_late_are_waited_for() {
    let node = Node::new();
    let lines = ["addr add fd10::5/64 dev eth0 nodad"];
    let pod = prepared(&node, &lines);
    let before = pod.capture();
    node.snapshot();
    // The kernel has one worker per processor for the new addresses of all namespaces.
    let busy = Namespace::new(&unique_name());
    busy.batch("link add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up\n");
    let add = (0..2000).map(|n| format!("addr add fd20::{n:x}/128 dev v0 nodad"));
    let add = add.collect::<Vec<_>>().join("\n");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                busy.batch(&add);
                busy.ip("-6 addr flush dev v0 scope global");
            }
        });
        let results = [(); 8].map(|()| {
            pod.ip("-6 route del local fd10::5 dev eth0 table local");
            node.netfix("restore")
        });
        is_done.store(true, Ordering::Relaxed);
        for restored in results {
            restored.exits(0);
        }
    });
    pod.assert_same_as(&before);
    assert_settled(&node);
}

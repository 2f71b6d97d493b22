//! Addresses: their order and every attribute that ip(8) shows; permanent neighbours.

use crate::common::{Node, Pod};

/// Pods by what is special in them, which is a part of their names; no address is in two of them.
const PODS: [(&str, &[&str]); 8] = [
    // Not sorted, so that a numeric order would differ.
    (
        "order4",
        &[
            "addr add 10.88.1.9/16 dev eth0",
            "addr add 10.88.1.200/16 dev eth0",
            "addr add 172.20.0.5/24 dev eth0",
            "addr add 172.20.0.2/24 dev eth0",
            "addr add 10.88.1.3/16 dev eth0",
        ],
    ),
    (
        "order6",
        &[
            "addr add fd88::9:9/64 dev eth0",
            "addr add fd88::9:1/64 dev eth0",
            "addr add fd99::5/48 dev eth0",
            "addr add fd88::9:5/128 dev eth0",
        ],
    ),
    (
        "attributes",
        &[
            "addr add 10.88.7.1/24 brd 10.88.7.255 label eth0:one dev eth0",
            "addr add 10.88.7.2/24 brd 10.88.7.99 dev eth0",
            "addr add 169.254.7.7/16 scope link dev eth0",
            "addr add 192.168.7.1 peer 192.168.7.2/32 dev eth0",
            "addr add fd77::1 peer fd77::2/128 dev eth0",
        ],
    ),
    // Without a connected route.
    (
        "noprefixroute",
        &[
            "addr add 10.99.0.1/16 noprefixroute dev eth0",
            "addr add fd9a::1/64 noprefixroute dev eth0",
        ],
    ),
    // Of the connected route.
    (
        "metric",
        &[
            "addr add 10.98.0.1/16 metric 777 dev eth0",
            "addr add fd98::1/64 metric 778 dev eth0",
        ],
    ),
    (
        "deprecated",
        &[
            "addr add fd88::a:1/64 preferred_lft 0 dev eth0",
            "addr add fd88::a:2/64 nodad dev eth0",
        ],
    ),
    // Instead of the one of the kernel.
    (
        "linklocal",
        &[
            "-6 addr flush dev eth0 scope link",
            "addr add fe80::88/64 dev eth0",
        ],
    ),
    (
        "neighbours",
        &[
            "neigh add 10.88.0.77 lladdr 02:00:00:77:00:01 nud permanent dev eth0",
            "neigh add fd88::77 lladdr 02:00:00:77:00:02 nud permanent dev eth0",
        ],
    ),
];

#[test]
fn order_and_attributes_of_addresses_and_permanent_neighbours_come_back() {
    let node = Node::new();
    let prepared = |(name, lines): &(&str, &[&str])| {
        let pod = node.pod(name).simple();
        for line in *lines {
            pod.ip(*line);
        }
        pod
    };
    let mut pods: Vec<Pod<'_>> = PODS.iter().map(prepared).collect();
    // Duplicate address detection is on in this one.
    let pod = node.pod_with_dad("dad").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip("route add default via fd88::1");
    pods.push(pod);
    node.assert_all_survive_a_loss(&pods);
}

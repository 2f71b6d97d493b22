//! Nexthop objects: of hops, groups and resilient groups, and the routes that refer to them.

use super::{Victim, pods_with, victims};
use crate::common::{Node, Pod};

pub const HOPS: &[&str] = &[
    "nexthop add id 10 via 10.88.0.1 dev eth0",
    "nexthop add id 11 via 10.88.0.3 dev eth0 protocol static",
    "nexthop add id 12 via 192.0.2.1 dev eth0 onlink",
    "nexthop add id 13 blackhole",
    "nexthop add id 14 dev eth0",
    "nexthop add id 20 group 10,3/11,7",
    "nexthop add id 21 group 10/11 type resilient buckets 32 idle_timer 60",
    "route add 10.91.0.0/16 nhid 10",
    "route add 10.92.0.0/16 nhid 20 metric 50",
    "route add 10.93.0.0/16 nhid 21",
    "route add 10.94.0.0/16 nhid 14",
    "route add 10.95.0.0/16 nhid 12 table 77",
];

const HOPS_OF_IPV6: &[&str] = &[
    "addr add fd88::10/64 dev eth0 nodad",
    "nexthop add id 30 via fd88::1 dev eth0",
    "nexthop add id 31 via fd88::2 dev eth0",
    "nexthop add id 32 group 30/31",
    "-6 route add fd91::/64 nhid 30",
    "-6 route add fd92::/64 nhid 32",
    // An IPv4 route through a hop of IPv6.
    "route add 10.96.0.0/16 nhid 30",
];

/// Also a hop without a route, and routes to a hop before and behind others.
pub fn hops_groups_and_their_routes(node: &Node) -> Vec<Pod<'_>> {
    let rows: [&[&str]; 4] = [
        HOPS,
        HOPS_OF_IPV6,
        &["nexthop add id 10 via 10.88.0.1 dev eth0"],
        &[
            "nexthop add id 10 via 10.88.0.1 dev eth0",
            "route add 10.91.0.0/16 nhid 10",
            "route append 10.91.0.0/16 via 10.88.0.3",
            "route add 10.92.0.0/16 via 10.88.0.3",
            "route append 10.92.0.0/16 nhid 10",
        ],
    ];
    pods_with(node, "hops", &rows)
}

pub fn lost_or_changed_hops(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 7] = [
        (HOPS, &["nexthop del id 12"]),
        (HOPS, &["nexthop del id 10"]),
        (HOPS, &["nexthop replace id 11 via 10.88.0.9 dev eth0"]),
        (HOPS, &["nexthop replace id 20 group 11"]),
        (HOPS, &["route del 10.92.0.0/16 nhid 20 metric 50"]),
        (HOPS, &["link set eth0 down", "link set eth0 up"]),
        (HOPS_OF_IPV6, &["nexthop flush"]),
    ];
    victims(node, "hops", &rows)
}

pub fn add_one_and_lose_one(pod: &Pod<'_>) {
    pod.ip("nexthop add id 40 via 10.88.0.7 dev eth0");
    pod.ip("nexthop del id 10");
}

pub fn assert_has_both(pod: &Pod<'_>) {
    let hops = pod.ip("nexthop");
    assert!(hops.contains("id 40 via 10.88.0.7"), "{hops}");
    assert!(hops.contains("id 10 via 10.88.0.1"), "{hops}");
}

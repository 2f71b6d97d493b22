//! Addresses: lifetimes, order, and what the kernel changes only in a new address.

use super::{Victim, named, own, pods_with, victims};
use crate::common::{Node, Pod};

/// Also addresses for privacy addresses.
pub fn lifetimes_and_deleted_connected_routes(node: &Node) -> Vec<Pod<'_>> {
    let rows: [&[&str]; 2] = [
        &[
            "addr add fd10:NN::5/64 dev eth0 valid_lft 5000 preferred_lft 4000",
            "addr add fd10:NN::6/64 dev eth0 mngtmpaddr",
            "addr add fd10:NN::7/64 dev eth0",
        ],
        &[
            "addr add 10.9.NN.5/24 dev eth0",
            "route del 10.9.NN.0/24 dev eth0",
            "addr add fd11::5/64 dev eth0",
            "route del fd11::/64 dev eth0",
        ],
    ];
    pods_with(node, "lifetimes", &rows)
}

const THREE_OF_A_SUBNET: &[&str] = &[
    "addr add 10.9.NN.5/24 dev eth0",
    "addr add 10.9.NN.6/24 dev eth0",
    "addr add 10.9.NN.7/24 dev eth0",
    "route add 172.16.0.0/12 via 10.9.NN.1 src 10.9.NN.6",
];

const THREE_OF_IPV6: &[&str] = &[
    "addr add fd10:NN::5/64 dev eth0",
    "addr add fd10:NN::6/64 dev eth0",
    "addr add fd10:NN::7/64 dev eth0 nodad",
    "route add fd50::/64 via fd10:NN::1 src fd10:NN::7",
];

/// Of addresses that are lost or added again; the first of a subnet is its primary address.
pub fn places_of_addresses(node: &Node) -> Vec<Victim<'_>> {
    let promotes: &[&str] = &["sysctl ipv4/conf/eth0/promote_secondaries 1"];
    let rows: [(&[&str], &[&str]); 4] = [
        (THREE_OF_A_SUBNET, &["addr del 10.9.NN.5/24 dev eth0"]),
        // The others are promoted.
        (
            &[promotes, THREE_OF_A_SUBNET].concat(),
            &["addr del 10.9.NN.5/24 dev eth0"],
        ),
        (
            THREE_OF_A_SUBNET,
            &[
                "addr del 10.9.NN.5/24 dev eth0",
                "addr add 10.9.NN.6/24 dev eth0",
                "addr add 10.9.NN.5/24 dev eth0",
                "addr add 10.9.NN.7/24 dev eth0",
            ],
        ),
        (THREE_OF_IPV6, &["addr del fd10:NN::6/64 dev eth0"]),
    ];
    victims(node, "places", &rows)
}

/// What is there and what it is to be; the plugins give a broadcast address, an administrator often does not.
pub fn other_attributes(node: &Node) -> Vec<Victim<'_>> {
    let rows = [
        ("10.9.NN.5/24 brd +", "10.9.NN.5/24"),
        ("10.9.NN.5/24", "10.9.NN.5/24 brd 10.9.NN.99"),
        ("10.9.NN.5/24 label eth0:one", "10.9.NN.5/24"),
        ("10.9.NN.5/24 scope link", "10.9.NN.5/24"),
        ("10.9.NN.5/24 noprefixroute", "10.9.NN.5/24"),
        ("10.9.NN.5/24", "10.9.NN.5/24 metric 50"),
        ("fd10:NN::5/64", "fd10:NN::5/128"),
        ("fd10:NN::5/64", "fd10:NN::5/64 preferred_lft 0"),
        ("fd10:NN::5 peer fd10:NN::6/128", "fd10:NN::5/64"),
    ];
    let rows = (1..).zip(rows).map(|(row, (wanted, other))| {
        let line = format!("addr add {wanted} dev eth0");
        let pod = named(node, &format!("attributes{row}-"), &[&line]);
        let harm = [("del", wanted), ("add", other)];
        let harm = harm.map(|(verb, address)| format!("addr {verb} {address} dev eth0"));
        (pod, harm.to_vec())
    });
    rows.collect()
}

/// The only address is written anew with all routes of its link, and flushed connected routes come back.
pub fn the_only_address_and_connected_routes(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 2] = [
        (
            &[
                "route add 172.16.0.0/12 via 10.88.0.3 metric 9",
                "route add 192.168.9.0/24 dev eth0 scope link",
            ],
            &[
                "addr del 10.88.1.NN/16 dev eth0",
                "addr add 10.88.1.NN/16 brd + dev eth0",
                "route add default via 10.88.0.1",
                "route add 172.16.0.0/12 via 10.88.0.3 metric 9",
                "route add 192.168.9.0/24 dev eth0 scope link",
            ],
        ),
        (
            &[
                "addr add 10.9.NN.5/24 dev eth0",
                "addr add 192.168.7.1 peer 192.168.7.2/32 dev eth0",
                "addr add 10.10.0.5/24 metric 77 dev eth0",
                "addr add fd10:NN::5/64 dev eth0",
            ],
            &["-4 route flush dev eth0", "-6 route flush dev eth0"],
        ),
    ];
    victims(node, "anew", &rows)
}

pub fn write_anew_and_add_another(pod: &Pod<'_>) {
    for line in [
        "addr del 10.88.1.NN/16 dev eth0",
        "addr add 10.88.1.NN/16 brd + dev eth0",
        "addr add 10.88.1.77/16 dev eth0",
        "route add default via 10.88.0.1",
        "route add 172.31.0.0/16 via 10.88.0.9",
    ] {
        own(pod, line);
    }
}

pub fn assert_has_what_was_added(pod: &Pod<'_>) {
    let (addresses, routes) = (pod.ip("addr show dev eth0"), pod.ip("route show"));
    assert!(addresses.contains("10.88.1.77/16"), "{addresses}");
    assert!(routes.contains("172.31.0.0/16 via 10.88.0.9"), "{routes}");
}

#[test]
fn a_snapshot_names_the_address_of_an_ipv6_group_that_the_kernel_would_refuse() {
    let node = Node::new();
    let pod = super::prepared(&node, &["addr add ff05::77/128 dev eth0 autojoin"]);
    let snapshot = node.netfix_json("snapshot");
    assert_eq!(snapshot.code, Some(5), "{}", snapshot.transcript());
    let named = snapshot.coded("unsupported").into_iter();
    assert!(
        named.into_iter().any(|problem| problem.has("ff05::77/128")),
        "{}",
        snapshot.transcript()
    );
    node.lose_and_reload();
    let restore = node.netfix_json("restore");
    assert_eq!(restore.code, Some(5), "{}", restore.transcript());
    assert!(pod.has_eth0());
}

//! Addresses: lifetimes, order, and what the kernel changes only in a new address.

use super::{comes_back, is_repaired};
use crate::common::Node;

#[test]
fn ipv6_addresses_with_a_lifetime_or_for_privacy_addresses_come_back() {
    comes_back(&[
        "addr add fd10::5/64 dev eth0 valid_lft 5000 preferred_lft 4000",
        "addr add fd10::6/64 dev eth0 mngtmpaddr",
        "addr add fd10::7/64 dev eth0",
    ]);
}

const TWO_OF_A_SUBNET: &[&str] = &[
    "addr add 10.9.0.5/24 dev eth0",
    "addr add 10.9.0.6/24 dev eth0",
    "addr add 10.9.0.7/24 dev eth0",
    "route add 172.16.0.0/12 via 10.9.0.1 src 10.9.0.6",
];

#[test]
fn the_first_address_of_a_subnet_is_the_primary_one_again() {
    is_repaired(TWO_OF_A_SUBNET, &["addr del 10.9.0.5/24 dev eth0"]);
}

#[test]
fn the_first_address_of_a_subnet_is_the_primary_one_again_where_the_others_were_promoted() {
    let node = Node::new();
    let pod = super::prepared(&node, &[]);
    pod.ns.set_sysctl("ipv4/conf/eth0/promote_secondaries", "1");
    for line in TWO_OF_A_SUBNET {
        pod.ip(*line);
    }
    let before = pod.capture();
    node.snapshot();
    pod.ip("addr del 10.9.0.5/24 dev eth0");
    node.restore();
    pod.assert_same_as(&before);
}

#[test]
fn addresses_that_were_added_again_in_another_order_get_their_order_back() {
    is_repaired(
        TWO_OF_A_SUBNET,
        &[
            "addr del 10.9.0.5/24 dev eth0",
            "addr add 10.9.0.6/24 dev eth0",
            "addr add 10.9.0.5/24 dev eth0",
            "addr add 10.9.0.7/24 dev eth0",
        ],
    );
}

#[test]
fn an_ipv6_address_between_two_others_gets_its_place_back() {
    is_repaired(
        &[
            "addr add fd10::5/64 dev eth0",
            "addr add fd10::6/64 dev eth0",
            "addr add fd10::7/64 dev eth0 nodad",
            "route add fd50::/64 via fd10::1 src fd10::7",
        ],
        &["addr del fd10::6/64 dev eth0"],
    );
}

/// What is there and what it is to be; the plugins give a broadcast address, an administrator often does not.
#[test]
fn an_address_that_was_added_again_with_other_attributes_gets_its_own_back() {
    for (wanted, other) in [
        ("10.9.0.5/24 brd +", "10.9.0.5/24"),
        ("10.9.0.5/24", "10.9.0.5/24 brd 10.9.0.99"),
        ("10.9.0.5/24 label eth0:one", "10.9.0.5/24"),
        ("10.9.0.5/24 scope link", "10.9.0.5/24"),
        ("10.9.0.5/24 noprefixroute", "10.9.0.5/24"),
        ("10.9.0.5/24", "10.9.0.5/24 metric 50"),
        ("fd10::5/64", "fd10::5/128"),
        ("fd10::5/64", "fd10::5/64 preferred_lft 0"),
        ("fd10::5 peer fd10::6/128", "fd10::5/64"),
    ] {
        is_repaired(
            &[&format!("addr add {wanted} dev eth0")],
            &[
                &format!("addr del {wanted} dev eth0"),
                &format!("addr add {other} dev eth0"),
            ],
        );
    }
}

#[test]
fn the_only_address_is_written_anew_with_all_routes_of_its_link() {
    let main = "10.88.1.10/16";
    is_repaired(
        &[
            "route add 172.16.0.0/12 via 10.88.0.3 metric 9",
            "route add 192.168.9.0/24 dev eth0 scope link",
        ],
        &[
            &format!("addr del {main} dev eth0"),
            &format!("addr add {main} brd + dev eth0"),
            "route add default via 10.88.0.1",
            "route add 172.16.0.0/12 via 10.88.0.3 metric 9",
            "route add 192.168.9.0/24 dev eth0 scope link",
        ],
    );
}

#[test]
fn an_object_that_the_checkpoint_lacks_survives_when_an_address_is_written_anew() {
    let node = Node::new();
    let pod = super::prepared(&node, &[]);
    node.snapshot();
    pod.ip("addr del 10.88.1.10/16 dev eth0");
    pod.ip("addr add 10.88.1.10/16 brd + dev eth0");
    pod.ip("addr add 10.88.1.77/16 dev eth0");
    pod.ip("route add default via 10.88.0.1");
    pod.ip("route add 172.31.0.0/16 via 10.88.0.9");
    node.restore();
    let (addresses, routes) = (pod.ip("addr show dev eth0"), pod.ip("route show"));
    assert!(addresses.contains("10.88.1.77/16"), "{addresses}");
    assert!(routes.contains("172.31.0.0/16 via 10.88.0.9"), "{routes}");
}

#[test]
fn addresses_of_multicast_groups_and_of_scope_host_come_back_in_each_of_two_pods() {
    let node = Node::new();
    let pods: Vec<_> = ["web", "db"]
        .iter()
        .map(|name| node.pod(name).simple())
        .collect();
    for pod in &pods {
        pod.ip("addr add 239.1.2.3/32 dev eth0 autojoin");
        pod.ip("addr add 192.0.2.10/32 dev eth0 scope host");
    }
    let snapshot = node.netfix_json("snapshot");
    assert_eq!(snapshot.code, Some(0), "{}", snapshot.transcript());
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn connected_routes_that_were_flushed_come_back() {
    is_repaired(
        &[
            "addr add 10.9.0.5/24 dev eth0",
            "addr add 192.168.7.1 peer 192.168.7.2/32 dev eth0",
            "addr add 10.10.0.5/24 metric 77 dev eth0",
            "addr add fd10::5/64 dev eth0",
        ],
        &["-4 route flush dev eth0", "-6 route flush dev eth0"],
    );
}

#[test]
fn a_connected_route_that_was_deleted_before_stays_deleted() {
    comes_back(&[
        "addr add 10.9.0.5/24 dev eth0",
        "route del 10.9.0.0/24 dev eth0",
        "addr add fd10::5/64 dev eth0",
        "route del fd10::/64 dev eth0",
    ]);
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

//! Addresses: their order and every attribute that ip(8) shows; permanent neighbours.

use crate::common::{Node, Pod};

fn comes_back(prepare: impl Fn(&Pod<'_>)) {
    let node = Node::new();
    let pod = node.pod("web").simple();
    prepare(&pod);
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn primary_and_secondary_addresses_keep_their_order() {
    comes_back(|pod| {
        // Not sorted, so that a numeric order would differ.
        for address in [
            "10.88.1.9/16",
            "10.88.1.200/16",
            "172.20.0.5/24",
            "172.20.0.2/24",
            "10.88.1.3/16",
        ] {
            pod.ip(&format!("addr add {address} dev eth0"));
        }
    });
}

#[test]
fn ipv6_addresses_keep_their_order() {
    comes_back(|pod| {
        for address in [
            "fd88::9:9/64",
            "fd88::9:1/64",
            "fd99::5/48",
            "fd88::9:5/128",
        ] {
            pod.ip(&format!("addr add {address} dev eth0"));
        }
    });
}

#[test]
fn label_broadcast_scope_and_peer_come_back() {
    comes_back(|pod| {
        pod.ip("addr add 10.88.7.1/24 brd 10.88.7.255 label eth0:one dev eth0");
        pod.ip("addr add 10.88.7.2/24 brd 10.88.7.99 dev eth0");
        pod.ip("addr add 169.254.7.7/16 scope link dev eth0");
        pod.ip("addr add 192.168.7.1 peer 192.168.7.2/32 dev eth0");
        pod.ip("addr add fd77::1 peer fd77::2/128 dev eth0");
    });
}

#[test]
fn addresses_without_a_connected_route_are_restored_without_one() {
    comes_back(|pod| {
        pod.ip("addr add 10.99.0.1/16 noprefixroute dev eth0");
        pod.ip("addr add fd99::1/64 noprefixroute dev eth0");
    });
}

#[test]
fn the_metric_of_a_connected_route_comes_back() {
    comes_back(|pod| {
        pod.ip("addr add 10.99.0.1/16 metric 777 dev eth0");
        pod.ip("addr add fd99::1/64 metric 778 dev eth0");
    });
}

#[test]
fn a_deprecated_address_stays_deprecated() {
    comes_back(|pod| {
        pod.ip("addr add fd88::9:1/64 preferred_lft 0 dev eth0");
        pod.ip("addr add fd88::9:2/64 nodad dev eth0");
    });
}

#[test]
fn a_custom_link_local_address_replaces_the_kernels() {
    comes_back(|pod| {
        pod.ip("-6 addr flush dev eth0 scope link");
        pod.ip("addr add fe80::88/64 dev eth0");
    });
}

#[test]
fn permanent_neighbours_come_back() {
    comes_back(|pod| {
        pod.ip("neigh add 10.88.0.77 lladdr 02:00:00:77:00:01 nud permanent dev eth0");
        pod.ip("neigh add fd88::77 lladdr 02:00:00:77:00:02 nud permanent dev eth0");
    });
}

#[test]
fn a_dual_stack_pod_comes_back_with_duplicate_detection_running() {
    let node = Node::new();
    let pod = node.pod_with_dad("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip("route add default via fd88::1");
    node.assert_all_survive_a_loss(&[pod]);
}

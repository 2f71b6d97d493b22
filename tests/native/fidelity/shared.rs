//! Addresses that several pods have by design are no conflict.

use crate::common::Node;

/// Pods with these lines each lose their NIC and come back.
fn come_back(of_pods: &[&[&str]]) {
    let node = Node::new();
    let pods: Vec<_> = of_pods
        .iter()
        .enumerate()
        .map(|(number, lines)| {
            let pod = node.pod(&format!("web{number}")).simple();
            for line in *lines {
                pod.ip(*line);
            }
            pod
        })
        .collect();
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn the_address_of_a_service_with_direct_routing_is_the_directors_and_every_servers() {
    let server: &[&str] = &["addr add 10.88.9.9/32 dev lo"];
    come_back(&[&["addr add 10.88.9.9/32 dev eth0"], server, server]);
}

#[test]
fn members_of_a_multicast_group_come_back_beside_each_other() {
    let member: &[&str] = &["addr add 239.1.2.3/32 dev eth0 autojoin"];
    come_back(&[member, member]);
}

#[test]
fn addresses_of_scope_host_come_back_beside_each_other() {
    let pod: &[&str] = &["addr add 10.88.9.8/32 dev eth0 scope host"];
    come_back(&[pod, pod]);
}

//! Addresses that several pods have by design are no conflict.

use super::come_back;

/// The address of a service with direct routing is the director's and every server's.
#[test]
fn the_address_of_a_service_of_a_multicast_group_and_of_scope_host_come_back_in_all_their_pods() {
    let server: &[&str] = &["addr add 10.88.9.9/32 dev lo"];
    let member: &[&str] = &["addr add 239.1.2.3/32 dev eth0 autojoin"];
    let of_host: &[&str] = &["addr add 10.88.9.8/32 dev eth0 scope host"];
    come_back(&[
        &["addr add 10.88.9.9/32 dev eth0"],
        server,
        server,
        member,
        member,
        of_host,
        of_host,
    ]);
}

//! The macvlan: every mode, and every property that ip(8) shows.

use crate::common::{Node, Pod};

/// A pod whose macvlan was created with these arguments is restored unchanged.
fn comes_back(kind: &str, link: &str) {
    comes_back_after(kind, link, |_| {});
}

fn comes_back_after(kind: &str, link: &str, prepare: impl Fn(&Pod<'_>)) {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan(kind, link);
    prepare(&pod);
    pod.up_with_address();
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn mode_bridge_comes_back() {
    comes_back("mode bridge", "");
}

#[test]
fn mode_private_comes_back() {
    comes_back("mode private", "");
}

#[test]
fn mode_vepa_comes_back() {
    comes_back("mode vepa", "");
}

#[test]
fn mode_passthru_comes_back_with_the_parents_mac() {
    comes_back("mode passthru", "");
}

#[test]
fn mode_passthru_without_promiscuity_comes_back() {
    comes_back("mode passthru nopromisc", "");
}

#[test]
fn mode_source_comes_back_with_its_list_of_macs() {
    comes_back_after("mode source", "", |pod| {
        pod.ip("link set dev eth0 type macvlan macaddr add 02:00:00:88:00:01");
        pod.ip("link set dev eth0 type macvlan macaddr add 02:00:00:99:00:07");
    });
}

#[test]
fn mode_source_with_an_empty_list_comes_back() {
    comes_back("mode source", "");
}

/// Several pods, each with a macvlan with its own arguments, are restored after one loss.
fn come_back_together(kinds: &[(&str, &str)]) {
    let node = Node::new();
    let with_kind = |(name, kind): &(&str, &str)| {
        let pod = node.pod(name);
        pod.macvlan(kind, "");
        pod.up_with_address();
        pod
    };
    let pods: Vec<_> = kinds.iter().map(with_kind).collect();
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn pods_of_different_modes_come_back_side_by_side() {
    come_back_together(&[
        ("web", "mode bridge"),
        ("api", "mode private"),
        ("db", "mode vepa"),
    ]);
}

#[test]
fn a_requested_broadcast_queue_length_comes_back() {
    comes_back("mode bridge bcqueuelen 2000", "");
}

#[test]
fn each_pod_keeps_its_requested_broadcast_queue_length() {
    come_back_together(&[
        ("web", "mode bridge bcqueuelen 4000"),
        ("api", "mode bridge"),
    ]);
}

#[test]
fn an_unusual_interface_index_comes_back() {
    comes_back("mode bridge", "index 7777");
}

#[test]
fn a_pod_can_have_the_parents_index() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan(
        "mode bridge",
        &format!("index {}", node.ns.index_of("eth0")),
    );
    pod.up_with_address();
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn mtu_queue_length_and_group_come_back() {
    comes_back("mode bridge", "mtu 1400 txqueuelen 77 group 5");
}

#[test]
fn alias_and_alternative_names_come_back() {
    comes_back_after("mode bridge", "", |pod| {
        pod.ip("link set dev eth0 alias uplink-of-web");
        pod.ip("link property add dev eth0 altname front altname a-name-that-is-longer-than-fifteen-bytes");
    });
}

#[test]
fn flags_set_by_the_administrator_come_back() {
    comes_back_after("mode bridge", "", |pod| {
        pod.ip("link set dev eth0 promisc on");
        pod.ip("link set dev eth0 allmulticast on");
        pod.ip("link set dev eth0 arp off");
    });
}

#[test]
fn an_interface_that_was_down_stays_down() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip(&format!("addr add {}/16 dev eth0", pod.address()));
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn two_macvlans_in_one_pod_come_back_with_their_names() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let name = pod.name();
    node.ns.ip(&format!("link add link eth0 name net1 netns {name} address 02:00:00:88:02:01 index 9 type macvlan mode private"));
    pod.ip("link set net1 up");
    pod.ip("addr add 172.20.0.5/24 dev net1");
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn an_interface_name_with_a_dot_comes_back() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let name = pod.name();
    node.ns.ip(&format!(
        "link add link eth0 name net1.3 netns {name} address 02:00:00:88:02:02 type macvlan mode bridge"
    ));
    pod.ip("link set net1.3 up");
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn jumbo_frames_come_back_on_the_parent_and_in_the_pod() {
    let node = Node::new();
    node.ns.ip("link set eth0 mtu 9000");
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "mtu 8900");
    pod.up_with_address();
    node.assert_all_survive_a_loss(&[pod]);
}

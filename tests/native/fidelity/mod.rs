//! Everything that a pod lost comes back, bit for bit, also if it lost only a part.

mod addresses;
mod bridged;
mod half_lost;
mod kinds;
mod link_local;
mod links;
mod nexthops;
mod ports;
mod qdiscs;
mod routes;
mod rules;
mod shared;
mod sysfs;
mod tunnels;

use crate::common::node::prepared;
use crate::common::{Node, Pod, Run};

/// A link whose addresses come from a secret.
pub const STABLE_SECRET: [&str; 4] = [
    "link set eth0 down",
    "sysctl ipv6/conf/eth0/stable_secret 2001:db8::1",
    "link set eth0 up",
    "route replace default via 10.88.0.1",
];

/// One line for ip(8), or `sysctl KEY VALUE`; `NN` is the pod's number.
fn own(pod: &Pod<'_>, line: &str) {
    let address = pod.address();
    let (_, number) = address.rsplit_once('.').expect("an IPv4 address");
    let line = line.replace("NN", number);
    let setting = line.strip_prefix("sysctl ");
    if let Some((key, value)) = setting.and_then(|it| it.split_once(' ')) {
        pod.ns.set_sysctl(key, value);
    } else {
        pod.ip(&line);
    }
}

/// A simple pod with the objects of a row of a table; its name has the row's number.
pub fn numbered<'n>(node: &'n Node, row: usize, lines: &[&str]) -> Pod<'n> {
    named(node, &format!("row{row}-"), lines)
}

/// A simple pod with these objects.
fn named<'n>(node: &'n Node, name: &str, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod(name).simple();
    for line in lines {
        own(&pod, line);
    }
    pod
}

/// A pod for each row of a table of this name.
fn pods_with<'n>(node: &'n Node, table: &str, rows: &[&[&str]]) -> Vec<Pod<'n>> {
    let rows = (1..).zip(rows);
    rows.map(|(row, lines)| named(node, &format!("{table}{row}-"), lines))
        .collect()
}

/// A pod, and the harm that it is to suffer: lines for `own`.
type Victim<'n> = (Pod<'n>, Vec<String>);

/// One for each row of a table of this name: its objects, and its harm.
fn victims<'n>(node: &'n Node, table: &str, rows: &[(&[&str], &[&str])]) -> Vec<Victim<'n>> {
    let rows = (1..).zip(rows);
    rows.map(|(row, (lines, harm))| {
        let pod = named(node, &format!("{table}{row}-"), lines);
        (pod, harm.iter().copied().map(str::to_owned).collect())
    })
    .collect()
}

/// A pod for each row loses its NIC together with the others, and has all objects of its row afterwards.
pub fn come_back(rows: &[&[&str]]) {
    let node = Node::new();
    node.assert_all_survive_a_loss(&pods_with(&node, "row", rows));
}

/// A pod for each row has the row's objects and suffers its harm, with its NIC in place, and is repaired on the same link.
pub fn are_repaired(rows: &[(&[&str], &[&str])]) {
    let node = Node::new();
    victims_are_repaired(&node, victims(&node, "row", rows));
}

fn victims_are_repaired(node: &Node, victims: Vec<Victim<'_>>) {
    let (pods, harms): (Vec<_>, Vec<_>) = victims.into_iter().unzip();
    all_are_repaired(node, &pods, |row, pod| {
        for line in &harms[row] {
            own(pod, line);
        }
    });
}

/// Each pod suffers harm, and one restore repairs all of them; then nothing differs for netfix either. Returns what differed for it
/// before.
fn all_are_repaired(node: &Node, pods: &[Pod<'_>], harm: impl Fn(usize, &Pod<'_>)) -> Run {
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    for (row, pod) in pods.iter().enumerate() {
        harm(row, pod);
    }
    for (pod, before) in pods.iter().zip(&before) {
        let harmed = before.differences(&pod.capture());
        assert!(!harmed.is_empty(), "{}: nothing was harmed", pod.name());
    }
    let diff = node.netfix_json("diff").exits(3);
    for pod in pods {
        let steps = diff.steps(pod);
        assert!(!steps.is_empty(), "{}\n{}", pod.name(), diff.transcript());
    }
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.netfix("diff").exits(0);
    diff
}

/// No more pods than a rehearsal has at a time.
#[test]
fn what_pods_lose_with_their_nic_comes_back() {
    let node = Node::new();
    let tables: [fn(&Node) -> Vec<Pod<'_>>; 10] = [
        addresses::lifetimes_and_deleted_connected_routes,
        half_lost::neighbours_flags_a_long_alias_and_undumped_settings,
        link_local::addresses_by_hand_and_a_link_that_is_down,
        links::attributes_and_groups_joined_by_hand,
        nexthops::hops_groups_and_their_routes,
        ports::ports_and_backups,
        routes::in_order_with_a_lifetime_in_other_tables_or_of_rare_attributes,
        routes::gateways_where_later_rules_lead_elsewhere,
        rules::every_attribute,
        tunnels::a_vxlan_on_the_pods_own_link,
    ];
    let pods: Vec<_> = tables.iter().flat_map(|table| table(&node)).collect();
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn what_is_lost_or_changed_of_a_link_or_beside_it_is_repaired_in_place() {
    let node = Node::new();
    let tables: [fn(&Node) -> Vec<Victim<'_>>; 6] = [
        half_lost::single_losses,
        half_lost::losses_beside_the_only_link,
        link_local::a_link_local_address_or_none,
        link_local::ipv6_that_went_with_the_mtu,
        links::other_broadcast_addresses_and_groups,
        ports::ports_taken_out_or_changed,
    ];
    let all = tables.iter().flat_map(|table| table(&node)).collect();
    victims_are_repaired(&node, all);
}

#[test]
fn lost_or_changed_addresses_hops_routes_and_rules_are_repaired_in_place() {
    let node = Node::new();
    let tables: [fn(&Node) -> Vec<Victim<'_>>; 7] = [
        addresses::places_of_addresses,
        addresses::other_attributes,
        addresses::the_only_address_and_connected_routes,
        nexthops::lost_or_changed_hops,
        routes::first_routes_and_a_gateway,
        routes::other_attributes,
        rules::a_port_and_the_order_of_one_priority,
    ];
    let all = tables.iter().flat_map(|table| table(&node)).collect();
    victims_are_repaired(&node, all);
}

#[test]
fn what_was_added_later_stays_and_only_a_port_of_another_bridge_is_an_error() {
    let node = Node::new();
    let hops = named(&node, "hops", nexthops::HOPS);
    let port = named(&node, "port", ports::BRIDGED);
    let renewed = named(&node, "renewed", &[]);
    node.snapshot();
    nexthops::add_one_and_lose_one(&hops);
    ports::move_to_another_bridge(&port);
    addresses::write_anew_and_add_another(&renewed);
    node.netfix("restore")
        .exits(5)
        .errors(&[("link-conflict", port.name())])
        .names("surplus", hops.name(), &["nexthop id 40"])
        .names("link-conflict", port.name(), &["br0", "br1"]);
    nexthops::assert_has_both(&hops);
    ports::assert_is_at_the_other_bridge(&port);
    addresses::assert_has_what_was_added(&renewed);
}

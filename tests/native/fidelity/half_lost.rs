//! One part is lost or changed, and the link stays.

use std::path::Path;
use std::slice;

use super::{Victim, named, victims};
use crate::common::{Node, Pod};

const OBJECTS: &[&str] = &[
    "link set eth0 alias own",
    "addr add 10.9.NN.5/24 dev eth0",
    "addr add fd10:NN::5/64 dev eth0",
    "route add 172.16.0.0/12 via 10.9.NN.1",
    "route add fd50::/64 via fd10:NN::1",
    "rule add pref 100 from 10.9.NN.5 lookup 100",
    "neigh add 10.9.NN.9 lladdr 02:00:00:00:00:99 dev eth0",
];

pub fn single_losses(node: &Node) -> Vec<Victim<'_>> {
    let harms = [
        "addr del 10.9.NN.5/24 dev eth0",
        "addr del fd10:NN::5/64 dev eth0",
        "route del 172.16.0.0/12",
        "route del fd50::/64",
        "route del default",
        "rule del pref 100",
        "neigh del 10.9.NN.9 dev eth0",
        "link set eth0 down",
        "link set eth0 mtu 1400",
        "link set eth0 address 02:00:00:00:00:77",
        "link set eth0 txqueuelen 77",
        "link set eth0 group 7",
        "link set eth0 promisc on",
        "link set eth0 arp off",
        "link set eth0 multicast off",
        "link set eth0 dynamic on",
        "link set eth0 trailers off",
        "link set eth0 alias other",
        "link set eth0 addrgenmode none",
        "link set eth0 type macvlan mode private",
        "-4 route flush table all dev eth0",
        "-6 route flush table main dev eth0",
        "addr flush dev eth0",
    ];
    let rows = harms
        .each_ref()
        .map(|harm| (OBJECTS, slice::from_ref(harm)));
    victims(node, "single", &rows)
}

pub fn losses_beside_the_only_link(node: &Node) -> Vec<Victim<'_>> {
    let row: (&[&str], &[&str]) = (
        &[
            "addr add 10.7.7.7/32 dev lo",
            "rule add pref 100 from 10.7.7.7 lookup 100",
            "route add blackhole 172.31.0.0/16",
            "route add 10.7.0.0/16 dev lo table 100",
        ],
        &[
            "route del 10.7.0.0/16 dev lo table 100",
            "rule del pref 100",
            "route del blackhole 172.31.0.0/16",
            "link del eth0",
        ],
    );
    victims(node, "beside", &[row])
}

/// A pod with other values of them.
fn with_undumped_settings(node: &Node) -> Pod<'_> {
    let pod = node.pod("web").simple();
    let keys = [
        "ra_honor_pio_life",
        "ra_honor_pio_pflag",
        "regen_min_advance",
    ];
    let exists = |key: &&&str| Path::new("/proc/sys/net/ipv6/conf/all").join(key).exists();
    for key in keys.iter().filter(exists) {
        pod.ns.set_sysctl(&format!("ipv6/conf/eth0/{key}"), "1");
    }
    pod
}

/// Also neighbours of every kind, and settings that the link dump lacks.
pub fn neighbours_flags_a_long_alias_and_undumped_settings(node: &Node) -> Vec<Pod<'_>> {
    // It answers, also after the loss: of more than `gc_thresh1` neighbours of the machine the kernel forgets a managed one that does not.
    node.gateway.ip("addr add 10.88.0.24/32 dev lo");
    let neighbours = [
        "neigh add 10.88.0.21 lladdr 02:00:00:00:00:21 dev eth0 proto static",
        "neigh add 10.88.0.22 lladdr 02:00:00:00:00:22 dev eth0 extern_learn",
        "neigh add 10.88.0.23 lladdr 02:00:00:00:00:23 dev eth0 nud noarp",
        "neigh add 10.88.0.24 dev eth0 managed",
        "neigh add fd88::25 lladdr 02:00:00:00:00:25 dev eth0 router proto 77",
        "neigh add proxy 10.88.0.26 dev eth0 proto static",
    ];
    let alias = format!("link set eth0 alias {}", "x".repeat(255));
    let flags = [
        "link set eth0 dynamic on",
        "link set eth0 trailers off",
        &alias,
    ];
    vec![
        named(node, "neighbours", &neighbours),
        named(node, "flags", &flags),
        with_undumped_settings(node),
    ]
}

#[test]
fn without_a_proc_of_its_own_netfix_reads_that_of_all() {
    let node = Node::new();
    let pod = with_undumped_settings(&node);
    let before = pod.capture();
    node.netfix_without_fsopen("snapshot").exits(0);
    node.lose_and_reload();
    node.netfix_without_fsopen("restore").exits(0);
    pod.assert_same_as(&before);
}

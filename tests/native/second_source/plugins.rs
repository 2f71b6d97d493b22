//! Chains of plugins, several interfaces, and plugins whose effect netfix cannot restore.

use serde_json::{Value, json};

use super::{Subject, macvlan, restore, with};
use crate::common::Node;
use crate::common::cni::static_ipam;
use crate::common::libcni::Network;

fn tuning(node: &Node, keys: &Value) -> Value {
    with(
        json!({"type": "tuning", "dataDir": node.temp().join("tuning")}),
        keys,
    )
}

#[test]
fn settings_of_tuning_are_restored() {
    let node = Node::new();
    let chain = [
        with(
            macvlan(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"])),
            &json!({"mtu": 1450}),
        ),
        tuning(
            &node,
            &json!({
                "mtu": 1300, "promisc": true, "allmulti": true,
                "sysctl": {
                    "net.ipv4.conf.eth0.arp_announce": "2", "net/ipv4/conf/eth0/rp_filter": "2",
                    "net.ipv6.conf.eth0.accept_ra": "0", "net.ipv4.neigh.eth0.gc_stale_time": "77",
                    "net.ipv4.conf.all.log_martians": "1", "net.ipv4.ip_forward": "1",
                },
            }),
        ),
    ];
    let it = Subject::new(&node, "web", &[&Network::new(&node, "lab", &chain)]);
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    it.assert_back(&run);
}

#[test]
fn a_mac_from_tuning_is_restored() {
    let node = Node::new();
    let chain = [
        macvlan(&static_ipam(&["10.88.2.10/16"])),
        tuning(&node, &json!({"mac": "02:00:00:88:07:07"})),
    ];
    let it = Subject::new(&node, "web", &[&Network::new(&node, "lab", &chain)]);
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    // The link-local address comes from the MAC before that one, which is not recorded anywhere.
    let rest: Vec<_> = it
        .unexplained()
        .into_iter()
        .filter(|line| !line.contains("fe80"))
        .collect();
    assert!(rest.is_empty(), "{rest:#?}\n{}", run.transcript());
    it.attached[0]
        .check(&node, &it.pod)
        .unwrap_or_else(|e| panic!("CHECK: {e}"));
}

#[test]
fn a_mac_from_the_runtime_is_restored() {
    // An early result does not repeat it, so it has to come from the runtime's arguments.
    for version in ["1.0.0", "0.2.0"] {
        let node = Node::new();
        let plugin = with(
            macvlan(&static_ipam(&["10.88.2.10/16"])),
            &json!({"capabilities": {"mac": true}}),
        );
        let network = Network::new(&node, "lab", &[plugin]).version(version);
        let network = network.capabilities(json!({"mac": "02:00:00:88:08:08"}));
        let it = Subject::new(&node, "web", &[&network]);
        assert_eq!(it.before.link("eth0")["address"], "02:00:00:88:08:08");
        node.lose_and_reload();
        let run = restore(&node).exits(0);
        // No MAC was chosen: it comes from the network.
        let mac = it.pod.capture().link("eth0")["address"].clone();
        assert_eq!(mac, "02:00:00:88:08:08", "{}", run.transcript());
        let lines = it.unexplained();
        assert!(
            lines.is_empty(),
            "{version}: {lines:#?}\n{}",
            run.transcript()
        );
    }
}

#[test]
fn a_different_tuning_value_on_an_existing_link_is_reported_and_kept() {
    let node = Node::new();
    let chain = [
        macvlan(&static_ipam(&["10.88.2.10/16"])),
        tuning(&node, &json!({"mtu": 1300})),
    ];
    let it = Subject::new(&node, "web", &[&Network::new(&node, "lab", &chain)]);
    it.pod.ip("link set eth0 mtu 1350");
    let before = it.pod.capture();
    restore(&node).exits(0).errors(&[]).names(
        "partial-source",
        it.pod.name(),
        &["mtu 1300", "1350"],
    );
    before.assert_same(&it.pod.capture(), it.pod.name());
}

#[test]
fn a_read_only_tuning_sysctl_is_an_error_and_the_pod_is_restored() {
    let node = Node::new();
    let chain = [
        macvlan(&static_ipam(&["10.88.2.10/16"])),
        tuning(&node, &json!({"sysctl": {}})),
    ];
    let mut it = Subject::new(&node, "web", &[&Network::new(&node, "lab", &chain)]);
    it.attached[0].cached.config["plugins"][1]["sysctl"] =
        json!({"net.ipv4.conf.eth0.not_there": "1"});
    it.attached[0].write();
    node.lose_and_reload();
    let run = restore(&node)
        .exits(5)
        .errors(&[("unsupported", it.pod.name())])
        .names(
            "unsupported",
            it.pod.name(),
            &["net/ipv4/conf/eth0/not_there = 1"],
        );
    assert!(
        it.unexplained().is_empty(),
        "{:#?}\n{}",
        it.unexplained(),
        run.transcript()
    );
}

#[test]
fn both_interfaces_of_a_pod_are_restored_also_from_the_cache_of_multus() {
    let node = Node::new();
    let first = Network::new(&node, "lab", &[macvlan(&static_ipam(&["10.88.2.10/16"]))]);
    let second = json!({
        "type": "static", "addresses": [{"address": "172.20.0.5/24"}],
        "routes": [{"dst": "172.30.0.0/16", "gw": "172.20.0.1"}],
    });
    let second = Network::new(
        &node,
        "data-net",
        &[with(
            macvlan(&second),
            &json!({"mode": "private", "mtu": 1400}),
        )],
    );
    let it = Subject::new(&node, "web", &[&first, &second.cached_in("multus/results")]);
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    it.assert_back(&run);
    assert_eq!(
        node.netfix_json(&super::words(&node, "plan")).pod(&it.pod)["interfaces"][1]["name"],
        "net1"
    );
}

#[test]
fn an_additional_veth_of_the_bridge_plugin_is_skipped() {
    let node = Node::new();
    let bridge = json!({
        "type": "bridge", "bridge": "cni0", "isGateway": true,
        "ipam": {
            "type": "static", "addresses": [{"address": "10.99.0.5/24", "gateway": "10.99.0.1"}],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    let pairs = Network::new(&node, "pairs", &[bridge, json!({"type": "portmap"})]);
    let data = json!({"type": "static", "addresses": [{"address": "10.88.2.10/16"}]});
    let data = Network::new(&node, "lab", &[macvlan(&data)]);
    let both = Subject::new(&node, "both", &[&pairs, &data]);
    let pair_only = node.pod("pair");
    let untouched = pair_only.capture();
    node.lose_and_reload();
    let run = restore(&node).names("partial-source", "", &["bridge"]);
    both.assert_back(&run);
    untouched.assert_same(&pair_only.capture(), "a pod without any entry");
    restore(&node).has_no("surplus");
}

#[test]
fn unsupported_plugins_are_reported_and_the_rest_is_restored() {
    let node = Node::new();
    let networks = [
        Network::new(&node, "lab", &[macvlan(&static_ipam(&["10.88.2.10/16"]))]),
        Network::new(&node, "functions", &[macvlan(&json!({}))]),
        Network::new(&node, "inside", &[macvlan(&json!({}))]),
    ];
    let mut it = Subject::new(&node, "web", &networks.each_ref());
    it.attached[1].cached.config["plugins"][0]["type"] = "sriov".into();
    it.attached[2].cached.config["plugins"][0]["linkInContainer"] = true.into();
    for attached in &it.attached {
        attached.write();
    }
    // While they exist, netfix reports no problem with them.
    restore(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", "", &["sriov"])
        .names("partial-source", "", &["linkInContainer"]);
    node.lose_and_reload();
    let run = restore(&node)
        .exits(5)
        .errors(&[("unsupported", it.pod.name())])
        .names("unsupported", it.pod.name(), &["net1", "sriov"])
        .names("unsupported", it.pod.name(), &["net2", "linkInContainer"]);
    it.attached[0]
        .check(&node, &it.pod)
        .unwrap_or_else(|e| panic!("CHECK: {e}\n{}", run.transcript()));
    assert!(!it.pod.ns.has_link("net1") && !it.pod.ns.has_link("net2"));
}

#[test]
fn a_lost_effect_of_other_chained_plugins_is_reported() {
    let node = Node::new();
    let mut it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    let plugins = it.attached[0].cached.config["plugins"]
        .as_array_mut()
        .expect("a list");
    plugins.extend(["portmap", "firewall", "sbr", "shaper"].map(|name| json!({"type": name})));
    it.attached[0].write();
    restore(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", it.pod.name(), &["sbr"]);
    node.lose_and_reload();
    let run = restore(&node)
        .exits(5)
        .errors(&[("unsupported", it.pod.name())])
        .names("unsupported", it.pod.name(), &["sbr"])
        .names("unsupported", it.pod.name(), &["shaper"]);
    let run = run.lacks("portmap").lacks("firewall");
    assert!(
        it.unexplained().is_empty(),
        "{:#?}\n{}",
        it.unexplained(),
        run.transcript()
    );
}

#[test]
fn another_kind_of_link_with_that_name_is_kept_and_reported() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    node.lose_and_reload();
    it.pod.ip("link add eth0 type veth peer name other0");
    let before = it.pod.capture();
    restore(&node)
        .exits(1)
        .errors(&[("link-conflict", it.pod.name())])
        .names("link-conflict", it.pod.name(), &["eth0", "veth"]);
    before.assert_same(&it.pod.capture(), it.pod.name());
}

/// What `i40e_net_fix` leaves of a pod with both families in Docker: the link is up, and IPv6 is off.
#[test]
fn a_missing_ipv6_address_is_added_to_a_link_that_is_up_with_ipv6_off() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16", "fd88::2:10/64"]);
    it.pod.ns.set_sysctl("ipv6/conf/eth0/disable_ipv6", "1");
    let run = restore(&node).exits(0);
    it.assert_back(&run);
    // No source has the kernel's own address.
    let said = run.transcript();
    assert!(!said.contains("surplus"), "{said}");
}

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
fn settings_and_macs_of_tuning_and_of_the_runtime_are_restored() {
    let node = Node::new();
    let lab = |chain: &[Value]| Network::new(&node, "lab", chain);
    let settings = [
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
    let settings = Subject::new(&node, "settings", &[&lab(&settings)]);
    let mac = [
        macvlan(&static_ipam(&["10.88.2.20/16"])),
        tuning(&node, &json!({"mac": "02:00:00:88:07:07"})),
    ];
    let mac = Subject::new(&node, "mac", &[&lab(&mac)]);
    // An early result does not repeat the MAC of the runtime, so it has to come from the runtime's arguments.
    let of_runtime = [("1.0.0", 8), ("0.2.0", 9)].map(|(version, last)| {
        let plugin = with(
            macvlan(&static_ipam(&[&format!("10.88.2.3{last}/16")])),
            &json!({"capabilities": {"mac": true}}),
        );
        let wanted = format!("02:00:00:88:08:0{last}");
        let network = lab(&[plugin]).version(version);
        let network = network.capabilities(json!({"mac": wanted}));
        let it = Subject::new(&node, "runtime", &[&network]);
        assert_eq!(it.before.link("eth0")["address"], *wanted);
        (it, wanted)
    });
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    settings.assert_back(&run);
    // The link-local address comes from the MAC before that one, which is not recorded anywhere.
    let mut rest = mac.unexplained();
    rest.retain(|line| !line.contains("fe80"));
    assert!(rest.is_empty(), "{rest:#?}\n{}", run.transcript());
    mac.attached[0]
        .check(&node, &mac.pod)
        .unwrap_or_else(|e| panic!("CHECK: {e}"));
    for (it, wanted) in &of_runtime {
        // No MAC was chosen: it comes from the network.
        let mac = it.pod.capture().link("eth0")["address"].clone();
        assert_eq!(mac, **wanted, "{}", run.transcript());
        let rest = it.unexplained();
        assert!(rest.is_empty(), "{rest:#?}\n{}", run.transcript());
    }
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

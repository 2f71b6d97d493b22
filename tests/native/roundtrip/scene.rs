//! The node and the pod of a case, and what befalls them.

use std::process::Stdio;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::case::{Case, Chapter, Loss};
use crate::common::background::within;
use crate::common::namespace::Namespace;
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, Run};

const BOND: &str = "bond4";
/// When the NIC gets carrier, if it comes late.
const LATE: Duration = Duration::from_millis(1500);
/// How long a link may take to notice that its carrier is gone, or back.
const NOTICED: Duration = Duration::from_millis(2500);

/// The kernel may delete a `managed` neighbour at each moment at which it has given it up: here it asks longer than a case lasts.
fn ask_neighbours_long(ns: &Namespace, lines: &[String]) {
    if lines.iter().any(|line| line.ends_with(" managed")) {
        for family in ["ipv4", "ipv6"] {
            ns.set_sysctl(&format!("{family}/neigh/eth0/mcast_solicit"), "300");
        }
    }
}

/// Makes the link of the node below the pod, and returns its name.
fn parent_of<'c>(node: &Node, case: &'c Case) -> &'c str {
    let parent = case.parent.as_str();
    let bond = "link add bond4 type bond mode active-backup miimon 100";
    let mut below = "eth0";
    if parent.starts_with(BOND) {
        if node.ns.try_ip(bond).is_err() {
            return below;
        }
        for line in [
            "addr flush dev eth0",
            "link set eth0 down",
            "link set eth0 master bond4",
            "link set bond4 up",
            "addr add 10.88.0.2/16 dev bond4",
        ] {
            node.ns.ip(line);
        }
        let has_carrier = || node.ns.ip("link show dev bond4").contains("LOWER_UP");
        within(NOTICED, has_carrier);
        below = BOND;
    }
    if parent.ends_with(".3") {
        let vlan = format!("link add link {below} name {parent} type vlan id 3");
        if node.ns.try_ip(&vlan).is_err() {
            return below;
        }
        node.ns.ip(&format!("link set {parent} up"));
        below = parent;
    }
    below
}

/// A second NIC of the node, on a wire of its own.
fn add_wire(node: &Node) {
    let gateway = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth1 address 02:00:00:88:00:04 type veth peer name up1 address 02:00:00:88:00:03 netns {gateway}"
    ));
    node.ns.ip("link set eth1 up");
    node.gateway.ip("link set up1 up");
}

/// A pod with the links of a case, which are down.
pub(super) fn pod_of<'n>(node: &'n Node, case: &Case) -> Pod<'n> {
    let pod = if case.dad {
        node.pod_with_dad("web")
    } else {
        node.pod("web")
    };
    let name = pod.name().to_owned();
    let parent = parent_of(node, case);
    let add = |parent: &str, link: &str, kind: &str| {
        let added = node.ns.try_ip(&format!(
            "link add link {parent} name new0 netns {name} type {kind}"
        ));
        added
            .is_ok()
            .then(|| pod.ip(&format!("link set new0 name {link}")))
            .is_some()
    };
    if case.kind.is_empty() || !add(parent, "eth0", &case.kind) {
        assert!(
            add(parent, "eth0", "macvlan mode bridge"),
            "a macvlan on {parent}"
        );
    }
    ask_neighbours_long(&node.ns, &case.host);
    ask_neighbours_long(&pod.ns, &case.lines);
    if case.wire {
        add_wire(node);
    }
    if case.second || case.wire {
        let below = if case.wire { "eth1" } else { parent };
        // One link cannot be the parent of ipvlans and macvlans.
        let _ = add(below, "eth1", "macvlan mode bridge");
    }
    pod
}

/// The driver is unloaded and loaded, if that is the loss.
pub(super) fn lose(node: &Node, case: &Case) {
    if !case.is_lost() {
        return;
    }
    // A bond without ports would keep what is on it.
    let _ = node.ns.try_ip("link del bond4");
    node.lose();
    match case.loss {
        Loss::Late => node.reload_without_carrier(),
        Loss::Nic | Loss::None => node.reload(),
    }
}

/// The snapshot; of half an hour ago if all leases were renewed since, on a machine that was started later as old as it can be.
pub(super) fn snapshot(node: &Node, case: &Case) -> Run {
    const RENEWED_SECONDS: i64 = 3000;
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("a clock");
    // The shifted clock must not be before the boot.
    let age = RENEWED_SECONDS.min(now.tv_sec() - 1).to_string();
    let earlier = [
        "timeout",
        "600",
        "unshare",
        "--time",
        "--boottime",
        &format!("-{age}"),
    ];
    let wrapper = if case.has(Chapter::Renewed) {
        &earlier[..]
    } else {
        &earlier[..2]
    };
    Run::of(&mut node.netfix_command(wrapper, "snapshot -o json"))
}

/// Somebody makes the link of a pod again, with another MAC, and gives it its first address.
pub(super) fn make_by_hand(node: &Node, pod: &Pod<'_>) {
    let name = pod.name();
    let _ = node.ns.try_ip("link set eth0 up");
    let made = node.ns.try_ip(&format!(
        "link add link eth0 name new0 netns {name} type macvlan mode bridge"
    ));
    if made.is_ok() {
        // Else an address of this MAC is left.
        pod.ip("link set new0 name eth0 addrgenmode none");
        pod.ip("link set eth0 up");
        let _ = pod.ns.try_ip("addr add 10.88.1.10/16 brd + dev eth0");
    }
}

pub(super) fn restore(node: &Node, case: &Case) -> Run {
    if case.loss != Loss::Late {
        return node.netfix_json("restore");
    }
    let mut command = node.netfix_command(&["timeout", "600"], "restore --nic-wait 10s -o json");
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = format!("{command:?}");
    let restore = command.spawn().expect("the restore");
    std::thread::sleep(LATE);
    give_carrier(node);
    let output = restore.wait_with_output().expect("the end of the restore");
    Run::from_output(line, &output)
}

/// Some of its addresses may be there still.
fn give_carrier(node: &Node) {
    node.gateway.ip("link set up0 up");
    for address in [format!("{GATEWAY4}/16"), format!("{GATEWAY6}/64")] {
        let _ = node.gateway.try_ip(&format!("addr add {address} dev up0"));
    }
}

fn has_carrier(ns: &Namespace) -> bool {
    let link = ns.try_ip("link show dev eth0").unwrap_or_default();
    link.contains("LOWER_UP")
}

/// The other end of the wire is up, and the pod has noticed it.
pub(super) fn arrive(node: &Node, pod: &Pod<'_>) {
    give_carrier(node);
    within(NOTICED, || has_carrier(&pod.ns));
}

/// The other end of the wire goes down and up, until the node and the pod have noticed each.
pub(super) fn flap(node: &Node, pod: &Pod<'_>) {
    let with_carrier = [&node.ns, &pod.ns].into_iter().filter(|ns| has_carrier(ns));
    let noticing: Vec<&Namespace> = with_carrier.collect();
    for is_up in [false, true] {
        if is_up {
            give_carrier(node);
        } else {
            node.gateway.ip("link set up0 down");
        }
        within(NOTICED, || {
            noticing.iter().all(|ns| has_carrier(ns) == is_up)
        });
    }
}

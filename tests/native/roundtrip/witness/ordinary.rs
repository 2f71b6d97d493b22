//! What may differ after a loss, each with its reason.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::list;

/// A reloaded NIC has a new index, and the links below a pod are named by it.
pub(super) fn parent_by_name(link: &mut Map<String, Value>, parents: &BTreeMap<u64, String>) {
    let index = link.get("link_index").and_then(Value::as_u64);
    if let Some(name) = index.and_then(|index| parents.get(&index)) {
        let name = json!(format!("{name} of the node"));
        link.insert("link_index".to_owned(), name);
    }
}

/// The same for the links of the host itself.
pub(super) fn forget_indexes(link: &mut Map<String, Value>) {
    link.remove("ifindex");
    link.remove("link_index");
}

/// A bridge has no state until the kernel notes a change of its carrier (`linkwatch`); without one it passes packets as it does when up.
pub(super) fn bridge_without_state(link: &mut Map<String, Value>) {
    let kind = link.get("linkinfo").map(|info| &info["info_kind"]);
    if kind.is_some_and(|kind| kind == "bridge")
        && link
            .get("operstate")
            .is_some_and(|state| state == "UNKNOWN")
    {
        link.insert("operstate".to_owned(), json!("UP"));
    }
}

/// When a bridge and its ports do something next.
pub(super) fn bridge_timers(links: &mut Value) {
    for (_, link) in links.as_object_mut().into_iter().flatten() {
        for part in ["info_data", "info_slave_data"] {
            let data = link.pointer_mut(&format!("/linkinfo/{part}"));
            if let Some(data) = data.and_then(Value::as_object_mut) {
                data.retain(|key, _| !key.ends_with("_timer"));
            }
        }
    }
}

/// What has no order in the kernel: hash tables, and sets that are only looked up.
pub(super) fn unordered(list: &mut Value) {
    if let Some(list) = list.as_array_mut() {
        list.sort_by_key(Value::to_string);
    }
}

/// Neighbours that the kernel learnt from packets: it learns them again. Whether it has resolved a managed one passes.
pub(super) fn neighbours(neighbours: &mut Value, macs: &[Value]) {
    let Some(entries) = neighbours.as_array_mut() else {
        return;
    };
    entries.retain(|entry| !is_learnt(entry, macs));
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        if entry.contains_key("managed") {
            entry.remove("state");
            entry.remove("lladdr");
        }
    }
    unordered(neighbours);
}

fn is_learnt(entry: &Value, macs: &[Value]) -> bool {
    let is = |wanted: &str| list(&entry["state"]).any(|state| state == wanted);
    let dst = entry["dst"].as_str().and_then(|dst| dst.parse().ok());
    let is_derived = dst.is_some_and(|dst: IpAddr| dst.is_multicast())
        || entry["lladdr"] == "ff:ff:ff:ff:ff:ff"
        || macs.contains(&entry["lladdr"]);
    let is_given = is("PERMANENT") || entry.get("managed").is_some();
    !is_given && (is_derived || !is("NOARP"))
}

/// For how long a resilient group is unbalanced is a counter; its timers are settings.
pub(super) fn nexthops(nexthops: &mut Value) {
    let nexthops = nexthops.as_array_mut().into_iter().flatten();
    for arguments in nexthops.filter_map(|nexthop| nexthop["resilient_args"].as_object_mut()) {
        arguments.remove("unbalanced_time");
    }
}

/// Groups are a set, by link.
pub(super) fn groups(groups: &mut Value) {
    let links = groups.as_object_mut().into_iter().flatten();
    links.for_each(|(_, groups)| unordered(groups));
}

/// Whether a link below a route has carrier, as the kernel noted it last. The carrier of each link is compared by itself.
pub(super) fn carrier(route: &mut Value) {
    let flags = route.pointer_mut("/flags");
    if let Some(flags) = flags.and_then(Value::as_array_mut) {
        flags.retain(|flag| flag != "linkdown");
    }
}

/// The table local is in the table main until the namespace has its first rule, for ever so short (`fib_unmerge`), and the kernel says
/// main for what it finds in both.
pub(super) fn merged_table(way: &mut Value) {
    if let Some(way) = way.as_object_mut()
        && way.get("type").is_some_and(|kind| kind == "broadcast")
    {
        way.remove("table");
    }
}

const LIFETIMES: [&str; 3] = ["valid_life_time", "preferred_life_time", "expires"];

/// Lifetimes count down; a case lasts less than a minute.
pub(super) fn lifetimes(value: &mut Value) {
    const STEP: u64 = 100;
    each_lifetime(value, &|value| match value.as_u64() {
        Some(seconds) if seconds == u64::from(u32::MAX) => *value = json!("forever"),
        Some(seconds) => *value = json!(seconds.next_multiple_of(STEP)),
        None => {}
    });
}

/// After a snapshot that is old, only whether there is a lifetime.
pub(super) fn limits(value: &mut Value) {
    each_lifetime(value, &|value| {
        if value.as_u64().is_some_and(|seconds| seconds > 0) {
            *value = json!("limited");
        }
    });
}

fn each_lifetime(value: &mut Value, change: &dyn Fn(&mut Value)) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|it| each_lifetime(it, change)),
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if LIFETIMES.contains(&key.as_str()) {
                    change(value);
                } else {
                    each_lifetime(value, change);
                }
            }
        }
        _ => {}
    }
}

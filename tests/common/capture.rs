//! The state of one namespace, by ip(8) and /proc/sys, and which part of it may change over a loss.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::background::pause_after;
use super::diff;
use super::namespace::Namespace;
use super::qdiscs;
use super::tool;

/// The queries to ip(8), by address family.
const QUESTIONS: [(&str, &[(&str, &str)]); 3] = [
    (
        "-d",
        &[
            ("link", "link show"),
            ("addr", "addr show"),
            ("neigh", "neigh show nud all"),
            ("proxy", "neigh show proxy"),
            ("nexthop", "nexthop show"),
            ("group", "maddr show"),
        ],
    ),
    (
        "-4",
        &[("route4", "route show table all"), ("rule4", "rule show")],
    ),
    (
        "-6",
        &[("route6", "route show table all"), ("rule6", "rule show")],
    ),
];
const SYSCTL_ROOT: &str = "/proc/sys/net";
const SYSCTL_FOLDERS: [&str; 4] = ["ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"];
/// How long addresses may stay tentative and a link's state may lag.
const SETTLE: Duration = Duration::from_secs(6);

#[derive(Debug, Clone, PartialEq)]
pub struct Capture(Value);

impl Capture {
    /// A pod. Its macvlan's parent is recorded by name, because a reloaded parent has a new index.
    pub fn of_pod(pod: &Namespace, node: &Namespace) -> Self {
        let parents = names_by_index(node);
        Self::settled(pod, &|link| {
            replace_the_parent_index_by_its_name(link, &parents);
        })
    }

    /// The node. After a reload the parent is a new device: its index, and that of its peer, are not compared.
    pub fn of_node(node: &Namespace) -> Self {
        Self::settled(node, &forget_the_parents_index)
    }

    /// The state at this moment, without the states of links, which lag by up to a second.
    pub fn of_pod_at_once(pod: &Namespace, node: &Namespace) -> Self {
        let parents = names_by_index(node);
        Self::now(pod, &|link| {
            replace_the_parent_index_by_its_name(link, &parents);
            link.remove("operstate");
        })
    }

    /// The node at this moment, without the states of links.
    pub fn of_node_at_once(node: &Namespace) -> Self {
        Self::now(node, &|link| {
            forget_the_parents_index(link);
            link.remove("operstate");
        })
    }

    fn settled(ns: &Namespace, adjust: &dyn Fn(&mut Map<String, Value>)) -> Self {
        let deadline = Instant::now() + SETTLE;
        loop {
            let begin = Instant::now();
            let capture = Self::now(ns, adjust);
            if !capture.is_unsettled() || Instant::now() > deadline {
                return capture;
            }
            pause_after(begin);
        }
    }

    fn now(ns: &Namespace, adjust: &dyn Fn(&mut Map<String, Value>)) -> Self {
        let mut sections = Map::new();
        for (family, questions) in QUESTIONS {
            sections.extend(query_all(ns, family, questions));
        }
        for name in ["link", "addr"] {
            if let Some(links) = sections[name].as_array_mut() {
                links
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(adjust);
                links.sort_by_key(|link| link["ifname"].to_string());
            }
        }
        let macs: Vec<Value> = list(&sections["link"])
            .map(|link| link["address"].clone())
            .collect();
        if let Some(neighbours) = sections["neigh"].as_array_mut() {
            neighbours.retain(|neighbour| is_by_hand(neighbour, &macs));
            neighbours.iter_mut().for_each(forget_resolution);
            // They are in a hash table.
            neighbours.sort_by_key(Value::to_string);
        }
        keep_settings_of_groups(&mut sections["nexthop"]);
        keep_groups_by_hand(&mut sections["group"]);
        let mut value = Value::Object(sections);
        drop_timers(&mut value);
        for family in ["route4", "route6"] {
            order_kernel_routes(&mut value[family]);
        }
        value["sysctl"] = json!(ns.enter(sysctls));
        value["traffic"] = ns.enter(qdiscs::shown);
        Self(value)
    }

    fn is_unsettled(&self) -> bool {
        let addresses = list(&self.0["addr"]).flat_map(|link| list(&link["addr_info"]));
        let tentative = addresses
            .into_iter()
            .any(|address| address["tentative"] == true);
        let lagging = list(&self.0["link"]).any(|link| {
            let has = |flag| list(&link["flags"]).any(|f| f == flag);
            has("LOWER_UP") && !has("LOOPBACK") && !has_its_state(link)
        });
        tentative || lagging || self.lacks_local_routes()
    }

    /// The kernel routes packets to a new IPv6 address a moment after it lists the address.
    fn lacks_local_routes(&self) -> bool {
        let is_up = |link: &&Value| list(&link["flags"]).any(|flag| flag == "LOWER_UP");
        let addresses = list(&self.0["addr"]).filter(is_up);
        let mut addresses = addresses.flat_map(|link| list(&link["addr_info"]));
        addresses.any(|address| {
            let mut routes = list(&self.0["route6"]);
            address["family"] == "inet6"
                && address["dadfailed"] != true
                && !routes.any(|it| it["type"] == "local" && it["dst"] == address["local"])
        })
    }

    /// The same if links may have another index.
    pub fn without_indexes(mut self) -> Self {
        drop_indexes(&mut self.0);
        self
    }

    pub fn section(&self, name: &str) -> &Value {
        &self.0[name]
    }

    /// The link's object from ip(8), with its addresses.
    pub fn link(&self, name: &str) -> &Value {
        list(&self.0["addr"])
            .find(|link| link["ifname"] == name)
            .unwrap_or(&Value::Null)
    }

    /// Every difference, one line each; empty if there is none.
    pub fn differences(&self, after: &Self) -> Vec<String> {
        diff::lines(&self.0, &after.0)
    }

    pub fn assert_same(&self, after: &Self, who: &str) {
        assert_none(&self.differences(after), who);
    }

    /// Captures again until the namespace has its former state, at most for a minute. Returns what differs then.
    pub fn becomes(&self, again: impl Fn() -> Self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let begin = Instant::now();
            let lines = self.differences(&again());
            if lines.is_empty() || Instant::now() > deadline {
                return lines;
            }
            pause_after(begin);
        }
    }

    pub fn assert_becomes(&self, who: &str, again: impl Fn() -> Self) {
        assert_none(&self.becomes(again), who);
    }
}

fn assert_none(differences: &[String], who: &str) {
    assert!(
        differences.is_empty(),
        "{who} is not what it was (- before, + after):\n{}",
        differences.join("\n")
    );
}

/// Sends several queries at once. ip(8) may print nothing for an empty list, so a mark follows each answer.
fn query_all(ns: &Namespace, family: &str, questions: &[(&str, &str)]) -> Map<String, Value> {
    const MARK: &str = "link show dev lo";
    let lines: Vec<String> = questions
        .iter()
        .map(|(_, question)| format!("{question}\n{MARK}\n"))
        .collect();
    let script = format!("{MARK}\n{}", lines.concat());
    let mut command = tool::command("ip", ["-d", "-j", family, "-batch", "-"]);
    let text = ns.enter(|| tool::feed(&mut command, &script));
    let answers = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<Vec<Value>, _>>();
    let answers = answers.unwrap_or_else(|e| panic!("ip in {} answered {text}: {e}", ns.name()));
    let (mark, answers) = answers
        .split_first()
        .unwrap_or_else(|| panic!("ip printed nothing in {}", ns.name()));
    let mut parts = answers.split(|answer| answer == mark);
    let mut answer = |_: &str| {
        parts
            .next()
            .and_then(<[Value]>::first)
            .cloned()
            .unwrap_or_else(|| json!([]))
    };
    questions
        .iter()
        .map(|(name, question)| ((*name).to_owned(), answer(question)))
        .collect()
}

fn query(ns: &Namespace, question: &str) -> Value {
    let mut answers = query_all(ns, "-d", &[("", question)]);
    answers.remove("").unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The state of a link that has carrier: links of other kinds never get one.
pub fn has_its_state(link: &Value) -> bool {
    const LATE: [&str; 6] = ["bond", "ipvlan", "macvlan", "macvtap", "veth", "vlan"];
    let kind = link["linkinfo"]["info_kind"].as_str();
    let gets_one = kind.is_some_and(|kind| LATE.contains(&kind));
    link["operstate"] == "UP" || (link["operstate"] == "UNKNOWN" && !gets_one)
}

fn names_by_index(node: &Namespace) -> BTreeMap<u64, String> {
    let links = query(node, "link show");
    let pair = |link: &Value| {
        Some((
            link["ifindex"].as_u64()?,
            link["ifname"].as_str()?.to_owned(),
        ))
    };
    list(&links).filter_map(pair).collect()
}

fn replace_the_parent_index_by_its_name(
    link: &mut Map<String, Value>,
    parents: &BTreeMap<u64, String>,
) {
    if let Some(name) = link
        .get("link_index")
        .and_then(Value::as_u64)
        .and_then(|index| parents.get(&index))
    {
        link.insert(
            "link_index".to_owned(),
            json!(format!("{name} of the node")),
        );
    }
}

fn forget_the_parents_index(link: &mut Map<String, Value>) {
    if link.get("ifname").is_some_and(|name| name == "eth0") {
        link.remove("ifindex");
        link.remove("link_index");
    }
}

/// Whether the kernel has resolved a managed neighbour passes.
fn forget_resolution(neighbour: &mut Value) {
    if let Some(object) = neighbour.as_object_mut()
        && object.contains_key("managed")
    {
        object.remove("state");
        object.remove("lladdr");
    }
}

/// Permanent, kept up by the kernel, or without ARP; the kernel's own ones of the latter have the MAC of a link or a group.
fn is_by_hand(neighbour: &Value, macs: &[Value]) -> bool {
    let is_in = |wanted: &str| list(&neighbour["state"]).any(|state| state == wanted);
    let is_group = |text: &str| {
        let address = text.parse::<std::net::IpAddr>();
        address.is_ok_and(|address| address.is_multicast())
    };
    let is_own = neighbour["dst"].as_str().is_some_and(is_group)
        || neighbour["lladdr"] == "ff:ff:ff:ff:ff:ff"
        || macs.contains(&neighbour["lladdr"]);
    is_in("PERMANENT") || neighbour.get("managed").is_some() || (is_in("NOARP") && !is_own)
}

/// The order of the kernel's own routes of several devices is the order in which the devices went up. It has no
/// meaning.
fn order_kernel_routes(routes: &mut Value) {
    if let Some(routes) = routes.as_array_mut() {
        let text = |route: &Value| {
            if route["protocol"] == "kernel" {
                route.to_string()
            } else {
                String::new()
            }
        };
        routes.sort_by_key(text);
    }
}

/// The kernel joins the other groups with addresses.
fn keep_groups_by_hand(links: &mut Value) {
    let Some(links) = links.as_array_mut() else {
        return;
    };
    links.sort_by_key(|link| link["ifname"].to_string());
    for link in links.iter_mut().filter_map(Value::as_object_mut) {
        link.remove("ifindex");
        if let Some(groups) = link.get_mut("maddr").and_then(Value::as_array_mut) {
            groups.retain(|group| group["features"] == "static");
            groups.sort_by_key(Value::to_string);
        }
    }
}

/// The timers of a resilient group are settings, and the time for which it is unbalanced is none.
fn keep_settings_of_groups(nexthops: &mut Value) {
    let nexthops = nexthops.as_array_mut().into_iter().flatten();
    for arguments in nexthops.filter_map(|nexthop| nexthop["resilient_args"].as_object_mut()) {
        arguments.remove("unbalanced_time");
        let settings: Vec<(String, Value)> = std::mem::take(arguments).into_iter().collect();
        let named = settings
            .into_iter()
            .map(|(key, value)| (format!("{key}_limit"), value));
        arguments.extend(named);
    }
}

/// The rest of a lifetime is not compared; whether an address has a lifetime is.
fn drop_timers(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(drop_timers),
        Value::Object(object) => {
            object.retain(|key, _| !key.ends_with("_timer"));
            if let Some(time) = object.get_mut("expires") {
                *time = json!("limited");
            }
            for key in ["valid_life_time", "preferred_life_time"] {
                if let Some(time) = object.get_mut(key) {
                    *time = match time.as_u64() {
                        Some(0) => json!("none left"),
                        Some(seconds) if seconds == u64::from(u32::MAX) => json!("forever"),
                        _ => json!("limited"),
                    };
                }
            }
            object.values_mut().for_each(drop_timers);
        }
        _ => {}
    }
}

fn drop_indexes(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(drop_indexes),
        Value::Object(object) => {
            object.remove("ifindex");
            object.values_mut().for_each(drop_indexes);
        }
        _ => {}
    }
}

/// Every file of every per-interface directory, `all` and `default` included, read on the calling thread.
fn sysctls() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> = SYSCTL_FOLDERS
        .iter()
        .map(|folder| Path::new(SYSCTL_ROOT).join(folder))
        .collect();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_else(|e| format!("unreadable: {e}"));
            let name = path.strip_prefix(SYSCTL_ROOT).unwrap_or(&path);
            let name = tool::readable(name.as_os_str().as_encoded_bytes());
            found.insert(name, text.trim().to_owned());
        }
    }
    found
}

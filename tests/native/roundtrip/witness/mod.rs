//! A second judge: everything that ip(8), tc(8) and /proc show about a namespace, in the order in which they show it, without
//! the code of netfix. `ordinary` has what is not compared, each with its reason.

mod ask;
mod order;
mod ordinary;
mod proc;

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::common::background::pause_after;
use crate::common::capture::has_its_state;
use crate::common::namespace::Namespace;
use crate::common::{Node, Pod, diff, qdiscs};

/// How long addresses may stay tentative and a link's state may lag.
const SETTLE: Duration = Duration::from_secs(6);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Witness(Value);

impl Witness {
    pub fn of_pod(pod: &Pod<'_>, node: &Node) -> Self {
        forget_sources(&pod.ns);
        Self::settled(|| {
            let parents = ask::names_by_index(&node.ns);
            Self::now(&pod.ns, &|link| ordinary::parent_by_name(link, &parents))
        })
    }

    pub fn of_node(node: &Node) -> Self {
        forget_sources(&node.ns);
        Self::settled(|| Self::now(&node.ns, &ordinary::forget_indexes))
    }

    /// Two readings after each other show the same.
    fn settled(read: impl Fn() -> Self) -> Self {
        let deadline = Instant::now() + SETTLE;
        let mut last = read();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let begin = Instant::now();
            let next = read();
            if (next == last && !next.is_unsettled()) || Instant::now() > deadline {
                return next;
            }
            last = next;
            pause_after(begin);
        }
    }

    fn now(ns: &Namespace, adjust: &dyn Fn(&mut Map<String, Value>)) -> Self {
        let mut sections = ask::everything(ns);
        let macs: Vec<Value> = list(&sections["links"])
            .map(|link| link["address"].clone())
            .collect();
        for name in ["links", "addresses"] {
            let links = sections[name].as_array_mut().into_iter().flatten();
            for link in links.filter_map(Value::as_object_mut) {
                ordinary::bridge_without_state(link);
                adjust(link);
            }
        }
        for (name, part) in [
            ("links", None),
            ("addresses", Some("addr_info")),
            ("groups", Some("maddr")),
        ] {
            sections[name] = by_link(sections[name].take(), part);
        }
        ordinary::bridge_timers(&mut sections["links"]);
        ordinary::neighbours(&mut sections["neighbours"], &macs);
        ordinary::unordered(&mut sections["proxies"]);
        ordinary::nexthops(&mut sections["nexthops"]);
        ordinary::groups(&mut sections["groups"]);
        order::addresses(&mut sections);
        for family in ["routes of IPv4", "routes of IPv6"] {
            order::routes(&mut sections[family]);
        }
        let mut value = Value::Object(sections);
        ordinary::lifetimes(&mut value);
        value["settings"] = json!(ns.enter(proc::settings));
        value["proc"] = ns.enter(proc::lists);
        value["traffic"] = ns.enter(qdiscs::shown);
        Self(value)
    }

    fn is_unsettled(&self) -> bool {
        let links = self.0["links"].as_object().into_iter().flatten();
        let mut links = links.map(|(name, link)| (name, link, has(link, "LOWER_UP")));
        links.any(|(name, link, is_up)| {
            let addresses = || list(&self.0["addresses"][name]);
            // A bond below it notices carrier late.
            let waits = name == "eth0" && link["proto_down"].is_null() && has(link, "NO-CARRIER");
            let lags = waits || (is_up && name != "lo" && !has_its_state(link));
            lags || addresses().any(|it| it["tentative"] == true)
                || (is_up && addresses().any(|it| self.lacks_its_route(it)))
                || (is_up && self.lacks_a_group(name))
        })
    }

    /// The kernel routes packets to a new IPv6 address a moment after it lists the address.
    fn lacks_its_route(&self, address: &Value) -> bool {
        let ip = address["local"].as_str().unwrap_or_default();
        let route = format!("{ip} of local, metric 0");
        address["family"] == "inet6"
            && address["dadfailed"] != true
            && self.0["routes of IPv6"][route].is_null()
    }

    /// The link receives what is sent to the group of an IPv6 address a moment after the kernel lists the group.
    fn lacks_a_group(&self, name: &str) -> bool {
        let groups = || list(&self.0["groups"][name]);
        let addresses = groups().filter_map(|one| one["address"].as_str()?.parse().ok());
        let mut solicited = addresses.filter_map(|group: Ipv6Addr| match group.octets() {
            [0xff, 2, .., 1, 0xff, b, c, d] => Some(format!("33:33:ff:{b:02x}:{c:02x}:{d:02x}")),
            _ => None,
        });
        let is_ethernet = groups().any(|one| {
            one["link"]
                .as_str()
                .is_some_and(|mac| mac.starts_with("33:33:"))
        });
        is_ethernet && solicited.any(|mac| groups().all(|one| one["link"] != mac.as_str()))
    }

    /// Reads again until the namespace has its former state, at most for the settle time. Returns what differs then. What is
    /// left of a lifetime is not compared if time has passed.
    pub fn becomes(&self, is_aged: bool, again: impl Fn() -> Self) -> Vec<String> {
        let deadline = Instant::now() + SETTLE;
        let mut before = self.clone();
        loop {
            let begin = Instant::now();
            let mut after = again();
            if is_aged {
                ordinary::limits(&mut before.0);
                ordinary::limits(&mut after.0);
            }
            let lines = diff::lines(&before.0, &after.0);
            if lines.is_empty() || Instant::now() > deadline {
                return lines;
            }
            pause_after(begin);
        }
    }
}

/// A nexthop object keeps the source address of its creation until an address of the namespace changes. It may be chosen by
/// another scope than that of its routes, which is used ever after: only that one is a state.
fn forget_sources(ns: &Namespace) {
    for verb in ["add", "del"] {
        ns.ip(&format!("addr {verb} 127.99.99.99/32 dev lo"));
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn has(link: &Value, flag: &str) -> bool {
    list(&link["flags"]).any(|other| other == flag)
}

/// A list of links, or of a part of each, as an object with the names of the links.
fn by_link(links: Value, part: Option<&str>) -> Value {
    let Value::Array(links) = links else {
        return json!({});
    };
    let named = links.into_iter().map(|mut link| {
        let name = link["ifname"].as_str().unwrap_or_default().to_owned();
        let value = match part {
            Some(part) => link[part].take(),
            None => link,
        };
        (name, value)
    });
    Value::Object(named.collect())
}

//! What a restore leaves to daemons, by ip(8) alone: what has their protocols and goes with the lost links, where a program may bring it back,
//! and what the kernel refuses without that.

use std::collections::BTreeMap;

use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use serde_json::{Value, from_str};

use super::case::Case;
use crate::common::namespace::Namespace;
use crate::common::{Node, Pod, Run};

/// The protocols of routing daemons and keepalived, as `ip -N` shows them.
fn is_of_daemon(protocol: &str) -> bool {
    let number = protocol.parse::<u8>();
    number.is_ok_and(|it| matches!(it, 8 | 10..=15 | 17 | 18 | 42 | 99 | 186..=198))
}

/// Whether a line for ip(8) adds an object of a daemon.
pub(super) fn adds(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let is_proto = |pair: &[&str]| pair[0].starts_with("proto") && is_of_daemon(pair[1]);
    words.windows(2).any(is_proto)
        || words[0] == "address" && words.last().is_some_and(|it| is_of_daemon(it))
}

/// A routing socket as that of a daemon.
pub(super) fn socket(ns: &Namespace) -> Socket {
    ns.enter(|| {
        let mut socket = Socket::new(NETLINK_ROUTE).expect("a socket");
        socket.bind_auto().expect("its address");
        socket
    })
}

/// How many objects are left to daemons.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Left {
    pub host: usize,
    pub pod: usize,
    /// Whether there are addresses among them: with these go objects of the kernel.
    pub has_addresses: bool,
    /// Whether there is another NIC below the pod: a rehearsal loses that too, and leaves also what daemons own on it.
    pub has_other_nic: bool,
}

impl Left {
    /// Withdraws them. Nothing is left to the daemons of a pod in which no program has a routing socket.
    pub fn withdrawn(node: &Node, pod: &Pod<'_>, case: &Case) -> Self {
        let host = withdraw(&node.ns, &["eth0"], &case.host);
        let lost = if case.second && !case.wire {
            &["eth0", "eth1"][..]
        } else {
            &["eth0"]
        };
        let of_pod = case.daemon.then(|| withdraw(&pod.ns, lost, &case.lines));
        let (of_pod, has_addresses) = of_pod.unwrap_or_default();
        Self {
            host: host.0,
            pod: of_pod,
            has_addresses: host.1 || has_addresses,
            has_other_nic: case.wire,
        }
    }

    /// The same before a second loss: nothing of it is there.
    pub fn withdrawn_before(&self) -> Self {
        Self {
            has_addresses: self.has_addresses,
            has_other_nic: self.has_other_nic,
            ..Self::default()
        }
    }

    /// Whether netfix counts the same.
    pub fn is_in(&self, said: &Self) -> bool {
        let is_same = |own: usize, said: usize| match own {
            0 => said == 0,
            _ if self.has_addresses => said > 0,
            _ => said == own,
        };
        is_same(self.host, said.host) && is_same(self.pod, said.pod)
    }

    /// What a rehearsal that says this should count.
    pub fn foreseen(&self, said: &Self) -> Self {
        let on_other_nic = if self.has_other_nic { said.pod } else { 0 };
        Self {
            pod: self.pod.max(on_other_nic),
            ..*self
        }
    }

    /// What a restore does not say, but for what was lost in an earlier restore.
    pub fn complaints(&self, restore: &Run, pod: &str) -> Vec<String> {
        let said = counted(restore, pod, "is left");
        let is_first = self.host + self.pod > 0;
        let is_other = is_first && !self.is_in(&said);
        let complaint = is_other.then(|| format!("RESTORE leaves {said:?}, and it is {self:?}"));
        complaint.into_iter().collect()
    }
}

/// How many objects a run says that it leaves to daemons, or that a restore would.
pub(super) fn counted(run: &Run, pod: &str, words: &str) -> Left {
    let mut left = Left::default();
    let mut problems = run.coded("left-to-daemon");
    problems.retain(|problem| problem.message.starts_with(words));
    for problem in problems {
        let (_, more) = problem.message.split_once(", and ").unwrap_or_default();
        let more = more.split(' ').next().unwrap_or_default();
        let count = 1 + more.parse().unwrap_or(0);
        match problem.pod.as_deref() {
            None => left.host += count,
            Some(name) if name == pod => left.pod += count,
            Some(_) => {}
        }
    }
    left
}

/// Deletes what daemons added, and the routes and nexthop objects that the kernel refuses without that; how many these are, and whether addresses are
/// among them.
fn withdraw(ns: &Namespace, lost: &[&str], lines: &[String]) -> (usize, bool) {
    if !lines.iter().any(|line| adds(line)) {
        return (0, false);
    }
    let delete = |line: &str| usize::from(ns.try_ip(line).is_ok());
    // What the kernel refuses anyway comes back with the routes that it makes for a new link.
    let known = refused(ns, lost, Asked::OnAnyLink);
    let mut count = 0;
    for family in ["-4", "-6"] {
        for route in list(ns, &format!("{family} route show table all")) {
            if has_protocol(&route) && is_on(&route, lost) {
                count += delete(&format!("{family} {}", deletion(&route)));
            }
        }
    }
    for (what, word) in [("neigh show nud all", ""), ("neigh show proxy", "proxy ")] {
        for entry in list(ns, what) {
            if has_protocol(&entry) && is_on(&entry, lost) {
                count += delete(&format!(
                    "neigh del {word}{} dev {}",
                    text(&entry["dst"]),
                    text(&entry["dev"])
                ));
            }
        }
    }
    let mut addresses = 0;
    let prefix = |line: &str| line.split(' ').nth(1).unwrap_or_default().to_owned();
    let added = lines.iter().filter(|line| line.starts_with("address "));
    // The last program that set an address owns it.
    let owners: BTreeMap<String, &String> = added.map(|line| (prefix(line), line)).collect();
    for (prefix, _) in owners.iter().filter(|(_, line)| adds(line)) {
        addresses += delete(&format!("addr del {prefix} dev eth0"));
    }
    count += addresses;
    loop {
        let before = routes_and_nexthops(ns);
        let mut refused = refused(ns, lost, Asked::OnItsLink);
        refused.retain(|line| count > 0 && !known.contains(line) && delete(line) > 0);
        if refused.is_empty() {
            break;
        }
        // With a nexthop object the kernel deletes its routes.
        count += before - routes_and_nexthops(ns);
    }
    count += withdraw_nexthops(ns);
    (count, addresses > 0)
}

fn routes_and_nexthops(ns: &Namespace) -> usize {
    let whats = [
        "-4 route show table all",
        "-6 route show table all",
        "nexthop show",
    ];
    whats.iter().map(|what| list(ns, what).len()).sum()
}

/// Those that no other object needs.
fn withdraw_nexthops(ns: &Namespace) -> usize {
    let all = list(ns, "nexthop show");
    let routes = ["-4", "-6"].map(|family| list(ns, &format!("{family} route show table all")));
    let routes = routes.iter().flatten();
    let mut needed: Vec<u64> = routes.filter_map(|route| route["nhid"].as_u64()).collect();
    let members = |one: &Value| -> Vec<u64> {
        let group = one["group"].as_array().into_iter().flatten();
        group.filter_map(|member| member["id"].as_u64()).collect()
    };
    let id = |one: &Value| one["id"].as_u64().unwrap_or_default();
    let is_lasting = |one: &Value| one["blackhole"] != Value::Null;
    let lasting: Vec<u64> = all.iter().filter(|one| is_lasting(one)).map(id).collect();
    let lasts = |one: &Value| is_lasting(one) || members(one).iter().any(|it| lasting.contains(it));
    let is_kept =
        |one: &Value, needed: &[u64]| !has_protocol(one) || lasts(one) || needed.contains(&id(one));
    let groups = all.iter().filter(|one| is_kept(one, &needed));
    let of_groups: Vec<u64> = groups.flat_map(members).collect();
    needed.extend(of_groups);
    let left = all.iter().filter(|one| !is_kept(one, &needed));
    let mut left: Vec<&Value> = left.collect();
    // A group goes with its last member.
    left.sort_by_key(|one| members(one).is_empty());
    let lines = left
        .into_iter()
        .map(|one| format!("nexthop del id {}", id(one)));
    lines.filter(|line| ns.try_ip(line).is_ok()).count()
}

/// How a gateway is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    OnItsLink,
    /// Also without the link, for which a policy rule may refuse what a route without one got.
    OnAnyLink,
}

/// The deletions of routes and nexthop objects that the kernel would refuse now.
fn refused(ns: &Namespace, lost: &[&str], asked: Asked) -> Vec<String> {
    let mut lines = Vec::new();
    for (family, to) in [("-4", "203.0.113.250"), ("-6", "2001:db8:ffff::250")] {
        for route in list(ns, &format!("{family} route show table all")) {
            if !is_on(&route, lost) || route["nhid"] != Value::Null {
                continue;
            }
            let hops = route["nexthops"].as_array().cloned();
            let hops = hops.unwrap_or_else(|| vec![route.clone()]);
            let ways = hops.iter().filter(|hop| !is_onlink(hop)).filter_map(way);
            let is_refused = |way: String| {
                let (gateway, dev) = way.split_once(" dev ").expect("its link");
                let is_added = |way: &str| {
                    let probe = |verb| format!("{family} route {verb} {to} table 9999 {way}");
                    let is_added = ns.try_ip(&probe("add")).is_ok();
                    // Without a link it may have got another one.
                    let added = list(ns, &format!("{family} route show table 9999"));
                    if is_added {
                        ns.ip(&probe("del"));
                    }
                    is_added && added.iter().any(|route| route["dev"] == dev)
                };
                !is_added(&way) && (asked == Asked::OnItsLink || !is_added(gateway))
            };
            if ways.into_iter().any(is_refused) {
                lines.push(format!("{family} {}", deletion(&route)));
            }
        }
    }
    for one in list(ns, "nexthop show") {
        let way = way(&one).filter(|_| is_on(&one, lost) && !is_onlink(&one));
        let is_refused = |way: String| {
            let is_added = ns.try_ip(&format!("nexthop add id 99999 {way}")).is_ok();
            if is_added {
                ns.ip("nexthop del id 99999");
            }
            !is_added
        };
        if way.is_some_and(is_refused) {
            lines.push(format!("nexthop del id {}", one["id"]));
        }
    }
    lines
}

fn list(ns: &Namespace, what: &str) -> Vec<Value> {
    let text = ns.try_ip(&format!("-N -d -j {what}")).unwrap_or_default();
    from_str(&text).unwrap_or_default()
}

fn has_protocol(object: &Value) -> bool {
    object["protocol"].as_str().is_some_and(is_of_daemon)
}

/// Whether a route or a neighbour goes with one of the links.
fn is_on(object: &Value, lost: &[&str]) -> bool {
    let hops = object["nexthops"].as_array().into_iter().flatten();
    let mut devs = hops.chain([object]).filter_map(|hop| hop["dev"].as_str());
    devs.any(|dev| lost.contains(&dev))
}

fn is_onlink(hop: &Value) -> bool {
    let mut flags = hop["flags"].as_array().into_iter().flatten();
    flags.any(|flag| flag == "onlink")
}

/// The gateway of a hop and its link.
fn way(hop: &Value) -> Option<String> {
    let gateway = match &hop["via"] {
        Value::Null => text(hop.get("gateway")?),
        via => format!("{} {}", text(&via["family"]), text(&via["host"])),
    };
    Some(format!("via {gateway} dev {}", text(&hop["dev"])))
}

fn deletion(route: &Value) -> String {
    let mut words = vec![format!("route del {}", text(&route["dst"]))];
    let keys = ["table", "metric", "tos", "nhid"].into_iter();
    let keys = keys.filter(|key| route[key] != Value::Null);
    words.extend(keys.map(|key| format!("{key} {}", text(&route[key]))));
    words.push(format!("proto {}", text(&route["protocol"])));
    if route["nhid"] == Value::Null && route["nexthops"] == Value::Null {
        let dev = || format!("dev {}", text(&route["dev"]));
        words.push(way(route).unwrap_or_else(dev));
    }
    words.join(" ")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

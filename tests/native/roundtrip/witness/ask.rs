//! The questions to ip(8) and its answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ordinary;
use crate::common::namespace::Namespace;
use crate::common::tool;

const STATE: [(&str, &str); 6] = [
    ("links", "link show"),
    ("addresses", "addr show"),
    ("neighbours", "neigh show nud all"),
    ("proxies", "neigh show proxy"),
    ("nexthops", "nexthop show"),
    ("groups", "maddr show"),
];
const OF_IPV4: [(&str, &str); 2] = [
    ("routes of IPv4", "route show table all"),
    ("rules of IPv4", "rule show"),
];
const OF_IPV6: [(&str, &str); 2] = [
    ("routes of IPv6", "route show table all"),
    ("rules of IPv6", "rule show"),
];
/// Where packets are sent: into each subnet that a case may have, behind its routes, to groups and to broadcasts.
const TARGETS4: [&str; 13] = [
    "10.88.0.99",
    "10.88.255.255",
    "10.9.0.99",
    "10.9.1.6",
    "10.55.0.99",
    "10.57.0.99",
    "172.16.0.1",
    "172.17.0.1",
    "172.18.0.9",
    "192.0.2.1",
    "198.51.100.1",
    "224.0.0.251",
    "255.255.255.255",
];
const TARGETS6: [&str; 11] = [
    "fd88::99",
    "fd11::99",
    "fd12::99",
    "fd50::9",
    "fd51::9",
    "fd52::9",
    "fd77::99",
    "fe80::77 oif eth0",
    "fe80::77 oif eth1",
    "2001:db8::1",
    "ff02::fb",
];

pub(super) fn everything(ns: &Namespace) -> Map<String, Value> {
    let mut sections = query(ns, "-d", &STATE);
    for (family, questions, title, targets) in [
        ("-4", OF_IPV4, "ways of IPv4", &TARGETS4[..]),
        ("-6", OF_IPV6, "ways of IPv6", &TARGETS6[..]),
    ] {
        let get: Vec<String> = targets.iter().map(|it| format!("route get {it}")).collect();
        let ways = targets.iter().zip(&get);
        let ways: Vec<(&str, &str)> = ways.map(|(target, get)| (*target, get.as_str())).collect();
        let mut answers = query(ns, family, &[&questions[..], &ways[..]].concat());
        let ways = targets.iter().map(|target| {
            let mut way = answers.remove(*target).unwrap_or_default();
            for way in way.as_array_mut().into_iter().flatten() {
                ordinary::carrier(way);
                ordinary::merged_table(way);
            }
            ((*target).to_owned(), way)
        });
        let ways = ways.collect();
        sections.insert(title.to_owned(), Value::Object(ways));
        sections.append(&mut answers);
    }
    sections
}

/// Sends several queries at once. ip(8) prints nothing for an empty list and for a refusal, so a mark follows each answer.
fn query(ns: &Namespace, family: &str, questions: &[(&str, &str)]) -> Map<String, Value> {
    const MARK: &str = "link show dev lo";
    let lines = questions.iter().flat_map(|(_, question)| [*question, MARK]);
    let lines: Vec<&str> = std::iter::once(MARK).chain(lines).collect();
    let script = lines.join(
        "
",
    ) + "
";
    let words = [
        "-c",
        "printf %s \"$1\" | ip -d -j \"$2\" -force -batch - 2>/dev/null; true",
        "sh",
        &script,
        family,
    ];
    // In a thread inside: `ip -n` creates a mount namespace each time, which takes much longer than the query.
    let text = ns.enter(|| tool::run(&mut tool::command("sh", words)));
    let answers = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<Vec<Value>, _>>();
    let answers = answers.unwrap_or_else(|e| panic!("ip in {} answered {text}: {e}", ns.name()));
    let (mark, answers) = answers.split_first().expect("an answer of ip(8)");
    let mut parts = answers.split(|answer| answer == mark);
    let mut answer = || {
        let part = parts.next().and_then(<[Value]>::first);
        part.cloned().unwrap_or_else(|| json!([]))
    };
    questions
        .iter()
        .map(|(name, _)| ((*name).to_owned(), answer()))
        .collect()
}

pub(super) fn names_by_index(ns: &Namespace) -> BTreeMap<u64, String> {
    let links = query(ns, "-d", &[("links", "link show")]);
    let pair = |link: &Value| {
        let name = link["ifname"].as_str()?.to_owned();
        Some((link["ifindex"].as_u64()?, name))
    };
    super::list(&links["links"]).filter_map(pair).collect()
}

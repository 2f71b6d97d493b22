//! `driver.txt`: what a NIC had and has after the reload, and what its driver refuses in which state.

use netfix::model::NetState;
use netfix::model::net::link::nic::{NicGroup, NicKey, NicValue};
use serde_json::{Value, json};

use super::driver::group;
use crate::kernel::Errno;
use crate::{About, Case};

/// What must hold for a rule.
#[derive(Debug, Clone)]
pub enum Condition {
    Up,
    Down,
    /// There are virtual functions.
    Functions,
    /// A virtual function is not trusted.
    Untrusted,
    /// A pod's macvlan is on the device.
    Macvlans,
    /// The functions were made while no link received the packets of the device.
    Unheld,
    /// The driver resets the device so many times.
    Resets(u32),
    /// A setting has this value, or any.
    Setting(NicGroup, String, Option<String>),
}

/// `rule REQUEST | CONDITION, … | ERRNO | SOURCE`.
#[derive(Debug, Clone)]
pub struct Rule {
    pub request: String,
    pub when: Vec<Condition>,
    pub errno: Errno,
}

pub struct Table {
    pub case: Case,
    pub rules: Vec<Rule>,
    /// `sets REQUEST | GROUP KEY VALUE`: what else changes with a request.
    sets: Vec<(String, [String; 3])>,
    /// How many rules at the end are of another table.
    pub foreign: usize,
    /// Pods' macvlans on the device and on its functions.
    pub pods: (usize, usize),
}

/// A value in a table.
pub fn value(text: &str) -> NicValue {
    match text {
        "on" => NicValue::Flag(true),
        "off" => NicValue::Flag(false),
        _ if text.contains(',') => {
            let numbers = text
                .split(',')
                .map(|number| number.parse().expect("a number"));
            NicValue::Numbers(numbers.collect())
        }
        _ => text
            .parse()
            .map_or_else(|_| NicValue::Text(text.to_owned()), NicValue::Number),
    }
}

impl Table {
    pub fn parse(text: &str, read: &dyn Fn(&str) -> String) -> Self {
        let mut table = Self {
            case: bare(),
            rules: Vec::new(),
            sets: Vec::new(),
            foreign: 0,
            pods: (0, 0),
        };
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let rest = rest.trim();
            match word {
                "why" => rest.clone_into(&mut table.case.why),
                "driver" => {
                    name_driver(&mut table.case.wanted, rest);
                    name_driver(&mut table.case.observed, rest);
                }
                "was" => put(&mut table.case.wanted, rest),
                "now" => put(&mut table.case.observed, rest),
                "both" => {
                    put(&mut table.case.wanted, rest);
                    put(&mut table.case.observed, rest);
                }
                "pods" => {
                    let (own, on_function) = rest.split_once(' ').expect("two numbers");
                    table.pods = (number(own), number(on_function));
                }
                "rule" => table.rules.push(rule(rest)),
                "sets" => {
                    let (request, setting) = rest.split_once(" | ").expect("a setting");
                    table.sets.push((request.to_owned(), three(setting)));
                }
                "like" => {
                    let other = Self::parse(&read(rest), read);
                    table.foreign = other.rules.len();
                    table.rules.extend(other.rules);
                    table.sets.extend(other.sets);
                }
                _ => panic!("what is {line}?"),
            }
        }
        table
    }

    /// The settings that another request changes too.
    pub fn effects(&self, words: &str) -> impl Iterator<Item = (NicGroup, NicKey, NicValue)> {
        let words = words.to_owned();
        let all = self
            .sets
            .iter()
            .filter(move |(request, _)| *request == words);
        all.map(|(_, [name, key, set])| (group(name), nic_key(key), value(set)))
    }
}

fn number(text: &str) -> usize {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn three(text: &str) -> [String; 3] {
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    words
        .try_into()
        .unwrap_or_else(|words| panic!("{words:?}: group, key and value"))
}

fn nic_key(text: &str) -> NicKey {
    NicKey::try_from(text.to_owned()).expect("a key")
}

fn rule(text: &str) -> Rule {
    let parts: Vec<&str> = text.split('|').map(str::trim).collect();
    let [request, when, errno, source] = parts[..] else {
        panic!("{text}: request, conditions, errno and source");
    };
    assert!(!source.is_empty(), "{text}: no source");
    let errno = match errno {
        "EBUSY" => Errno::EBUSY,
        "EINVAL" => Errno::EINVAL,
        "EOPNOTSUPP" => Errno::EOPNOTSUPP,
        // No errno of a driver: what must never be sent.
        "never" => Errno::EPERM,
        other => panic!("{other}: an errno"),
    };
    Rule {
        request: request.to_owned(),
        when: when
            .split(", ")
            .filter(|one| *one != "always")
            .map(condition)
            .collect(),
        errno,
    }
}

fn condition(text: &str) -> Condition {
    let words: Vec<&str> = text.split(' ').collect();
    match words[..] {
        ["up"] => Condition::Up,
        ["down"] => Condition::Down,
        ["vfs"] => Condition::Functions,
        ["untrusted"] => Condition::Untrusted,
        ["macvlans"] => Condition::Macvlans,
        ["unheld"] => Condition::Unheld,
        ["resets", times] => Condition::Resets(times.parse().expect("a number")),
        [name, key] => Condition::Setting(group(name), key.to_owned(), None),
        [name, key, value] => {
            Condition::Setting(group(name), key.to_owned(), Some(value.to_owned()))
        }
        _ => panic!("{text}: a condition"),
    }
}

/// A host with one NIC, before and after its driver was loaded again.
fn bare() -> Case {
    let state = |index: u32, is_up: bool| -> NetState {
        let flags = json!({"up": is_up, "carrier": is_up, "noarp": false, "promisc": false, "allmulti": false, "multicast": true});
        let link = json!({
            "name": "eth0", "index": index, "mac": "52:54:00:00:00:01", "mtu": 1500, "txqueuelen": 1000, "flags": flags,
            "kind": "physical", "nic": {},
            "hardware": {"permanent_mac": "52:54:00:00:00:01", "bus": "0000:01:00.0"},
        });
        let empty: [Value; 0] = [];
        let state = json!({"links": [link], "addresses": empty, "routes": empty, "rules": empty, "neighbours": empty});
        serde_json::from_value(state).expect("a state")
    };
    let devices = ["eth0".parse().expect("a name")].into();
    Case {
        why: String::new(),
        wanted: state(2, true),
        observed: state(9, false),
        new_link: None,
        age: 0,
        with_daemons: false,
        nic_settings: None,
        irqs_are_balanced: false,
        dcb_is_managed: false,
        made: Vec::new(),
        about: About::Host { devices },
    }
}

fn name_driver(state: &mut NetState, name: &str) {
    let hardware = state.links[0].hardware.as_mut().expect("a device");
    hardware.driver = Some(name.to_owned());
}

/// `up`, `functions NUMBER trusted|plain` or `GROUP KEY VALUE`.
fn put(state: &mut NetState, text: &str) {
    let link = &mut state.links[0];
    let nic = link.nic.get_or_insert_default();
    let words: Vec<&str> = text.split(' ').collect();
    match words[..] {
        ["up"] => (link.flags.up, link.flags.carrier) = (true, true),
        ["functions", count, kind] => {
            let function = |index: usize| {
                json!({"index": index, "bus": format!("0000:01:10.{}", index * 2), "driver": "igbvf", "netdev": true,
                    "mac": format!("02:11:22:33:44:{index:02x}"), "spoofchk": true, "trust": kind == "trusted", "state": 0,
                    "vlan": 0, "qos": 0, "min_rate": 0, "max_rate": 0})
            };
            let all: Vec<Value> = (0..number(count)).map(function).collect();
            let sriov = json!({"vfs": all.len(), "autoprobe": true, "functions": all});
            nic.sriov = Some(serde_json::from_value(sriov).expect("functions"));
        }
        _ => {
            let [name, key, text] = three(text);
            let values = nic.settings.entry(group(&name)).or_default();
            values.insert(nic_key(&key), value(&text));
        }
    }
}

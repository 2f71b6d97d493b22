//! What of a packet decides about its queue, and rules for single flows (`struct ethtool_rxnfc`).

use crate::kernel::Errno;
use crate::kernel::codec::nested::{set_word, word};
use crate::kernel::ethtool::ioctl::{IoctlDevice, words};
use crate::kernel::ethtool::message::{Values, key};
use crate::model::net::link::nic::{NicKey, NicValue};
use crate::model::text::{from_hex, to_hex};

const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_SRXFH: u32 = 0x2a;
const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
const ETHTOOL_SRXCLSRLINS: u32 = 0x32;

/// Flow types (`*_FLOW`) by their names in ethtool(8).
const FLOWS: [(&str, u32); 10] = [
    ("tcp4", 0x01),
    ("udp4", 0x02),
    ("sctp4", 0x03),
    ("tcp6", 0x05),
    ("udp6", 0x06),
    ("sctp6", 0x07),
    ("ah4", 0x09),
    ("esp4", 0x0a),
    ("ah6", 0x0b),
    ("esp6", 0x0c),
];
/// Parts of a packet (`RXH_*`) by their letters in ethtool(8).
const PARTS: [(char, u32); 9] = [
    ('m', 1),
    ('v', 2),
    ('t', 3),
    ('s', 4),
    ('d', 5),
    ('f', 6),
    ('n', 7),
    ('e', 8),
    ('r', 31),
];

/// The structure.
pub(super) struct Classifier(Vec<u8>);

impl Classifier {
    /// Places in it; a rule (`struct ethtool_rx_flow_spec`) ends with its location, and padding.
    const DATA: usize = 8;
    const RULE: std::ops::Range<usize> = 16..184;
    const LOCATION: usize = 176;
    const COUNT: usize = 184;
    const LOCATIONS: usize = 188;
    const LENGTH: usize = 192;

    pub(super) fn query(device: &IoctlDevice<'_>, command: u32, flow: u32) -> Result<Self, Errno> {
        device.call(&Self::new(command, flow).0).map(Self)
    }

    fn new(command: u32, flow: u32) -> Self {
        let mut request = words(&[command, flow]);
        request.resize(Self::LENGTH, 0);
        Self(request)
    }

    pub(super) fn data(&self) -> u64 {
        let data = self.0.get(Self::DATA..Self::DATA + 8);
        let data = data.and_then(|bytes| bytes.try_into().ok());
        data.map(u64::from_ne_bytes).unwrap_or_default()
    }

    fn set_data(&mut self, data: u32) {
        if let Some(place) = self.0.get_mut(Self::DATA..Self::DATA + 8) {
            place.copy_from_slice(&u64::from(data).to_ne_bytes());
        }
    }
}

/// What decides for each flow type, by letters such as `sdfn`.
pub(in crate::kernel::ethtool) fn read_hash(device: &IoctlDevice<'_>) -> Result<Values, Errno> {
    let mut values = Values::new();
    for (name, flow) in FLOWS {
        match Classifier::query(device, ETHTOOL_GRXFH, flow) {
            Ok(answer) => {
                let letters = letters(answer.data());
                let known = key(name).filter(|_| !letters.is_empty());
                values.extend(known.map(|key| (key, NicValue::Text(letters))));
            }
            Err(Errno::EOPNOTSUPP) if values.is_empty() => return Err(Errno::EOPNOTSUPP),
            // It does not have this flow type.
            Err(Errno::EOPNOTSUPP | Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(values)
}

fn letters(data: u64) -> String {
    let parts = PARTS.iter().filter(|(_, bit)| data >> bit & 1 == 1);
    parts.map(|(letter, _)| *letter).collect()
}

pub(in crate::kernel::ethtool) fn write_hash(
    device: &IoctlDevice<'_>,
    name: &NicKey,
    letters: &str,
) -> Result<(), Errno> {
    let flow = FLOWS.iter().find(|(one, _)| *one == name.as_str());
    let (_, flow) = flow.ok_or(Errno::EINVAL)?;
    let bits: Option<Vec<u32>> = letters
        .chars()
        .map(|letter| PARTS.iter().find(|(one, _)| *one == letter))
        .map(|part| part.map(|(_, bit)| 1 << bit))
        .collect();
    let mut request = Classifier::new(ETHTOOL_SRXFH, *flow);
    request.set_data(
        bits.ok_or(Errno::EINVAL)?
            .into_iter()
            .fold(0, |all, bit| all | bit),
    );
    device.call(&request.0).map(drop)
}

/// Rules by their locations.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::kernel::ethtool) struct Rules {
    pub values: Values,
    /// The locations of those that cannot be inserted again alone: they use a context of RSS.
    pub in_contexts: Vec<u32>,
}

impl Rules {
    fn take(&mut self, location: u32, answer: &[u8]) {
        /// `FLOW_RSS`.
        const IN_CONTEXT: u32 = 0x2000_0000;
        let rule = answer.get(Classifier::RULE).unwrap_or_default();
        if word(rule, 0).unwrap_or_default() & IN_CONTEXT != 0 {
            self.in_contexts.push(location);
        } else if let Some(key) = key(&location.to_string()) {
            self.values.insert(key, NicValue::Text(to_hex(rule)));
        }
    }
}

pub(in crate::kernel::ethtool) fn read_rules(device: &IoctlDevice<'_>) -> Result<Rules, Errno> {
    /// Devices have up to 8192.
    const MOST: usize = 1 << 14;
    let count = Classifier::query(device, ETHTOOL_GRXCLSRLCNT, 0)?;
    let count = word(&count.0, Classifier::COUNT).unwrap_or_default();
    let mut rules = Rules::default();
    if count == 0 {
        return Ok(rules);
    }
    let room = usize::try_from(count).unwrap_or(usize::MAX);
    if room > MOST {
        return Err(Errno::E2BIG);
    }
    let mut request = Classifier::new(ETHTOOL_GRXCLSRLALL, 0).0;
    set_word(&mut request, Classifier::COUNT, count);
    request.resize(Classifier::LENGTH + 4 * room, 0);
    let all = device.call(&request)?;
    let count = word(&all, Classifier::COUNT).unwrap_or_default();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(room);
    let locations = (0..count).filter_map(|at| word(&all, Classifier::LOCATIONS + 4 * at));
    for location in locations {
        let mut request = Classifier::new(ETHTOOL_GRXCLSRULE, 0).0;
        set_word(&mut request, Classifier::LOCATION, location);
        let answer = device.call(&request)?;
        rules.take(location, &answer);
    }
    Ok(rules)
}

pub(in crate::kernel::ethtool) fn write_rule(
    device: &IoctlDevice<'_>,
    location: &NicKey,
    rule: &str,
) -> Result<(), Errno> {
    device
        .call(&insertion(location, rule).ok_or(Errno::EINVAL)?)
        .map(drop)
}

/// The request for a rule at its location.
fn insertion(location: &NicKey, rule: &str) -> Option<Vec<u8>> {
    let location: u32 = location.as_str().parse().ok()?;
    let rule = from_hex(rule).filter(|rule| rule.len() == Classifier::RULE.len())?;
    let mut request = Classifier::new(ETHTOOL_SRXCLSRLINS, 0).0;
    request.get_mut(Classifier::RULE)?.copy_from_slice(&rule);
    set_word(&mut request, Classifier::LOCATION, location);
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_inserted_as_it_was_read_and_at_its_location() {
        // tcp4 to port 80 into queue 2, at location 15.
        let mut answer = Classifier::new(ETHTOOL_GRXCLSRULE, 0).0;
        set_word(&mut answer, 16, 0x01);
        answer[30..32].copy_from_slice(&80_u16.to_be_bytes());
        set_word(&mut answer, 168, 2);
        set_word(&mut answer, Classifier::LOCATION, 15);
        let mut rules = Rules::default();
        rules.take(15, &answer);
        let (location, rule) = rules.values.pop_first().unwrap();
        assert_eq!(location.as_str(), "15");
        let inserted = insertion(&location, &rule.to_string()).unwrap();
        assert_eq!(inserted.len(), 192);
        assert_eq!(word(&inserted, 0), Some(ETHTOOL_SRXCLSRLINS));
        assert_eq!(inserted[Classifier::RULE], answer[Classifier::RULE]);
        // One that uses a context of RSS cannot be inserted alone.
        set_word(&mut answer, 16, 0x2000_0001);
        rules.take(16, &answer);
        assert_eq!((rules.values.len(), rules.in_contexts), (0, vec![16]));
        for (location, rule) in [("15", "00"), ("15", "xx"), ("a", &"00".repeat(168))] {
            assert_eq!(insertion(&key(location).unwrap(), rule), None);
        }
    }

    #[test]
    fn the_parts_of_a_packet_have_the_letters_of_ethtool() {
        assert_eq!(letters(0xf0), "sdfn");
        assert_eq!(letters(0x30), "sd");
        assert_eq!(letters(1 << 31), "r");
        assert_eq!(letters(0), "");
    }
}

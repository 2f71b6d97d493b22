//! Options of single VLANs of a bridge's port (`bridge vlan set`, `RTM_GETVLAN` since Linux 5.6): `linux/if_bridge.h`.

use crate::kernel::codec::nested::{Nested, word};

/// `RTM_GETVLAN`, and `struct br_vlan_msg` of a dump of all ports: family `AF_BRIDGE`, padding, ifindex.
pub(in crate::kernel) const GET: u16 = 114;
pub(in crate::kernel) const ALL: [u8; HEADER] = [7, 0, 0, 0, 0, 0, 0, 0];
const HEADER: usize = 8;
const IFINDEX: usize = 4;
/// `BRIDGE_VLANDB_ENTRY`, and in it `…_INFO` (`struct bridge_vlan_info`: flags and id), and `…_RANGE` with the last id.
const ENTRY: u16 = 1;
const INFO: u16 = 1;
const ID: usize = 2;
const RANGE: u16 = 2;
/// `BRIDGE_VLANDB_ENTRY_STATE`, `…_MCAST_ROUTER`, `…_MCAST_MAX_GROUPS`, `…_NEIGH_SUPPRESS`.
const STATE: u16 = 3;
const ROUTER: u16 = 6;
const MAX_GROUPS: u16 = 8;
const SUPPRESS: u16 = 9;
/// Each option as in bridge(8), with the value of a new VLAN: `BR_STATE_FORWARDING`, `MDB_RTR_TYPE_TEMP_QUERY`.
const OPTIONS: [(u16, &str, u32); 4] = [
    (STATE, "state", 3),
    (ROUTER, "mcast_router", 1),
    (MAX_GROUPS, "mcast_max_groups", 0),
    (SUPPRESS, "neigh_suppress", 0),
];

/// The port that a message is about, and those of its VLANs that are not as a new one, in words.
pub(in crate::kernel) fn words(message: &[u8]) -> Option<(u32, String)> {
    /// So many are listed.
    const MOST: usize = 8;
    let (header, attributes) = message.split_at_checked(HEADER)?;
    let attributes = Nested::parse(attributes)?;
    let entries = attributes.all(ENTRY).filter_map(Nested::parse);
    let mut words: Vec<String> = entries.filter_map(|entry| of_entry(&entry)).collect();
    if words.is_empty() {
        return None;
    }
    let more = words.len().saturating_sub(MOST);
    words.truncate(MOST);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    Some((word(header, IFINDEX)?, words.join(", ")))
}

fn of_entry(entry: &Nested) -> Option<String> {
    let id = |bytes: &[u8]| Some(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let first = id(entry.get(INFO)?.get(ID..)?)?;
    let set = OPTIONS.iter().filter_map(|(number, name, initial)| {
        let bytes = entry.get(*number)?;
        let value = word(bytes, 0).or_else(|| bytes.first().map(|byte| u32::from(*byte)))?;
        (value != *initial).then(|| format!(" {name} {value}"))
    });
    let set: String = set.collect();
    let range = match entry.get(RANGE).and_then(id) {
        Some(last) => format!("{first}-{last}"),
        None => first.to_string(),
    };
    (!set.is_empty()).then(|| format!("{range}{set}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u16, more: &[(u16, &[u8])]) -> Vec<u8> {
        let mut entry = Nested::default();
        entry.push(INFO, [0_u16.to_ne_bytes(), id.to_ne_bytes()].concat());
        for (number, value) in more {
            entry.push(*number, value.to_vec());
        }
        entry.bytes()
    }

    fn message(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut all = Nested::default();
        for entry in entries {
            all.push(ENTRY, entry.clone());
        }
        [&[7, 0, 0, 0][..], &7_u32.to_ne_bytes(), &all.bytes()].concat()
    }

    #[test]
    fn only_what_is_not_as_in_a_new_vlan_is_named() {
        let initial: [(u16, &[u8]); 4] = [
            (STATE, &[3]),
            (ROUTER, &[1]),
            (MAX_GROUPS, &[0; 4]),
            (SUPPRESS, &[0]),
        ];
        assert_eq!(words(&message(&[entry(1, &initial)])), None);
        let last = 20_u16.to_ne_bytes();
        let set = [
            entry(1, &initial),
            entry(10, &[(RANGE, &last), (STATE, &[4]), (ROUTER, &[2])]),
            entry(30, &[(MAX_GROUPS, &5_u32.to_ne_bytes()), (SUPPRESS, &[1])]),
        ];
        let named = "10-20 state 4 mcast_router 2, 30 mcast_max_groups 5 neigh_suppress 1";
        assert_eq!(words(&message(&set)), Some((7, named.to_owned())));
        let many: Vec<_> = (1..=10).map(|id| entry(id, &[(STATE, &[4])])).collect();
        let (_, named) = words(&message(&many)).unwrap();
        assert!(named.ends_with("8 state 4, and 2 more"), "{named}");
        let whole = message(&set);
        for end in 0..whole.len() {
            words(&whole[..end]);
        }
    }
}

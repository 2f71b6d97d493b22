//! The options of filters: from what the kernel reports to what is stored, and to what it takes (`net/sched/cls_*.c`).

use super::action::{self, LinkAt};
use crate::kernel::codec::nested::{Nested, clear, set_word, word};
use crate::model::net::traffic::RedirectLink;

/// The attributes of one kind of filter (`linux/pkt_cls.h`).
struct Kind {
    name: &'static str,
    /// The list of actions.
    actions: u16,
    /// The one action `police` in its old form.
    police: Option<u16>,
    /// `TCA_CLS_FLAGS_*`.
    flags: Option<u16>,
    /// Statistics and padding.
    states: &'static [u16],
}

/// The filters that netfix restores.
const KINDS: [Kind; 5] = [
    Kind {
        name: "u32",
        actions: 7,
        police: Some(6),
        flags: Some(11),
        states: &[9, 12],
    },
    Kind {
        name: "flower",
        actions: 3,
        police: None,
        flags: Some(22),
        states: &[86],
    },
    Kind {
        name: "matchall",
        actions: 2,
        police: None,
        flags: Some(3),
        states: &[4, 5],
    },
    Kind {
        name: "basic",
        actions: 3,
        police: Some(4),
        flags: None,
        states: &[5, 6],
    },
    Kind {
        name: "fw",
        actions: 4,
        police: Some(2),
        flags: None,
        states: &[],
    },
];

fn of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Whether netfix restores filters of this kind.
pub(super) fn is_known(kind: &str) -> bool {
    of(kind).is_some()
}

/// `TCA_U32_MARK`, whose `success` is a counter (`struct tc_u32_mark`).
const TCA_U32_MARK: u16 = 10;
const MARK_SUCCESS: std::ops::Range<usize> = 8..12;

/// The options of a filter without state. An error is the part that netfix cannot restore.
pub(super) fn storable(
    name: &str,
    options: &[u8],
    at: LinkAt<'_>,
    links: &mut Vec<RedirectLink>,
) -> Result<Vec<u8>, String> {
    let kind = of(name).ok_or_else(|| name.to_owned())?;
    let mut nested = Nested::parse(options).ok_or("options that netfix cannot decode")?;
    nested.remove(kind.states);
    if let Some(flags) = kind.flags {
        keep_settable_flags(&mut nested, flags);
    }
    if kind.name == "flower" && CVLAN.iter().any(|key| nested.get(*key).is_some()) {
        return Err("an inner VLAN".to_owned());
    }
    if kind.name == "u32"
        && let Some(mark) = nested.get_mut(TCA_U32_MARK)
    {
        clear(mark, MARK_SUCCESS);
    }
    if let Some(list) = nested.get_mut(kind.actions) {
        *list = action::storable(list, at, links)?;
    }
    if let Some(value) = kind.police.and_then(|police| nested.get_mut(police)) {
        let police = Nested::parse(value).ok_or("an action that netfix cannot decode")?;
        *value = action::storable_police(police);
    }
    Ok(nested.bytes())
}

/// The kernel reports whether a NIC has the filter with the flags that a request can have.
fn keep_settable_flags(nested: &mut Nested, number: u16) {
    /// `TCA_CLS_FLAGS_SKIP_HW`, `TCA_CLS_FLAGS_SKIP_SW`, `TCA_CLS_FLAGS_VERBOSE`.
    const SETTABLE: u32 = 1 | 2 | 16;
    let Some(flags) = nested.u32(number) else {
        return;
    };
    match (flags & SETTABLE, nested.get_mut(number)) {
        (0, _) | (_, None) => nested.remove(&[number]),
        (flags, Some(value)) => set_word(value, 0, flags),
    }
}

/// `TCA_FLOWER_KEY_ETH_TYPE`, and those of a VLAN and of the VLAN in it. Of the latter the kernel does not report the protocol.
const ETH_TYPE: u16 = 8;
const VLAN: [u16; 3] = [23, 24, 25];
const CVLAN: [u16; 3] = [77, 78, 79];

/// The options to send for stored ones, of a filter for this protocol (network byte order).
pub(super) fn sendable(name: &str, options: &[u8], protocol: [u8; 2]) -> Vec<u8> {
    let (Some(kind), Some(mut nested)) = (of(name), Nested::parse(options)) else {
        return options.to_vec();
    };
    // A VLAN is in the request as the type of the frame; the kernel reports the type inside.
    let is_vlan = matches!(u16::from_be_bytes(protocol), 0x8100 | 0x88a8);
    let has_vlan = || VLAN.iter().any(|key| nested.get(*key).is_some());
    if kind.name == "flower" && is_vlan && has_vlan() {
        nested.remove(&[ETH_TYPE]);
        nested.push(ETH_TYPE, protocol.to_vec());
    }
    if let Some(list) = nested.get_mut(kind.actions) {
        *list = action::sendable(list);
    }
    if let Some(police) = kind.police.and_then(|police| nested.get_mut(police)) {
        *police = action::sendable_police(police);
    }
    nested.bytes()
}

/// The list of actions to send for stored options.
pub(super) fn actions(name: &str, options: &[u8]) -> Vec<u8> {
    let options = Nested::parse(options);
    let list = of(name).zip(options.as_ref());
    let list = list.and_then(|(kind, options)| options.get(kind.actions));
    list.map(action::sendable).unwrap_or_default()
}

/// The number of 32 bits in an attribute of options.
pub(super) fn number(options: &[u8], attribute: u16) -> Option<u32> {
    word(Nested::parse(options)?.get(attribute)?, 0)
}

/// Replaces the number of 32 bits in an attribute of options.
pub(super) fn set_number(options: &mut Vec<u8>, attribute: u16, value: u32) {
    let Some(mut nested) = Nested::parse(options) else {
        return;
    };
    if let Some(bytes) = nested.get_mut(attribute) {
        set_word(bytes, 0, value);
        *options = nested.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(all: &[(u16, &[u8])]) -> Vec<u8> {
        let mut nested = Nested::default();
        for (number, value) in all {
            nested.push(*number, value.to_vec());
        }
        nested.bytes()
    }

    /// An action as the kernel reports it: with statistics, a time and counts of references.
    fn action(kind: &[u8], parameters: &[u8]) -> Vec<u8> {
        let options = nested(&[(1, &[9; 32]), (2, parameters)]);
        let action = nested(&[(1, kind), (4, &[7; 24]), (2, &options), (10, &[1, 0, 0, 0])]);
        nested(&[(1, &action)])
    }

    fn stored(options: &[u8], links: &mut Vec<RedirectLink>) -> Result<Vec<u8>, String> {
        let known = |index| {
            (index == 7).then(|| RedirectLink {
                name: "eth0".parse().unwrap(),
                index,
            })
        };
        storable("matchall", options, &known, links)
    }

    #[test]
    fn a_filter_is_stored_without_state() {
        let generic = [5_u32, 0, 2, 3, 4].map(u32::to_ne_bytes).concat();
        let list = action(b"gact\0", &generic);
        let options = nested(&[
            (1, &[1; 4]),
            (3, &9_u32.to_ne_bytes()),
            (2, &list),
            (4, &[7; 8]),
        ]);
        let stored = stored(&options, &mut Vec::new()).unwrap();
        let without = [5_u32, 0, 2, 0, 0].map(u32::to_ne_bytes).concat();
        let expected = nested(&[(1, b"gact\0"), (2, &nested(&[(2, &without)]))]);
        let expected = nested(&[
            (1, &[1; 4]),
            (3, &1_u32.to_ne_bytes()),
            (2, &nested(&[(1, &expected)])),
        ]);
        assert_eq!(stored, expected);
        assert_eq!(sendable("matchall", &stored, [8, 0]), stored);
    }

    #[test]
    fn packets_go_only_to_known_links() {
        let to = |index: u32| {
            let mirred = [1_u32, 0, 4, 1, 1, 1, index, 0].map(u32::to_ne_bytes);
            nested(&[(2, &action(b"mirred\0", &mirred[..7].concat()))])
        };
        let mut links = Vec::new();
        assert!(stored(&to(7), &mut links).is_ok());
        assert_eq!(links[0].name.as_bytes(), b"eth0");
        assert!(stored(&to(8), &mut links).is_err());
        assert!(stored(&to(0), &mut links).is_err());
    }

    #[test]
    fn a_police_action_is_sent_with_tables_for_its_rates() {
        let mut police = vec![0; 56];
        set_word(&mut police, 28, 125_000);
        set_word(&mut police, 44, 3);
        let options = nested(&[(1, &police), (6, &[9; 32])]);
        let list = nested(&[(1, &nested(&[(1, b"police\0"), (2, &options)]))]);
        let stored = stored(&nested(&[(2, &list)]), &mut Vec::new()).unwrap();
        let sent = Nested::parse(&sendable("matchall", &stored, [8, 0])).unwrap();
        let list = Nested::parse(sent.get(2).unwrap()).unwrap();
        let action = Nested::parse(list.get(1).unwrap()).unwrap();
        let options = Nested::parse(action.get(2).unwrap()).unwrap();
        assert_eq!(options.get(2).map(<[u8]>::len), Some(1024));
        assert_eq!(options.get(3), None, "no peak rate");
        assert_eq!(options.get(6), None);
        let police = options.get(1).unwrap();
        assert_eq!((police[20], word(police, 44)), (1, Some(0)));
    }

    #[test]
    fn a_vlan_is_sent_as_the_type_of_the_frame() {
        let reported = nested(&[(8, &[8, 0]), (23, &[0, 5]), (25, &[8, 0])]);
        let sent = |protocol| Nested::parse(&sendable("flower", &reported, protocol)).unwrap();
        assert_eq!(sent([0x81, 0]).get(ETH_TYPE), Some(&[0x81, 0][..]));
        assert_eq!(sent([0x81, 0]).get(25), Some(&[8, 0][..]));
        assert_eq!(sent([8, 0]).bytes(), reported);
    }

    #[test]
    fn other_actions_are_not_stored() {
        for kind in [&b"pedit\0"[..], b"strange"] {
            let options = nested(&[(2, &action(kind, &[0; 24]))]);
            assert!(stored(&options, &mut Vec::new()).is_err());
        }
        assert!(stored(&[1, 2, 3], &mut Vec::new()).is_err());
        assert!(stored(&nested(&[(2, &[1, 2])]), &mut Vec::new()).is_err());
    }
}

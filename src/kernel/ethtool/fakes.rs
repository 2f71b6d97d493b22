//! What drivers answer of which this machine has none.

use crate::kernel::codec::nested::{Nested, set_word};
use crate::kernel::ethtool::ioctl::{rss, words};
use crate::kernel::ethtool::read::nic_in;
use crate::kernel::ethtool::{bits, link_modes, message};
use crate::kernel::plain::genl::NESTED;
use crate::model::net::link::nic::{NicGroup, NicKey, NicSettings, NicValue};

/// `struct nlmsghdr`, `struct genlmsghdr` and attributes.
fn answer(attributes: &Nested) -> Vec<u8> {
    let attributes = attributes.bytes();
    let length = u32::try_from(20 + attributes.len()).unwrap();
    let mut bytes = words(&[length, 0x0000_0020, 1, 0]);
    bytes.extend([1, 1, 0, 0]);
    bytes.extend(attributes);
    bytes
}

fn attributes(all: &[(u16, &[u8])]) -> Nested {
    let mut nested = Nested::default();
    for (number, value) in all {
        nested.push(*number, value.to_vec());
    }
    nested
}

/// A set with a mask, as the kernel lists it: each bit with its number and name, and whether it is set.
fn listed(all: &[(&[u8], bool)]) -> Vec<u8> {
    let mut list = Nested::default();
    for (name, is_set) in all {
        let mut bit = attributes(&[(1, &[0; 4]), (2, &[name, &[0][..]].concat())]);
        if *is_set {
            bit.push(3, Vec::new());
        }
        list.push(1 | NESTED, bit.bytes());
    }
    attributes(&[(2, &[9, 0, 0, 0]), (3 | NESTED, &list.bytes())]).bytes()
}

fn settings(attributes: &Nested) -> NicSettings {
    nic_in(&answer(attributes), &"eth0".parse().unwrap())
        .0
        .settings
}

fn key(text: &str) -> NicKey {
    NicKey::try_from(text.to_owned()).unwrap()
}

fn texts(words: &[&str]) -> NicValue {
    NicValue::Texts(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn energy_efficiency_is_read_and_written() {
    let modes = listed(&[(b"100baseT/Full", true), (b"1000baseT/Full", false)]);
    let timer = 17_u32.to_ne_bytes();
    let eee = attributes(&[
        (2 | NESTED, &modes),
        (4, &[1]),
        (5, &[1]),
        (6, &[0]),
        (7, &timer),
    ]);
    let read = settings(&eee).remove(&NicGroup::Eee).unwrap();
    let expected = [
        ("advertise", texts(&["100baseT/Full"])),
        ("enabled", NicValue::Flag(true)),
        ("tx-lpi", NicValue::Flag(false)),
        ("tx-timer", NicValue::Number(17)),
    ];
    let expected: Vec<_> = expected.map(|(name, value)| (key(name), value)).into();
    assert_eq!(read.into_iter().collect::<Vec<_>>(), expected);
    let mut request = Nested::default();
    let message = message::of(NicGroup::Eee).unwrap();
    message.add_to(&mut request, &expected).unwrap();
    let set = bits::Bits::parse(request.get(2).unwrap()).unwrap();
    assert_eq!(set.set().collect::<Vec<_>>(), [key("100baseT/Full")]);
    assert_eq!(request.get(5), Some(&[1][..]));
    assert_eq!(request.get(7), Some(&timer[..]));
}

#[test]
fn a_private_flag_whose_name_is_no_text_is_counted_and_the_others_are_read() {
    let flags = listed(&[(b"legacy-rx", true), (b"\xff\x01", true), (b"", false)]);
    let message = message::of(NicGroup::Private).unwrap();
    let reported = message.reported(&attributes(&[(2 | NESTED, &flags)]));
    let read: Vec<_> = reported.values.into_iter().collect();
    assert_eq!(read, [(key("legacy-rx"), NicValue::Flag(true))]);
    assert_eq!(reported.nameless, 2);
}

#[test]
fn wake_on_lan_is_its_modes_and_never_its_password() {
    let modes = listed(&[(b"magic", true), (b"magicsecure", true), (b"phy", false)]);
    let wol = attributes(&[(2 | NESTED, &modes), (3, b"secret")]);
    let read = message::of(NicGroup::Wol).unwrap().reported(&wol).values;
    let read: Vec<_> = read.into_iter().collect();
    assert_eq!(read, [(key("modes"), texts(&["magic", "magicsecure"]))]);
    let unreadable = nic_in(&answer(&wol), &"eth0".parse().unwrap()).1;
    assert_eq!(unreadable, ["the Wake-on-LAN password of eth0"]);
    // One that cannot wake has nothing to set, and a set without a bit is one.
    let message = message::of(NicGroup::Wol).unwrap();
    let reported = |modes: &[(&[u8], bool)]| {
        message
            .reported(&attributes(&[(2 | NESTED, &listed(modes))]))
            .values
    };
    assert!(reported(&[]).is_empty());
    let none = reported(&[(b"magic", false)]);
    assert_eq!(none[&key("modes")], texts(&[]));
    let text = serde_json::to_string(&none).unwrap();
    assert_eq!(
        serde_json::from_str::<message::Values>(&text).unwrap(),
        none
    );
}

#[test]
fn speed_and_duplex_are_settings_only_without_negotiation() {
    let can = listed(&[
        (b"Autoneg", true),
        (b"TP", true),
        (b"Pause", true),
        (b"100baseT/Full", true),
        (b"1000baseT/Full", false),
    ]);
    let speed = 100_u32.to_ne_bytes();
    let of = |autoneg: u8, modes: &[u8], speed: &[u8], is_virtual| {
        let answer = [
            (2, &[autoneg][..]),
            (3 | NESTED, modes),
            (5, speed),
            (6, &[1]),
        ];
        let values = link_modes::of(&attributes(&answer), is_virtual);
        let words = values.iter().map(|(name, value)| format!("{name} {value}"));
        words.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        of(1, &can, &speed, false),
        "advertise 100baseT/Full, autoneg on"
    );
    assert_eq!(
        of(0, &can, &speed, false),
        "autoneg off, duplex full, speed 100"
    );
    let unknown = u32::MAX.to_ne_bytes();
    assert_eq!(of(0, &can, &unknown, false), "autoneg off, duplex full");
    // One speed, which cannot be set; and a device whose speed is what it was told.
    assert_eq!(
        of(0, &listed(&[(b"10000baseSR/Full", true)]), &speed, false),
        ""
    );
    assert_eq!(of(0, &listed(&[]), &speed, false), "");
    assert_eq!(of(0, &listed(&[]), &speed, true), "duplex full, speed 100");
    // Modes that are not wanted are named, and ports and pauses are not.
    let now = attributes(&[(3 | NESTED, &can)]);
    let mut request = Nested::default();
    let wanted = [(key("advertise"), texts(&["1000baseT/Full"]))];
    link_modes::add_to(&mut request, &wanted, &now).unwrap();
    let bits = bits::Bits::parse(request.get(3).unwrap()).unwrap().named;
    assert_eq!(
        bits,
        [(key("1000baseT/Full"), true), (key("100baseT/Full"), false)]
    );
}

#[test]
fn a_table_is_read_unless_it_is_the_drivers_own_spread() {
    let own = |table: &[u64], rings| rss::is_drivers(table, rings);
    assert!(own(&[0, 1, 2, 0, 1, 2], 3));
    // igb: in blocks.
    assert!(own(&[0, 0, 1, 1, 2, 2, 3, 3], 4));
    assert!(own(&[], 4));
    // `ethtool -X eth0 equal 2` with four queues.
    assert!(!own(&[0, 1, 0, 1, 0, 1, 0, 1], 4));
    assert!(own(&[0, 1, 0, 1], 0));
    assert!(!own(&[3, 3, 3, 3], 4));
    let structure = |table: &[u32], key: &[u8]| {
        let lengths = [table.len(), key.len()].map(|length| u32::try_from(length).unwrap());
        let mut bytes = words(&[0x46, 0, lengths[0], lengths[1], 0, 0]);
        bytes[16] = 1;
        bytes.extend(words(table));
        bytes.extend(key);
        bytes
    };
    let read = |bytes: &[u8]| {
        let values = rss::in_structure(bytes, 2);
        let words = values.iter().map(|(name, value)| format!("{name} {value}"));
        words.collect::<Vec<_>>().join(", ")
    };
    let whole = structure(&[1, 1, 0, 1], &[0xab, 0x01]);
    assert_eq!(read(&whole), "function toeplitz, key ab01, table 1 1 0 1");
    assert_eq!(
        read(&structure(&[0, 1, 0, 1], &[0, 0])),
        "function toeplitz"
    );
    // One that claims more than it has is not read beyond its end.
    let mut forged = whole;
    set_word(&mut forged, 8, u32::MAX);
    assert_eq!(read(&forged), "function toeplitz");
    assert_eq!(read(&[]), "");
}

#[test]
fn what_is_short_or_no_answer_says_nothing() {
    let modes = listed(&[(b"100baseT/Full", true)]);
    let number = 7_u32.to_ne_bytes();
    let whole = answer(&attributes(&[
        (2 | NESTED, &modes),
        (5, &[1]),
        (7, &number),
        (8, &[1]),
    ]));
    for end in 0..whole.len() {
        let mut cut = whole[..end].to_vec();
        nic_in(&cut, &"eth0".parse().unwrap());
        if let Some(length) = cut.get_mut(..4) {
            length.copy_from_slice(&u32::try_from(end).unwrap().to_ne_bytes());
        }
        nic_in(&cut, &"eth0".parse().unwrap());
    }
}

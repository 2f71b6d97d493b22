use super::*;
use crate::kernel::attached::chains::tests::run;
use crate::kernel::netns;

/// Rules with the link that they name by its ifindex, or none.
const RULES: [(&str, Option<&str>); 18] = [
    ("iif v0 drop", Some("v0")),
    ("oif != v1 drop", Some("v1")),
    ("ip saddr 10.0.0.1 iif v0 tcp dport 22 drop", Some("v0")),
    ("meta sdif v1 drop", Some("v1")),
    ("fib saddr oif v0 drop", Some("v0")),
    ("iif @plain drop", Some("v0")),
    ("iif @intervals drop", Some("v1")),
    ("iif . ip saddr @first drop", Some("v0")),
    ("ip saddr . iif @second drop", Some("v1")),
    ("ip6 saddr . iif { fe80::1 . v0 } drop", Some("v0")),
    ("iif vmap { v1 : drop }", Some("v1")),
    ("iifname v0 drop", None),
    ("fib saddr . iif oif exists drop", None),
    ("iif 5-8 drop", None),
    ("ether saddr 02:00:00:00:00:01 drop", None),
    ("ip saddr 10.0.0.1 counter drop", None),
    ("ip saddr { 10.0.0.1, 10.0.0.2 } drop", None),
    ("iif lo drop", Some("lo")),
];
const SETS: &str = "table inet t {
        set plain { type iface_index; elements = { v0 }; }
        set intervals { type iface_index; flags interval; elements = { v1 }; }
        set first { type iface_index . ipv4_addr; elements = { v0 . 10.0.0.1 }; }
        set second { type ipv4_addr . iface_index; flags interval; elements = { 10.0.0.0/24 . v1 }; }
        chain c { type filter hook input priority 0; }
    }
    table netdev n {
        map m { type ipv4_addr : iface_index; elements = { 10.0.0.1 : v1 }; }
        chain d {
            type filter hook ingress device v0 priority 0;
            fwd to ip saddr map @m
            ip saddr 10.0.0.2 dup to v1
        }
    }
    ";

fn chains(known: &IndexUses, index: u32) -> Vec<(String, u64)> {
    let users = known.users.get(&index).into_iter().flatten();
    let users = users.map(|user| match user {
        IndexUser::NftRule { chain, handle, .. } => (chain.to_string(), *handle),
        other => panic!("{other:?}"),
    });
    users.collect()
}

#[test]
fn rules_name_links_by_their_ifindex_in_any_expression_and_after_the_links_are_gone() {
    netns::in_new(|| {
        run("ip", "link add v0 index 70 type veth peer v1 index 71", "");
        run("nft", "-f -", SETS);
        let mut handles = Vec::new();
        for (rule, link) in RULES {
            let shown = run("nft", &format!("-e -a add rule inet t c {rule}"), "");
            let shown = shown.lines().find(|line| line.starts_with("add rule"));
            let (_, handle) = shown.unwrap().rsplit_once("# handle ").unwrap();
            handles.push((handle.parse::<u64>().unwrap(), link));
        }
        let of = |link| {
            let own = handles.iter().filter(move |(_, of)| *of == Some(link));
            own.map(|(handle, _)| ("c".to_owned(), *handle))
        };
        let mut known = IndexUses::default();
        read(&mut known);
        assert_eq!(known.unread, [""; 0]);
        let in_chain = |index| {
            let mut rules = chains(&known, index);
            rules.sort();
            rules
        };
        assert_eq!(in_chain(1), of("lo").collect::<Vec<_>>());
        assert_eq!(in_chain(70), of("v0").collect::<Vec<_>>());
        let mut all = in_chain(71);
        all.retain(|(chain, _)| chain == "c");
        assert_eq!(all, of("v1").collect::<Vec<_>>());
        assert_eq!(in_chain(71).len(), all.len() + 2, "fwd and dup");
        run("ip", "link del v0", "");
        let mut known = IndexUses::default();
        read(&mut known);
        assert_eq!(chains(&known, 70).len(), of("v0").count());
    })
    .unwrap();
}

/// The kernel's reports of `ip saddr . iif @s` and of `ip saddr 10.0.0.1 iif v0`, and of the element `10.0.0.0/24 . v1` of the set.
#[cfg(target_endian = "little")]
const LOOKUP: &str = "01000002060001007400000006000200630000000c00030000000000000000034801040024000100090001006d6574610000\
    000014000200080002000000000f08000100000000012c00010008000100636d700020000200080001000000000108000200\
    000000000c0003000500010002000000340001000c0001007061796c6f616400240002000800010000000001080002000000\
    0001080003000000000c080004000000000424000100090001006d6574610000000014000200080002000000000408000100\
    00000009400001000e000100627974656f726465720000002c00020008000100000000090800020000000009080003000000\
    0001080004000000000408000500000000042c0001000b0001006c6f6f6b757000001c000200060001007300000008000200\
    000000010800050000000000300001000e000100696d6d6564696174650000001c0002000800010000000000100002000c00\
    02000800010000000000";
#[cfg(target_endian = "little")]
const COMPARISON: &str = "01000002060001007400000006000200630000000c00030000000000000000040c0006000000000000000003340104002400\
    0100090001006d6574610000000014000200080002000000000f08000100000000012c00010008000100636d700020000200\
    080001000000000108000200000000000c0003000500010002000000340001000c0001007061796c6f616400240002000800\
    0100000000010800020000000001080003000000000c08000400000000042c00010008000100636d70002000020008000100\
    0000000108000200000000000c000300080001000a00000124000100090001006d6574610000000014000200080002000000\
    000408000100000000012c00010008000100636d700020000200080001000000000108000200000000000c00030008000100\
    46000000300001000e000100696d6d6564696174650000001c0002000800010000000000100002000c000200080001000000\
    0000";
#[cfg(target_endian = "little")]
const SET_ELEMENT: &str = "100001000c0001000a0000000000004710000a000c0001000a0000ff00000047";

#[cfg(target_endian = "little")]
#[test]
fn reports_of_the_kernel_are_read_whole_or_not_at_all() {
    let bytes = |hex: &str| -> Vec<u8> {
        let pairs = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| str::from_utf8(pair).unwrap());
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    };
    let (lookup, comparison) = (bytes(LOOKUP), bytes(COMPARISON));
    let named = |message| RuleReader::by(rule(message).unwrap().1.expressions);
    let part = ElementPart::Key {
        place: 4,
        is_swapped: true,
    };
    assert_eq!(named(&lookup).lookups, [(&b"s"[..], part)]);
    assert_eq!(part.index(&bytes(SET_ELEMENT)), Some(71));
    assert_eq!(named(&comparison).indexes, BTreeSet::from([70]));
    for end in 0..comparison.len() {
        assert!(rule(&comparison[..end]).is_none(), "{end}");
    }
}

//! The rows of the tables say which attributes are compared.

use super::{
    Attributes, ETH0, INET, INET_6, Known, OTHER, V4, V4_FAR, address_message, attributes,
    link_message, message, neighbour_message, nexthop_message,
};
use crate::model::fidelity::{
    ADDRESS, AttributeTable, BOND, BOND_PORT, BRIDGE_PORT, HOP, INET6, IPVLAN, LINK, LINK_INFO,
    MACVLAN, METRIC, NEIGHBOUR, NEXTHOP, RESILIENT, ROUTE, TABLES, TwinComparison, VLAN, VXLAN,
};

/// An attribute and the others that its message needs.
fn beside<'a>(tested: (u16, &'a [u8]), others: Attributes<'a>) -> Vec<(u16, &'a [u8])> {
    let others = others.iter().filter(|(number, _)| *number != tested.0);
    others.copied().chain([tested]).collect()
}

/// A message with one attribute of a table; `None` for a table of attributes that no message of a link, an address, a route, a
/// nexthop object or a neighbour has.
fn with_attribute(table: &AttributeTable, tested: (u16, &[u8])) -> Option<Vec<u8>> {
    let alone = attributes(&[tested]);
    let link = |tested: (u16, &[u8])| link_message(ETH0, &beside(tested, &[(3, b"eth0\0")]));
    let info = |body: Attributes<'_>| link((18, &attributes(body)));
    let data = |kind: &[u8]| info(&[(1, kind), (2, &alone)]);
    let port = |kind: &[u8]| info(&[(4, kind), (5, &alone)]);
    let route = |body: Attributes<'_>| {
        message(
            libc::RTM_NEWROUTE,
            &[INET, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0],
            body,
        )
    };
    let hop = || {
        let length = u8::try_from(8 + alone.len()).unwrap();
        [&[length, 0, 0, 0, ETH0, 0, 0, 0], alone.as_slice()].concat()
    };
    Some(match table.title {
        title if title == LINK.title => link(tested),
        title if title == LINK_INFO.title => info(&beside(tested, &[(4, b"bridge\0")])),
        title if title == MACVLAN.title => data(b"macvlan\0"),
        title if title == IPVLAN.title => data(b"ipvlan\0"),
        title if title == VLAN.title => data(b"vlan\0"),
        title if title == VXLAN.title => data(b"vxlan\0"),
        title if title == BOND.title => data(b"bond\0"),
        title if title == BOND_PORT.title => port(b"bond\0"),
        title if title == BRIDGE_PORT.title => port(b"bridge\0"),
        title if title == INET6.title => link((26, &attributes(&[(INET_6.into(), &alone)]))),
        title if title == ADDRESS.title => address_message(INET, ETH0, &beside(tested, &[(2, V4)])),
        title if title == ROUTE.title => route(&[tested]),
        title if title == HOP.title => route(&[(9, &hop())]),
        title if title == METRIC.title => route(&[(8, &alone)]),
        title if title == NEXTHOP.title => nexthop_message(INET, &[tested]),
        title if title == RESILIENT.title => nexthop_message(INET, &[(12, &alone)]),
        title if title == NEIGHBOUR.title => {
            let body = beside(tested, &[(1, V4_FAR), (2, &OTHER)]);
            neighbour_message(INET, ETH0, 0x80, 0, &body)
        }
        _ => return None,
    })
}

/// Pairs of values, of which one at least differs in what the kernel would mean by it.
fn pairs() -> Vec<[Vec<u8>; 2]> {
    let lengths = [1, 2, 4, 6, 8, 16, 32];
    let numbers = lengths.map(|length| [vec![0; length], vec![1; length]]);
    let limits = lengths.map(|length| [vec![0; length], vec![0xff; length]]);
    // An attribute in it, which is a hop of a multipath route as well.
    let nested = (1..=64).map(|number| [vec![], vec![8, 0, number, 0, ETH0, 0, 0, 0]]);
    numbers.into_iter().chain(limits).chain(nested).collect()
}

#[test]
fn every_row_says_how_a_rehearsal_compares_it() {
    let (known, pairs) = (Known::eth0(), pairs());
    let reported = |table, number, value: &[u8]| {
        with_attribute(table, (number, value)).map(|message| known.reported(&message))
    };
    let mut wrong = Vec::new();
    let rows = TABLES
        .into_iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    for (table, row) in rows {
        let is_said = table.comparison(row) == Some(TwinComparison::Reported);
        let is_compared = pairs.iter().any(|[one, other]| {
            reported(table, row.number, one) != reported(table, row.number, other)
        });
        if is_said != is_compared {
            wrong.push(format!("{}: {}", table.title, row.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

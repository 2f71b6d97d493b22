use super::*;
use crate::model::fidelity::{TABLES, TwinComparison};
use crate::model::{LinkKind, NetState};

fn name(text: &str) -> IfName {
    text.parse().unwrap()
}

fn object(what: RawKind, title: &str, dev: &str, attributes: &[(&str, u32)]) -> RawObject {
    let attributes = attributes.iter();
    RawObject {
        what,
        name: title.to_owned(),
        devs: BTreeSet::from([name(dev)]),
        source: None,
        route: None,
        attributes: attributes
            .map(|(name, value)| ((*name).to_owned(), value.to_ne_bytes().to_vec()))
            .collect(),
    }
}

fn route(dev: &str, metric: u32) -> RawObject {
    object(
        RawKind::Route,
        "route 10.1.0.0/16 table 254 metric 0",
        dev,
        &[("RTA_FLOW", metric)],
    )
}

/// The differences where eth0 is lost and eth1 stays.
fn between(real: &[RawObject], twin: &[RawObject]) -> Vec<RehearsalCause> {
    let state = NetState {
        links: ["eth0", "eth1"]
            .map(|dev| Link::plain(name(dev), LinkKind::other("veth")))
            .to_vec(),
        ..NetState::default()
    };
    let side = |reported| Side {
        reported,
        state: &state,
    };
    let lost = BTreeSet::from([name("eth0")]);
    let found = differences(
        side(real),
        side(twin),
        &lost,
        &BTreeSet::new(),
        DaemonState::Leave,
    );
    found.into_iter().map(|(_, cause)| cause).collect()
}

#[test]
fn equal_objects_differ_in_nothing_and_those_of_links_that_stay_do_not_count() {
    let all = [route("eth0", 1), route("eth1", 2)];
    assert_eq!(between(&all, &all), []);
    assert_eq!(between(&all, &[route("eth0", 1), route("eth1", 9)]), []);
    assert_eq!(between(&[route("eth1", 2)], &[]), []);
}

#[test]
fn an_object_that_is_lost_new_or_changed_is_found() {
    assert_eq!(between(&[route("eth0", 1)], &[]), [RehearsalCause::NotBack]);
    assert_eq!(between(&[], &[route("eth0", 1)]), [RehearsalCause::Surplus]);
    let changed = RehearsalCause::Differs {
        attribute: "RTA_FLOW".to_owned(),
        now: Some("1".to_owned()),
        then: Some("3".to_owned()),
        more: 0,
    };
    assert_eq!(between(&[route("eth0", 1)], &[route("eth0", 3)]), [changed]);
}

#[test]
fn an_attribute_that_no_table_has_counts() {
    let link = |extra: &[(&str, u32)]| object(RawKind::Link, "link eth0", "eth0", extra);
    let found = between(&[link(&[("attribute 99 (Links)", 7)])], &[link(&[])]);
    let [
        RehearsalCause::Differs {
            attribute,
            then: None,
            ..
        },
    ] = found.as_slice()
    else {
        panic!("{found:?}");
    };
    assert_eq!(attribute, "attribute 99 (Links)");
}

#[test]
fn the_order_of_routes_over_a_lost_link_and_one_that_stays_counts() {
    let [first, second] = [route("eth0", 1), route("eth1", 2)];
    let [real, twin] = [[first.clone(), second.clone()], [second, first]];
    assert_eq!(between(&real, &twin), [RehearsalCause::Order]);
}

#[test]
fn the_order_of_the_addresses_of_a_link_counts() {
    let address = |text: &str| object(RawKind::Address, text, "eth0", &[]);
    let [first, second] = [
        "address 10.0.0.1/24 dev eth0",
        "address 10.0.0.2/24 dev eth0",
    ]
    .map(address);
    let [real, twin] = [[first.clone(), second.clone()], [second, first]];
    assert_eq!(between(&real, &twin), [RehearsalCause::Order]);
}

#[test]
fn values_are_numbers_texts_and_addresses() {
    let shown = [
        shown(&7_u32.to_ne_bytes()),
        shown(b"cubic\0"),
        shown(&[2, 0, 0, 0, 0, 1]),
        shown(&[1, 2, 3]),
    ];
    assert_eq!(shown, ["7", "cubic", "02:00:00:00:00:01", "010203"]);
}

#[test]
fn every_part_that_a_table_names_is_compared() {
    let link = Link::plain(name("eth0"), LinkKind::other("veth"));
    let compared = parts(&link, &link, false).map(|(part, _)| part);
    let mut named = BTreeSet::new();
    for table in TABLES {
        let comparisons = table.rows.iter().map(|row| table.comparison(row));
        named.extend(comparisons.filter_map(|comparison| match comparison {
            Some(TwinComparison::Part(part)) => Some(part),
            _ => None,
        }));
    }
    assert!(!named.is_empty());
    for part in named {
        assert!(compared.contains(&part), "{part}");
    }
}

#[test]
fn packet_steering_that_does_not_come_back_is_found() {
    let twin = Link::plain(name("eth0"), LinkKind::other("veth"));
    let key = "queues/rx-0/rps_cpus".to_owned().try_into().unwrap();
    let value = "2".to_owned().try_into().unwrap();
    let real = Link {
        sysfs: [(key, value)].into(),
        ..twin.clone()
    };
    let differing = parts(&real, &twin, false).into_iter();
    let differing: Vec<_> = differing.filter(|(_, is_same)| !is_same).collect();
    assert_eq!(differing, [("packet steering and NAPI settings", false)]);
}

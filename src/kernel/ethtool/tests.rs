//! What a namespace of this machine has, beside ethtool(8).

use std::process::Command;

use crate::kernel::ethtool::read::NicReader;
use crate::kernel::ethtool::set;
use crate::kernel::{Errno, netns};
use crate::model::IfName;
use crate::model::net::link::nic::{NicGroup, NicKey, NicState, NicValue};

fn run(program: &str, arguments: &str) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn name(text: &str) -> IfName {
    text.parse().unwrap()
}

fn key(text: &str) -> NicKey {
    NicKey::try_from(text.to_owned()).unwrap()
}

fn value<'a>(state: &'a NicState, group: NicGroup, name: &str) -> Option<&'a NicValue> {
    state.settings.get(&group)?.get(&key(name))
}

fn read(dev: &str) -> NicState {
    let (state, unreadable) = NicReader::open_here().read(&name(dev));
    assert_eq!(unreadable, [""; 0]);
    state.unwrap()
}

/// Runs it in a new namespace with a veth pair of four queues.
fn with_veth(test: impl FnOnce() + Send) {
    netns::in_new(|| {
        run(
            "ip",
            "link add v0 numtxqueues 4 numrxqueues 4 type veth peer v1",
        );
        test();
    })
    .unwrap();
}

fn flag(state: &NicState, group: NicGroup, name: &str) -> Option<bool> {
    match value(state, group, name)? {
        NicValue::Flag(flag) => Some(*flag),
        other => panic!("{name}: {other}"),
    }
}

#[test]
fn features_are_what_ethtool_lists_as_changeable_with_what_is_requested() {
    with_veth(|| {
        // The second drags the first: it is off and requested on.
        run(
            "ethtool",
            "-K v0 tx-tcp-segmentation on tx-scatter-gather off gro on",
        );
        let state = read("v0");
        let listed = run("ethtool", "-k v0");
        let mut listed_changeable = 0;
        for line in listed.lines().filter(|line| !line.contains("[fixed]")) {
            let (name, words) = line.split_once(": ").unwrap_or_default();
            let feature = key_of_ethtool(name.trim());
            let Some(requested) = feature.and_then(|name| flag(&state, NicGroup::Features, name))
            else {
                continue;
            };
            listed_changeable += 1;
            let is_on = words.starts_with("on");
            let is_unmet = words.contains("requested");
            assert_eq!(requested, is_on != is_unmet, "{line}");
            assert_eq!(
                state.unmet.contains(&key(feature.unwrap())),
                is_unmet,
                "{line}"
            );
        }
        assert!(listed_changeable > 5, "{listed}");
        assert!(!state.unmet.is_empty(), "{listed}");
    });
}

/// Those that ethtool(8) shows by the kernel's name.
fn key_of_ethtool(name: &str) -> Option<&str> {
    (name.starts_with("tx-") || name.starts_with("rx-")).then_some(name)
}

#[test]
fn what_is_set_is_read_back_by_both_ways_and_by_ethtool() {
    with_veth(|| {
        let group = NicGroup::Features;
        let off = [
            (key("rx-gro"), NicValue::Flag(true)),
            (key("tx-tcp-segmentation"), NicValue::Flag(false)),
        ];
        set(&name("v0"), group, &off).unwrap();
        let state = read("v0");
        assert_eq!(flag(&state, group, "rx-gro"), Some(true));
        assert_eq!(flag(&state, group, "tx-tcp-segmentation"), Some(false));
        assert!(run("ethtool", "-k v0").contains("tx-tcp-segmentation: off"));
        let channels = [
            (key("rx"), NicValue::Number(2)),
            (key("tx"), NicValue::Number(3)),
        ];
        set(&name("v0"), NicGroup::Channels, &channels).unwrap();
        let state = read("v0");
        assert_eq!(
            value(&state, NicGroup::Channels, "rx"),
            Some(&NicValue::Number(2))
        );
        assert_eq!(
            value(&state, NicGroup::Channels, "tx"),
            Some(&NicValue::Number(3))
        );
        assert_eq!(
            state.limits[&NicGroup::Channels][&key("rx")],
            NicValue::Number(4)
        );
        assert_eq!(
            NicReader::without_messages().read(&name("v0")).0,
            Some(state)
        );
    });
}

#[test]
fn a_refusal_has_the_errno_and_the_kernels_words() {
    with_veth(|| {
        let many = [(key("rx"), NicValue::Number(100))];
        let refused = set(&name("v0"), NicGroup::Channels, &many).unwrap_err();
        assert_eq!(refused.errno, Errno::EINVAL);
        let words = refused.words.as_deref().unwrap_or_default();
        assert_eq!(words, "requested channel count exceeds maximum");
        assert_eq!(refused.to_string(), words);
        let ring = [(key("rx"), NicValue::Number(100))];
        let refused = set(&name("v0"), NicGroup::Rings, &ring).unwrap_err();
        assert_eq!(refused.errno, Errno::EOPNOTSUPP);
        let unknown = [(key("no-such-thing"), NicValue::Number(1))];
        for group in [
            NicGroup::Rings,
            NicGroup::Tunables,
            NicGroup::Queues,
            NicGroup::Link,
        ] {
            assert!(set(&name("v0"), group, &unknown).is_err(), "{group:?}");
        }
        let gone = set(&name("v9"), NicGroup::Rings, &ring).unwrap_err();
        assert_eq!(gone.errno, Errno::ENODEV);
    });
}

#[test]
fn a_device_without_settings_or_that_is_gone_is_no_failure() {
    netns::in_new(|| {
        run("ip", "link add d0 type ifb");
        let (state, unreadable) = NicReader::open_here().read(&name("d0"));
        assert_eq!(unreadable, [""; 0]);
        // Only features, which every device has.
        assert!(state.unwrap().settings.len() <= 2);
        assert_eq!(NicReader::open_here().read(&name("d9")), (None, Vec::new()));
    })
    .unwrap();
}

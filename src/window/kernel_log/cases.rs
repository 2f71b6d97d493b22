//! Each directory of `testdata/kmsg` is a case: `log.txt` as `/dev/kmsg` has it, and in `told.txt` what is kept of it, and the problems
//! that it explains. `NETFIX_BLESS` writes the latter again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use crate::kernel::kmsg::KernelLogReader;
use crate::model::net::link::nic::{NicGroup, NicKey};
use crate::model::problem::{GatewayCause, Object, PlanCause, RestoreCause};
use crate::model::window::{KernelLog, KernelNames};
use crate::model::{IfName, Link, LinkKind, PodId, Problem};
use crate::window::kernel_log::explain::explain;
use crate::window::kernel_log::read;

/// `eth0` with a virtual function that has no network device, `eth1` beside it, `vf0` in a pod, and a stand-in without a bus.
fn names() -> KernelNames {
    let device = |name: &str, bus: &str| -> Link {
        let mut link = Link::plain(name.parse().unwrap(), LinkKind::Physical);
        link.hardware = serde_json::from_value(serde_json::json!({"bus": bus})).unwrap();
        link
    };
    let mut first = device("eth0", "0000:3b:00.0");
    let functions = serde_json::json!({"sriov": {"vfs": 1, "autoprobe": true, "functions": [
        {"index": 0, "bus": "0000:3b:01.0"},
        {"index": 1, "bus": "0000:3b:01.1"},
    ]}});
    first.nic = serde_json::from_value(functions).unwrap();
    let stand_in = Link::plain("dev0".parse().unwrap(), LinkKind::other("veth"));
    let links = [
        first,
        device("eth1", "0000:3b:00.1"),
        device("vf0", "0000:3b:01.1"),
        stand_in,
    ];
    let under_pods: BTreeSet<IfName> = [links[3].name.clone()].into();
    KernelNames::of(&links, &under_pods)
}

/// What a restore might report.
fn problems() -> Vec<Problem> {
    let key = NicKey::try_from("combined".to_owned()).unwrap();
    let mut all = Vec::new();
    for dev in ["eth0", "eth1", "vf0"] {
        let dev: IfName = dev.parse().unwrap();
        for group in [NicGroup::Channels, NicGroup::Rings] {
            let cause = RestoreCause::SettingRefused {
                then: serde_json::from_value(8.into()).unwrap(),
                now: None,
                limit: None,
                driver: None,
                error: None,
                may_be_held: false,
            };
            all.push(cause.error(Object::nic(&dev, Some(group), Some(&key))));
        }
        all.push(PlanCause::SettingsGone.error(Object::nic(&dev, None, None)));
        all.push(RestoreCause::NoCarrier.warning(&dev));
        all.push(PlanCause::DeviceMissing { hardware: None }.error(&dev));
    }
    for (pod, lower) in [("on-eth0", "eth0"), ("on-eth1", "eth1")] {
        let id = PodId::try_from(pod.to_owned()).unwrap();
        let timeout = Duration::from_secs(5);
        let silent = GatewayCause::NoAnswer { timeout }.error("10.3.0.1 via eth0");
        // All pods have a link with the name of the device.
        let (own, parent) = (
            Object::from("eth0".parse::<IfName>().unwrap()),
            lower.parse(),
        );
        let parent = parent.unwrap();
        let missing = PlanCause::HostLinkMissing { parent }.error(own);
        all.extend([silent.of(&id), missing.of(&id)]);
    }
    all
}

fn told(log: &KernelLog) -> String {
    let mut text = String::new();
    for line in &log.lines {
        let device = line
            .device
            .as_ref()
            .map_or("-".to_owned(), ToString::to_string);
        let cause = serde_json::to_string(&line.cause).unwrap();
        let (times, line) = (line.times, &line.text);
        writeln!(text, "{times} {device} {cause}: {line}").unwrap();
    }
    if log.left_out > 0 {
        writeln!(text, "left out: {}", log.left_out).unwrap();
    }
    let mut problems = problems();
    let is_on = |pod: &PodId, device: &IfName| pod.as_str() == format!("on-{device}");
    let causes = explain(problems.iter_mut(), log.causes(0), is_on);
    for cause in &causes {
        let explained = problems.iter().filter(|one| one.because == cause.because);
        let count = explained.count();
        writeln!(text, "{}: {cause}\n  explains {count}", cause.severity).unwrap();
    }
    text
}

#[test]
fn every_log_tells_what_its_case_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/kmsg");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let mut reader = KernelLogReader::of(File::open(folder.join("log.txt")).unwrap());
        let found = told(&read(&mut reader, 0, names));
        let path = folder.join("told.txt");
        if std::env::var_os("NETFIX_BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != found {
            wrong.push(format!("{}:\n{found}", folder.display()));
        }
        count += 1;
    }
    assert!(count >= 10, "{count} cases are few");
    assert!(wrong.is_empty(), "told otherwise:\n{}", wrong.join("\n"));
}

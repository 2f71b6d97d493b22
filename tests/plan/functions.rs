//! Virtual functions: what a driver refuses, and names, on the model kernel.

use std::collections::BTreeSet;

use netfix::model::net::link::function::FunctionSetting;
use netfix::model::net::link::nic::VirtualFunction;
use netfix::model::{IfName, NetState};
use netfix::plan::{self, Change, HostLinks, NetlinkStep, Plan, SriovChange, SriovStep, Step};

use super::kernel::{Errno, Kernel};
use super::{Case, cases};

/// The host of `testdata/plan/host-functions-lost`, with three functions, before and after the reload.
fn lost() -> Case {
    let all = cases::read::<Case>("plan").into_iter();
    let mut case = all.filter(|(folder, _)| folder.ends_with("host-functions-lost"));
    case.next().expect("the case").1
}

fn functions(state: &mut NetState) -> &mut Vec<VirtualFunction> {
    let nic = state.links[1].nic.as_mut().expect("a NIC");
    &mut nic.sriov.as_mut().expect("functions").functions
}

/// Plans and applies in rounds; returns the last plan and the steps that the kernel refused in the last round.
fn restore(case: &Case, kernel: &mut Kernel) -> (Plan, HostLinks, Vec<(Step, Errno)>) {
    let mut refused = Vec::new();
    for _ in 0..12 {
        let (plan, links) = case.plan(&kernel.observe(), None);
        if plan.steps.is_empty() && plan.later.is_empty() {
            return (plan, links, Vec::new());
        }
        refused = Vec::new();
        for step in &plan.steps {
            if let Err(errno) = kernel.take(step) {
                refused.push((step.clone(), errno));
            }
        }
        kernel.pass_time();
    }
    let (plan, links) = case.plan(&kernel.observe(), None);
    (plan, links, refused)
}

#[test]
fn a_refused_setting_of_a_function_does_not_stop_the_others() {
    let mut case = lost();
    let wanted = functions(&mut case.wanted);
    wanted[0].protocol = Some(netfix::model::net::link::VlanProtocol::Dot1Ad);
    let mut kernel = Kernel::holding(&case.observed);
    let (plan, _, refused) = restore(&case, &mut kernel);
    let [(Step::Netlink(NetlinkStep::SetLink { change, .. }), Errno::EOPNOTSUPP)] = &refused[..]
    else {
        panic!("{refused:?}");
    };
    let Change::Function(0, FunctionSetting::Vlan(5, 2, Some(_))) = change else {
        panic!("{change:?}");
    };
    assert_eq!(plan.steps.len(), 1, "{:?}", plan.lines());
    let mut now = kernel.observe();
    let now = functions(&mut now);
    let drivers: Vec<_> = now.iter().map(|one| one.driver.as_deref()).collect();
    assert_eq!(drivers, [Some("igbvf"), Some("igbvf"), Some("pci-stub")]);
    assert_eq!((now[0].trust, now[0].max_rate), (Some(true), Some(100)));
}

#[test]
fn a_function_gets_its_name_back_while_it_is_down() {
    let mut case = lost();
    let name: IfName = "lan7".parse().expect("a name");
    let links = &mut case.wanted.links;
    links[2].name = name.clone();
    case.wanted.addresses[1].dev = name.clone();
    case.wanted.routes.clear();
    let mut kernel = Kernel::holding(&case.observed);
    let (plan, links, _) = restore(&case, &mut kernel);
    assert_eq!((plan.lines(), links.renamed.len()), (Vec::new(), 0));
    let now = kernel.observe();
    assert_eq!(now.addresses_of(&name).count(), 1);
    assert!(now.link(&name).expect("it has its name").flags.up);
}

#[test]
fn the_rate_of_a_function_waits_for_carrier() {
    let case = lost();
    let (plan, _) = case.plan(&case.observed, None);
    let is_rate = |step: &&Step| {
        matches!(
            step,
            Step::Netlink(NetlinkStep::SetLink {
                change: Change::Function(0, FunctionSetting::Rates(0, 100)),
                ..
            })
        )
    };
    assert_eq!(plan.later.iter().filter(is_rate).count(), 1);
    assert_eq!(plan.steps.iter().filter(is_rate).count(), 0);
}

#[test]
fn a_pods_device_that_the_hosts_plan_makes_is_not_missing() {
    let case = lost();
    let (_, host) = case.plan(&case.observed, None);
    let mut recorded = case.wanted.clone();
    let mut device = recorded.links.remove(2);
    recorded.links.truncate(1);
    recorded.addresses.clear();
    recorded.routes.clear();
    device.name = "net1".parse().expect("a name");
    recorded.links.push(device);
    let now = NetState {
        links: vec![recorded.links[0].clone()],
        ..NetState::default()
    };
    let observed = plan::Observed {
        state: &now,
        new_link: None,
        age: 0,
        daemons: plan::DaemonState::Leave,
        nic: plan::NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    let planned = |host: &HostLinks| plan::pod(&recorded, &BTreeSet::new(), observed, host);
    let plan = planned(&host);
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    let step = Step::Sriov(SriovStep {
        dev: "net1".parse().expect("a name"),
        bus: "0000:01:00.0".to_owned(),
        change: SriovChange::Await(1),
    });
    assert_eq!(plan.steps, [step]);
    // Once the host's plan was carried out, what is not there is missing.
    let mut host = host;
    host.confirm(&case.observed);
    let plan = planned(&host);
    assert_eq!((plan.steps.len(), plan.problems.len()), (0, 1));
}

#[test]
fn a_pods_function_is_found_on_the_host_by_its_number() {
    let case = lost();
    let function = |name: &str, index: u32, mac: &str, bus: &str, number: u32| {
        let mut link = case.wanted.links[2].clone();
        (link.name, link.index) = (name.parse().expect("a name"), index);
        link.mac = Some(mac.parse().expect("a MAC"));
        let hardware = link.hardware.as_mut().expect("a device");
        (hardware.permanent_mac, hardware.bus) = (link.mac, Some(bus.to_owned()));
        hardware.function.as_mut().expect("a function").index = number;
        link
    };
    let mut recorded = case.wanted.clone();
    recorded.links.truncate(1);
    (recorded.addresses, recorded.routes) = (Vec::new(), Vec::new());
    let now = recorded.clone();
    recorded
        .links
        .push(function("net1", 3, "02:11:22:33:44:50", "0000:01:10.0", 0));
    // Both addresses of the recorded function are those of the other one now.
    let mut host = case.observed.clone();
    host.links.extend([
        function("eth2", 12, "02:11:22:33:44:50", "0000:01:10.0", 1),
        function("enp1s0v0", 11, "9a:00:00:00:00:01", "0000:01:10.2", 0),
    ]);
    let mut links = HostLinks::default();
    links.confirm(&host);
    let observed = plan::Observed {
        state: &now,
        new_link: None,
        age: 0,
        daemons: plan::DaemonState::Leave,
        nic: plan::NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    let plan = plan::pod(&recorded, &BTreeSet::new(), observed, &links);
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    assert_eq!(
        plan.lines().first().map(String::as_str),
        Some("+ physical net1 from the host's enp1s0v0")
    );
}

//! Loses every object of a case, one at a time, on the model kernel: the plan restores it.

use std::collections::BTreeSet;

use netfix::model::net::address::Maker;
use netfix::model::net::link::nic::{NicGroup, NicState, NicValue};
use netfix::model::net::traffic::LostTraffic;
use netfix::model::{IfName, Link, LinkKind, NetState, Parent, Severity, TrafficObject};
use netfix::plan::snapshot_quality;

use super::carried_out::{end, kernel, whole};
use super::kernel::Kernel;
use super::{About, Case, cases};

/// The lost object, and the namespace after its loss.
type Loss = (String, Kernel);

/// The case without any loss: the wanted state exists, with the sysctls of this kernel.
fn intact(mut case: Case) -> Case {
    let known = kernel(&case, &case.observed).new_link;
    for link in case
        .wanted
        .links
        .iter_mut()
        .filter(|link| link.kind != LinkKind::Loopback)
    {
        let settings = link.sysctls.ipv4.iter();
        let settings = settings.filter(|(key, _)| known.ipv4.contains_key(key));
        link.sysctls.ipv4 = settings.copied().collect();
        // What is never set.
        if let Some(nic) = &mut link.nic {
            for group in [NicGroup::DevlinkInit, NicGroup::Dcb, NicGroup::Module] {
                nic.settings.remove(&group);
            }
        }
        // What the snapshot names, and what the kernel gives a link.
        link.traffic.lost.clear();
        link.qdisc = None;
        let index = link.index;
        let is_known = |object: &TrafficObject| object.links.iter().all(|to| to.index == index);
        link.traffic.objects.retain(is_known);
    }
    if let About::Host { .. } = case.about {
        let is_other = |link: &Link| matches!(link.kind, LinkKind::Other { .. });
        let links = &mut case.wanted.links;
        links.retain(|link| link.parent.is_none() || !is_other(link) || link.can_be_made());
        case.wanted.unsupported.clear();
    }
    case.wanted
        .addresses
        .retain(|address| address.maker != Maker::Network);
    case.new_link = Some(known);
    case.with_daemons = true;
    case.nic_settings = None;
    case.irqs_are_balanced = false;
    case.dcb_is_managed = false;
    case.age = 0;
    case.observed = case.wanted.clone();
    if let About::Pod { renamed, .. } = &mut case.about {
        renamed.clear();
    }
    case
}

/// The links whose loss netfix can restore: those of the case, and what is on them.
fn ours(case: &Case) -> Vec<&Link> {
    let can_be_made = |link: &&Link| match (&case.about, &link.kind) {
        (_, LinkKind::Loopback) => false,
        (_, LinkKind::Other { .. }) => link.can_be_made(),
        (About::Pod { present, .. }, kind) => {
            kind.can_be_made()
                && !matches!(&link.parent, Some(Parent::Host(parent)) if !present.contains(parent))
        }
        (About::Host { devices }, LinkKind::Physical) => devices.contains(&link.name),
        (About::Host { .. }, kind) => kind.can_be_made(),
    };
    case.wanted.links.iter().filter(can_be_made).collect()
}

/// What a driver starts with: of each setting another value, and nothing of what is not set by itself.
fn forgotten(nic: &NicState) -> NicState {
    let mut nic = nic.clone();
    nic.settings.retain(|group, _| !group.needs_carrier());
    // How long interrupts wait a driver may choose itself.
    let groups = nic.settings.iter_mut();
    let groups = groups.filter(|(group, _)| **group != NicGroup::Coalesce);
    for value in groups.flat_map(|(_, group)| group.values_mut()) {
        match value {
            NicValue::Flag(flag) => *flag = !*flag,
            NicValue::Number(number) => *number += 1,
            NicValue::Text(text) => text.push('!'),
            NicValue::Numbers(_) => *value = NicValue::Numbers(Vec::new()),
            NicValue::Texts(_) => *value = NicValue::Texts(Vec::new()),
        }
    }
    nic
}

/// Loses a link, and with it the other ports of the same device.
fn lose_link(kernel: &mut Kernel, link: &Link) {
    let of_device = |link: &Link| {
        let mut groups = link.nic.iter().flat_map(|nic| nic.settings.keys());
        let has_own = groups.any(|group| group.is_of_device());
        link.hardware.as_ref().filter(|_| has_own)?.bus.clone()
    };
    let links = kernel.state.links.iter();
    let ports = links.filter(|one| {
        one.name == link.name || (of_device(link).is_some() && of_device(one) == of_device(link))
    });
    for port in ports.cloned().collect::<Vec<_>>() {
        lose_port(kernel, &port);
    }
}

fn lose_port(kernel: &mut Kernel, link: &Link) {
    kernel.delete_functions(link);
    kernel.delete_link(&link.name);
    if link.kind == LinkKind::Physical {
        let mac = link
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.permanent_mac);
        kernel.add_device(&link.name, link.hardware.clone(), mac);
        let added = kernel.state.links.last_mut().expect("the device");
        added.nic = link.nic.as_deref().map(|nic| Box::new(forgotten(nic)));
        kernel.forget_functions(link);
    }
}

fn losses(case: &Case) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut lose = |what: String, change: &dyn Fn(&mut Kernel)| {
        let mut kernel = kernel(case, &case.wanted);
        change(&mut kernel);
        losses.push((what, kernel));
    };
    let ours = ours(case);
    let is_ours = |dev: &IfName| ours.iter().any(|link| link.name == *dev);
    for link in &ours {
        let dev = &link.name;
        lose(format!("link {dev}"), &|kernel| lose_link(kernel, link));
        lose(format!("{dev} up"), &|kernel| {
            kernel.down(dev).expect("a link");
        });
        lose(format!("IPv6 of {dev} with its MTU"), &|kernel| {
            kernel.set_mtu(dev, 1000).expect("a link");
        });
        lose(format!("attributes of {dev}"), &|kernel| {
            let link = kernel
                .state
                .links
                .iter_mut()
                .find(|link| link.name == *dev)
                .expect("a link");
            (link.txqueuelen, link.group) = (77, 7);
            // A bond decides which flags its ports have.
            link.flags.allmulti ^= link.master.is_none();
            let settings = link.sysctls.ipv4.iter();
            link.sysctls.ipv4 = settings.map(|(key, value)| (*key, value + 1)).collect();
        });
        for at in 0..link.traffic.objects.len() {
            lose(
                format!("all of {dev} from {}", link.traffic.objects[at]),
                &|kernel| {
                    let mut links = kernel.state.links.iter_mut();
                    let link = links.find(|link| link.name == *dev).expect("a link");
                    link.traffic.objects.truncate(at);
                },
            );
        }
    }
    let NetState {
        links: _,
        addresses,
        routes,
        advertised: _,
        nexthops,
        rules,
        neighbours,
        sockets: _,
        ways: _,
        learned: _,
        unsupported: _,
    } = &case.wanted;
    for address in addresses
        .iter()
        .filter(|address| is_ours(&address.dev) && !address.comes_by_itself())
    {
        lose(format!("address {address}"), &|kernel| {
            kernel.delete_address(address);
        });
    }
    for route in routes
        .iter()
        .filter(|route| route.devs().iter().all(|dev| is_ours(dev)))
    {
        // It would be restored after those in the same place.
        let is_last = routes.iter().rfind(|other| other.shares_place_with(route)) == Some(route);
        if is_last {
            lose(format!("route {route}"), &|kernel| {
                kernel.state.routes.retain(|other| other != route);
            });
        }
    }
    for nexthop in nexthops {
        lose(format!("nexthop {nexthop}"), &|kernel| {
            kernel.delete_nexthop(nexthop.id);
        });
    }
    for rule in rules {
        lose(format!("rule {rule}"), &|kernel| {
            kernel.state.rules.retain(|other| other != rule);
        });
    }
    for neighbour in neighbours {
        lose(format!("neighbour {neighbour}"), &|kernel| {
            kernel.state.neighbours.retain(|other| other != neighbour);
        });
    }
    losses
}

#[test]
fn every_single_loss_is_restored() {
    let (mut count, mut wrong) = (0, Vec::new());
    // The carrier of a link that is held down passes, whatever is lost.
    let is_raised = |link: &Link| link.protodown && link.flags.carrier;
    for (_, case) in cases::read::<Case>("plan") {
        let case = intact(case);
        if case.wanted.links.iter().any(is_raised) {
            continue;
        }
        let before = end(&case, &whole(&case, kernel(&case, &case.wanted)));
        for (what, kernel) in losses(&case) {
            count += 1;
            // A device that returns has a new index.
            let after = end(&case, &whole(&case, kernel));
            // A virtual function that was in a pod comes back on the host.
            let is_new_device = |line: &str| {
                let of_any = |dev: &str| line.starts_with(&format!("~ link {dev} index: 1"));
                ["eth0", "eth1", "eth2"].into_iter().any(of_any) || line == "+ link eth1"
            };
            // The kernel makes it with its address, which this one does not: the native tests of kernel-made routes show it.
            let is_connected = |line: &str| {
                line.starts_with("- route ") && line.contains("\"protocol\":2,\"scope\":253")
            };
            let differs = after.lines().filter(|line| {
                !before.contains(line) && !is_new_device(line) && !is_connected(line)
            });
            let differs: Vec<&str> = differs.collect();
            if !differs.is_empty() {
                let differs = differs.join("\n    ");
                wrong.push(format!("{}: without {what}:\n    {differs}", case.why));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} losses stay:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 100, "only {count} losses");
}

/// A link of a kind that netfix only describes, on a device of the host or on a link of a third namespace.
fn described(kind: &str, parent: Parent) -> Link {
    let driver = kind.to_owned();
    Link {
        index: 70,
        parent: Some(parent),
        ..Link::plain("extra0".parse().expect("a name"), LinkKind::other(driver))
    }
}

/// What an object is, and how it gets into a state.
type Addition = (String, Box<dyn Fn(&mut NetState)>);

/// Objects of the host that a reload of a driver takes, each added to a state.
fn objects(device: &IfName) -> Vec<Addition> {
    let mut all: Vec<Addition> = Vec::new();
    for kind in [
        "vxlan", "macsec", "gretap", "xfrm", "ip6tnl", "hsr", "rmnet",
    ] {
        for parent in [Parent::Own(device.clone()), Parent::Elsewhere] {
            let what = format!("{kind} on {parent:?}");
            let link = described(kind, parent);
            all.push((what, Box::new(move |state| state.links.push(link.clone()))));
        }
    }
    for text in [
        "forwarding entry 02:00:00:00:00:99 dev eth0 self",
        "chain netdev t/c",
    ] {
        let add = move |state: &mut NetState| state.unsupported.push(text.to_owned());
        all.push((text.to_owned(), Box::new(add)));
    }
    for (master, is_program) in [("team", false), ("team", true)] {
        let device = device.clone();
        all.push((
            format!("port of {master}, program: {is_program}"),
            Box::new(move |state| {
                let driver = master.to_owned();
                let name: IfName = "extra0".parse().expect("a name");
                state.links.push(Link {
                    index: 70,
                    ..Link::plain(name.clone(), LinkKind::other(driver))
                });
                for link in state.links.iter_mut().filter(|link| link.name == device) {
                    if is_program {
                        let what = "an XDP program".to_owned();
                        let is_root = false;
                        link.traffic.lost.push(LostTraffic {
                            what,
                            is_program,
                            is_root,
                        });
                    } else {
                        link.master = Some(name.clone());
                    }
                }
            }),
        ));
    }
    all
}

#[test]
fn what_the_host_may_lose_for_good_is_named_before_the_loss_and_after_it() {
    let mut named = 0;
    for (_, case) in cases::read::<Case>("plan") {
        let About::Host { devices } = &case.about else {
            continue;
        };
        let device = |link: &&Link| link.kind == LinkKind::Physical && devices.contains(&link.name);
        let Some(device) = case.wanted.links.iter().find(device) else {
            continue;
        };
        let device = &device.name.clone();
        for (what, add) in objects(device) {
            let mut case = intact(case.clone());
            let mut after = case.wanted.clone();
            add(&mut case.wanted);
            if what.starts_with("port") && what.ends_with("false") {
                after
                    .links
                    .push(case.wanted.links.last().expect("a link").clone());
            }
            for link in after.links.iter_mut().filter(|link| link.name == *device) {
                link.index += 100;
            }
            let errors = |state: &NetState| {
                let problems = snapshot_quality::unsupported_on_host(state, []).into_iter();
                problems
                    .filter(|one| one.severity == Severity::Error)
                    .count()
            };
            let is_named = errors(&case.wanted) > errors(&after);
            let (plan, _) = case.plan(&after, None);
            let is_missed = plan
                .problems
                .iter()
                .any(|one| one.severity == Severity::Error);
            let mut steps = plan.lines().into_iter();
            let is_restored = steps.any(|step| step.contains("extra0"));
            assert!(
                is_missed || is_restored,
                "{}: {what} is lost silently",
                case.why
            );
            assert!(
                is_named || is_restored,
                "{}: {what} is not named before",
                case.why
            );
            let kept =
                snapshot_quality::unsupported_and_lost(&case.wanted, &after, &BTreeSet::new());
            assert_eq!(is_named, !kept.is_empty(), "{}: {what}", case.why);
            named += usize::from(is_named);
        }
    }
    assert!(named > 50, "only {named}");
}

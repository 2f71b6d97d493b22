//! Loses every object of a case, one at a time, on the model kernel: the plan restores it.

use netfix::model::net::address::Maker;
use netfix::model::net::link::nic::{NicGroup, NicState, NicValue};
use netfix::model::{IfName, Link, LinkKind, NetState, Parent, TrafficObject};

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
        // What the snapshot names, and what the kernel gives a link.
        link.traffic.lost.clear();
        link.qdisc = None;
        let index = link.index;
        let is_known = |object: &TrafficObject| object.links.iter().all(|to| to.index == index);
        link.traffic.objects.retain(is_known);
    }
    case.wanted
        .addresses
        .retain(|address| address.maker != Maker::Network);
    case.new_link = Some(known);
    case.with_daemons = true;
    case.nic_settings = None;
    case.irqs_are_balanced = false;
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
        (_, LinkKind::Loopback | LinkKind::Other { .. }) => false,
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

fn lose_link(kernel: &mut Kernel, link: &Link) {
    kernel.delete_link(&link.name);
    if link.kind == LinkKind::Physical {
        let mac = link
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.permanent_mac);
        kernel.add_device(&link.name, link.hardware.clone(), mac);
        let added = kernel.state.links.last_mut().expect("the device");
        added.nic = link.nic.as_deref().map(|nic| Box::new(forgotten(nic)));
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
        nexthops,
        rules,
        neighbours,
        sockets: _,
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
    for (_, case) in cases::read::<Case>("plan") {
        let case = intact(case);
        let before = end(&case, &whole(&case, kernel(&case, &case.wanted)));
        for (what, kernel) in losses(&case) {
            count += 1;
            // A device that returns has a new index.
            let after = end(&case, &whole(&case, kernel));
            let differs = after.lines().filter(|line| {
                !before.contains(line) && !(line.starts_with("~ link eth0 index: 1"))
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

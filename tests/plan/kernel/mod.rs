//! A small model of the kernel's network namespace: it takes the steps of a plan and refuses them as the kernel does.
//!
//! It models everything that the order of steps depends on: what depends on a link, what comes with an address, which
//! route needs which address, the initial values of a new link, what the kernel does when a link goes up. It does not
//! model: multipath hops that fail one by one, addresses that expire, carrier that is lost.

mod address;
mod bond;
mod link;
mod mtu;
mod nexthop;
mod route;
mod sriov;
mod sysctl;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use netfix::model::net::link::nic::{NicGroup, NicValue};
use netfix::model::net::link::sysctl::Sysctls;
use netfix::model::net::route::Position;
use netfix::model::{IfName, Link, LinkKind, NetState, Parent, Rule};
use netfix::plan::{NetlinkStep, NicStep, OrderedObject, Rewrite, Step};

/// Why the kernel refuses a step, by its errno; `TENTATIVE` is `EINVAL` for a source address whose duplicate address
/// detection has not ended, the only refusal that passes with time.
#[allow(clippy::upper_case_acronyms, reason = "the kernel's names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    EACCES,
    EADDRINUSE,
    EADDRNOTAVAIL,
    EBUSY,
    EEXIST,
    EHOSTUNREACH,
    EINVAL,
    ENETDOWN,
    ENETUNREACH,
    ENODEV,
    ENOENT,
    EOPNOTSUPP,
    EPERM,
    ERANGE,
    ESRCH,
    TENTATIVE,
}

/// A link of the host that is the parent of a pod's links.
#[derive(Debug, Clone)]
pub struct HostLink {
    pub mtu: u32,
}

/// One network namespace.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub state: NetState,
    /// The host's links, for a pod's namespace; they are assumed to be up.
    pub host: BTreeMap<IfName, HostLink>,
    /// `conf/default` and `neigh/default`.
    pub new_link: Sysctls,
    /// A router on the network advertises a prefix.
    pub router: bool,
    /// Links whose MAC was not set: a VLAN follows its parent, a bond takes its first port's.
    given_no_mac: BTreeSet<IfName>,
    /// The preferred ports of bonds that were set before the bond had them.
    wanted_primary: BTreeMap<IfName, IfName>,
    next_index: u32,
    /// The links that became ports, in this order.
    pub enslaved: Vec<IfName>,
}

impl Kernel {
    /// A namespace with this content.
    pub fn holding(state: &NetState) -> Self {
        let next_index = state.links.iter().map(|link| link.index).max().unwrap_or(0) + 100;
        let follows = |link: &&Link| {
            matches!((&link.kind, &link.parent), (LinkKind::Vlan(_), Some(Parent::Own(parent)))
                if state.link(parent).is_some_and(|parent| parent.mac == link.mac))
        };
        let given_no_mac = state.links.iter().filter(follows);
        Self {
            given_no_mac: given_no_mac.map(|link| link.name.clone()).collect(),
            state: state.clone(),
            host: BTreeMap::new(),
            new_link: Sysctls::default(),
            router: false,
            wanted_primary: BTreeMap::new(),
            next_index,
            enslaved: Vec::new(),
        }
    }

    /// The content of dumps; sorted except where order has a meaning: addresses of one link, and routes in one
    /// place.
    pub fn observe(&self) -> NetState {
        let mut state = self.state.clone();
        state.links.sort_by_key(|link| link.index);
        state
            .addresses
            .sort_by_key(|address| (address.local.is_ipv6(), address.dev.clone()));
        state.routes.sort_by_key(route::place);
        state
    }

    /// Carries out one step.
    pub fn take(&mut self, step: &Step) -> Result<(), Errno> {
        match step {
            Step::AddLink(link) => self.add_link(link),
            Step::Netlink(step) => self.take_netlink(step),
            Step::Sysctl {
                dev,
                folder,
                key,
                value,
                ..
            } => self.write_sysctl(dev, *folder, key, value),
            Step::Sysfs { dev, key, value } => {
                let settings = &mut self.link_mut(dev)?.sysfs;
                settings.insert(key.clone(), value.clone());
                Ok(())
            }
            Step::Sriov(step) => self.take_sriov(step),
            Step::JoinGroups { dev, groups } => {
                self.link_mut(dev)?.groups.extend(groups);
                Ok(())
            }
            Step::Nic(step) => self.set_nic(step),
            Step::Index { dev, index, now: _ } => {
                self.link_mut(dev)?.index = *index;
                Ok(())
            }
        }
    }

    /// A driver that does not take what is above its limit, and forgets how it spreads packets while it is down.
    fn set_nic(&mut self, step: &NicStep) -> Result<(), Errno> {
        let link = self.link_mut(&step.dev)?;
        link.nic.as_ref().ok_or(Errno::EOPNOTSUPP)?;
        if let (NicValue::Number(value), Some(NicValue::Number(limit))) = (&step.value, &step.limit)
            && value > limit
        {
            return Ok(());
        }
        if step.group.needs_carrier() && !link.flags.up {
            return Ok(());
        }
        let bus = |link: &Link| link.hardware.as_ref().and_then(|own| own.bus.clone());
        let (dev, own) = (link.name.clone(), bus(link));
        let is_port = |link: &&mut Link| {
            let is_of_device = step.group.is_of_device() && own.is_some() && bus(link) == own;
            link.name == dev || is_of_device
        };
        for link in self.state.links.iter_mut().filter(is_port) {
            let nic = link.nic.get_or_insert_default();
            let group = nic.settings.entry(step.group).or_default();
            group.insert(step.key.clone(), step.value.clone());
            let numbers = nic.limits.get_mut(&NicGroup::Queues);
            let numbers = numbers.filter(|_| step.group == NicGroup::Channels);
            for number in numbers.into_iter().flatten() {
                *number.1 = step.value.clone();
            }
        }
        Ok(())
    }

    fn take_netlink(&mut self, step: &NetlinkStep) -> Result<(), Errno> {
        match step {
            NetlinkStep::SetLink { dev, change, .. } => self.set_link(dev, change),
            NetlinkStep::AddTraffic { dev, object } => self.add_traffic(dev, object),
            NetlinkStep::ChangeTraffic { dev, object }
            | NetlinkStep::ChangeActions {
                dev,
                filter: object,
            } => self.change_traffic(dev, object),
            NetlinkStep::AddAddress(address) => self.add_address(address),
            NetlinkStep::ChangeAddress(address) => self.change_address(address),
            NetlinkStep::AddForwarding { dev, entry } => {
                self.link_mut(dev)?.fdb.push((**entry).clone());
                Ok(())
            }
            NetlinkStep::AddGroup {
                bridge,
                port,
                entry,
            } => self.add_group(bridge, port, entry),
            NetlinkStep::AddNeighbour(neighbour) => {
                self.link(&neighbour.dev)?;
                let same = self.state.neighbours.iter().any(|other| {
                    (&other.dev, other.dst, other.proxy)
                        == (&neighbour.dev, neighbour.dst, neighbour.proxy)
                });
                if same {
                    return Err(Errno::EEXIST);
                }
                self.state.neighbours.push(neighbour.clone());
                Ok(())
            }
            NetlinkStep::AddRoute { route, position } => self.add_route(route, *position),
            NetlinkStep::ChangeRoute(route) => self.change_route(route),
            NetlinkStep::DeleteRoute(route) => self.delete_route(route),
            NetlinkStep::AddNexthop(nexthop) => self.add_nexthop(nexthop),
            NetlinkStep::ChangeNexthop(nexthop) => self.change_nexthop(nexthop),
            NetlinkStep::AddRule(rule) => self.add_rule(rule),
            NetlinkStep::Rewrite(rewrite) => self.rewrite(rewrite),
        }
    }

    fn add_rule(&mut self, rule: &Rule) -> Result<(), Errno> {
        if self.state.rules.contains(rule) {
            return Err(Errno::EEXIST);
        }
        self.state.rules.push(rule.clone());
        self.state.rules.sort_by_key(|rule| rule.priority);
        Ok(())
    }

    /// Deletes and adds, with the executor's patience: what is gone may be gone already, and what is added may be there.
    fn rewrite(&mut self, Rewrite { gone, added }: &Rewrite) -> Result<(), Errno> {
        for object in gone {
            match object {
                OrderedObject::Address(address) => self.delete_address(address),
                OrderedObject::Route(route) => drop(self.delete_route(route)),
                OrderedObject::Rule(rule) => self.state.rules.retain(|other| other != rule),
            }
        }
        for object in added {
            let result = match object {
                OrderedObject::Address(address) => self.add_address(address),
                OrderedObject::Route(route) => self.add_route(route, Position::Last),
                OrderedObject::Rule(rule) => self.add_rule(rule),
            };
            if let Err(errno) = result
                && errno != Errno::EEXIST
            {
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Some seconds pass: carrier spreads upwards, and duplicate address detection ends.
    pub fn pass_time(&mut self) {
        while let Some(name) = self.next_carrier() {
            self.link_mut(&name)
                .expect("it was just found")
                .flags
                .carrier = true;
            self.carrier_came(&name);
        }
        self.end_detection();
    }

    fn next_carrier(&self) -> Option<IfName> {
        let lacks = |link: &&Link| link.flags.up && !link.flags.carrier && self.gives_carrier(link);
        let link = self.state.links.iter().find(lacks)?;
        Some(link.name.clone())
    }

    fn gives_carrier(&self, link: &Link) -> bool {
        let has = |link: &Link| link.flags.up && link.flags.carrier;
        match (&link.kind, &link.parent) {
            // For a moment at most.
            _ if link.protodown => false,
            (LinkKind::Bond(_), _) => {
                let mut links = self.state.links.iter();
                links.any(|port| port.master.as_ref() == Some(&link.name) && has(port))
            }
            (_, Some(Parent::Own(parent))) => self.state.link(parent).is_some_and(has),
            _ => true,
        }
    }

    fn link(&self, name: &IfName) -> Result<&Link, Errno> {
        self.state.link(name).ok_or(Errno::ENODEV)
    }

    fn link_mut(&mut self, name: &IfName) -> Result<&mut Link, Errno> {
        let mut links = self.state.links.iter_mut();
        links.find(|link| link.name == *name).ok_or(Errno::ENODEV)
    }
}

//! The whole network state of one namespace.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::model::net::address::PASSING_FLAGS;
use crate::model::net::limits;
use crate::model::net::link::socket::LinkSocket;
use crate::model::net::route::TABLE_MAIN;
use crate::model::net::way::PacketWay;
use crate::model::{
    Address, Bytes, Hardware, IfName, Link, LinkKind, Mac, Neighbour, Nexthop, Route, Rule,
};

/// Everything in one namespace that a restore may have to recreate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetState {
    /// Links in ascending order of their index: a parent comes before its children.
    pub links: Vec<Link>,
    /// Addresses in the kernel's order, on which the choice of the primary one depends.
    pub addresses: Vec<Address>,
    /// Routes of all tables, without those that come with addresses, links and routers.
    pub routes: Vec<Route>,
    /// Routes that the kernel made from the advertisements of routers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advertised: Vec<Route>,
    /// Nexthop objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nexthops: Vec<Nexthop>,
    /// Rules of both families.
    pub rules: Vec<Rule>,
    /// Permanent and proxy neighbours.
    pub neighbours: Vec<Neighbour>,
    /// What programs have on links and lose with them, as the kernel lists it.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::SOCKETS }, _, _>"
    )]
    pub sockets: Vec<LinkSocket>,
    /// Where the kernel sends packets of the namespace.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::WAYS }, _, _>"
    )]
    pub ways: Vec<PacketWay>,
    /// The MACs that a bridge with several uplinks has learnt, each with its uplink.
    #[serde(skip)]
    pub learned: Vec<(IfName, Mac)>,
    /// Descriptions of objects that netfix cannot restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

impl NetState {
    /// The link of that name.
    #[must_use]
    pub fn link(&self, name: &IfName) -> Option<&Link> {
        self.links.iter().find(|link| link.name == *name)
    }

    /// The link that has this name or, if it is a device, this hardware.
    pub(crate) fn present(&self, name: &IfName, hardware: Option<&Hardware>) -> Option<&Link> {
        let device = hardware.filter(|device| device.is_known());
        let is_it = |link: &&Link| match device {
            Some(device) => (link.hardware.as_ref()).is_some_and(|own| own.is_same(device)),
            None => link.name == *name,
        };
        self.links.iter().find(is_it)
    }

    /// The links without the loopback device, which is never lost.
    pub(crate) fn links_but_loopback(&self) -> impl Iterator<Item = &Link> {
        let links = self.links.iter();
        links.filter(|link| link.kind != LinkKind::Loopback)
    }

    /// What of this record is on these links. Of the other ones only the links and addresses, as they are `now`.
    pub(crate) fn limited(&self, names: &BTreeSet<IfName>, now: &Self) -> Self {
        let has = |dev: &IfName| names.contains(dev);
        let mut state = Self {
            sockets: self.sockets.clone(),
            unsupported: self.unsupported.clone(),
            ..Self::default()
        };
        for link in &self.links {
            let (source, found) = if has(&link.name) {
                (self, Some(link))
            } else {
                (now, now.present(&link.name, link.hardware.as_ref()))
            };
            let Some(found) = found else { continue };
            let own = source.addresses.iter().filter(|one| one.dev == found.name);
            state.addresses.extend(own.map(|one| Address {
                dev: link.name.clone(),
                ..one.clone()
            }));
            state.links.push(Link {
                name: link.name.clone(),
                ..found.clone()
            });
        }
        let neighbours = self.neighbours.iter();
        state.neighbours = neighbours.filter(|one| has(&one.dev)).cloned().collect();
        let of = |one: &&Nexthop| one.dev.as_ref().is_some_and(has);
        let mut objects: HashSet<u32> = self.nexthops.iter().filter(of).map(|one| one.id).collect();
        let groups: Vec<_> = (self.nexthops.iter())
            .filter(|one| one.group.iter().any(|member| objects.contains(&member.id)))
            .collect();
        let members = groups.iter().flat_map(|group| &group.group);
        objects.extend(groups.iter().map(|group| group.id));
        let needed: HashSet<u32> = members
            .map(|member| member.id)
            .chain(objects.clone())
            .collect();
        let nexthops = self.nexthops.iter();
        state.nexthops = nexthops
            .filter(|one| needed.contains(&one.id))
            .cloned()
            .collect();
        let is_on = |route: &&Route| {
            let object = route.nexthop.as_ref();
            route.devs().into_iter().any(has) || object.is_some_and(|id| objects.contains(id))
        };
        state.routes = self.routes.iter().filter(is_on).cloned().collect();
        state.advertised = self.advertised.iter().filter(is_on).cloned().collect();
        // What takes a NIC's links away may take the rules for its tables too.
        let tables = state.routes.iter().map(|route| route.table);
        let tables: HashSet<u32> = tables.filter(|table| *table != TABLE_MAIN).collect();
        let is_named = |name: &Bytes| names.iter().any(|link| link.as_bytes() == name.as_slice());
        let is_about = |rule: &&Rule| {
            let mut links = rule.iif.iter().chain(&rule.oif);
            tables.contains(&rule.table) || links.any(is_named)
        };
        state.rules = self.rules.iter().filter(is_about).cloned().collect();
        state
    }

    /// The links and addresses alone: what others may claim too.
    pub(crate) fn links_and_addresses(&self) -> Self {
        Self {
            links: self.links.clone(),
            addresses: self.addresses.clone(),
            ..Self::default()
        }
    }

    /// Whether each link and each address of `then` is here: the very link, up if it was.
    pub(crate) fn has_claims_of(&self, then: &Self) -> bool {
        let now = Indexed::new(self);
        let is_there = |link: &Link| {
            let now = now.link(&link.name);
            now.is_some_and(|now| {
                (now.index, now.mac, now.flags.up) == (link.index, link.mac, link.flags.up)
            })
        };
        let addresses: HashSet<_> = self.addresses.iter().map(Address::key).collect();
        let mut then_addresses = then.addresses.iter().map(Address::key);
        then.links.iter().all(is_there) && then_addresses.all(|key| addresses.contains(&key))
    }

    /// Leaves out what is beyond `most` entries of a table, which a namespace may have any number of: of routes the narrowest.
    /// Returns how many entries were left out.
    pub(crate) fn shorten(&mut self, most: usize) -> usize {
        let widths = self
            .routes
            .iter()
            .map(|route| route.destination().prefix_len());
        let mut widths: Vec<u8> = widths.collect();
        widths.sort_unstable();
        let last = widths.get(most).copied();
        // As many of the narrowest as there is room for.
        let wider = widths.iter().filter(|width| Some(**width) < last).count();
        let mut room = most.saturating_sub(wider);
        let before = self.routes.len();
        if let Some(last) = last {
            self.routes.retain(|route| {
                let width = route.destination().prefix_len();
                let fits = width == last && room > 0;
                room -= usize::from(fits);
                width < last || fits
            });
        }
        let mut left = before - self.routes.len();
        left += cut(&mut self.advertised, most) + cut(&mut self.nexthops, most);
        left += cut(&mut self.rules, most) + cut(&mut self.neighbours, most);
        if left > 0 {
            self.unsupported
                .push(format!("{left} entries of tables, beyond {most} of each"));
        }
        left
    }

    /// Whether something is recorded that is set on a NIC, or cannot be restored: it may be attached to a link.
    pub(crate) fn has_nics(&self) -> bool {
        !self.unsupported.is_empty() || self.links.iter().any(|link| link.nic.is_some())
    }

    /// Gives spare memory back.
    pub(crate) fn shrink(&mut self) {
        let Self {
            links,
            addresses,
            routes,
            advertised,
            nexthops,
            rules,
            neighbours,
            sockets,
            ways,
            learned,
            unsupported,
        } = self;
        links.shrink_to_fit();
        addresses.shrink_to_fit();
        routes.shrink_to_fit();
        advertised.shrink_to_fit();
        nexthops.shrink_to_fit();
        rules.shrink_to_fit();
        neighbours.shrink_to_fit();
        sockets.shrink_to_fit();
        ways.shrink_to_fit();
        learned.shrink_to_fit();
        unsupported.shrink_to_fit();
    }

    /// The state without the phases of duplicate address detection, which pass, but on a link without carrier: there it does not
    /// begin.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        let waiting: HashSet<IfName> = self.without_carrier().cloned().collect();
        for address in &mut self.addresses {
            if !address.is_in_detection() || !waiting.contains(&address.dev) {
                address.flags &= !PASSING_FLAGS;
            }
        }
        self
    }

    /// The links that are up and have no carrier.
    pub(crate) fn without_carrier(&self) -> impl Iterator<Item = &IfName> {
        let links = self.links.iter();
        let links = links.filter(|link| link.flags.up && !link.flags.carrier);
        links.map(|link| &link.name)
    }

    /// The state without remaining lifetimes of addresses, and without what programs do: whether an address has a lifetime stays. The
    /// ways of packets follow from the rest, some a moment later.
    #[must_use]
    pub fn timeless(mut self) -> Self {
        self.sockets.clear();
        self.ways.clear();
        for address in &mut self.addresses {
            address.valid_lft = address.valid_lft.map(|_| 0);
            address.preferred_lft = address.preferred_lft.map(|_| 0);
            address.lft_elapsed = None;
        }
        self
    }

    /// Whether something in it ends at a time, so that its record is true only together with the time at which it was read.
    pub(crate) fn has_lifetimes(&self) -> bool {
        let passes = |lifetime: Option<u32>| lifetime.is_some_and(|seconds| seconds > 0);
        let mut addresses = self.addresses.iter();
        addresses.any(|one| one.valid_lft.is_some() || passes(one.preferred_lft))
            || self
                .routes
                .iter()
                .chain(&self.advertised)
                .any(|route| route.expires.is_some())
    }

    /// The addresses of one link, in the kernel's order.
    pub fn addresses_of<'a>(&'a self, dev: &'a IfName) -> impl Iterator<Item = &'a Address> {
        self.addresses
            .iter()
            .filter(move |address| address.dev == *dev)
    }
}

/// Leaves out what is beyond `most`; returns how much.
fn cut<T>(table: &mut Vec<T>, most: usize) -> usize {
    let left = table.len().saturating_sub(most);
    table.truncate(most);
    left
}

/// A state with its links, ports and addresses by the names of their links: a pod may have thousands of each.
#[derive(Debug)]
pub(crate) struct Indexed<'a> {
    pub state: &'a NetState,
    links: HashMap<&'a IfName, &'a Link>,
    ports: HashMap<&'a IfName, Vec<&'a Link>>,
    addresses: HashMap<&'a IfName, Vec<&'a Address>>,
}

impl<'a> Indexed<'a> {
    pub(crate) fn new(state: &'a NetState) -> Self {
        let mut links = HashMap::with_capacity(state.links.len());
        let mut ports: HashMap<_, Vec<_>> = HashMap::new();
        for link in &state.links {
            links.entry(&link.name).or_insert(link);
            if let Some(master) = &link.master {
                ports.entry(master).or_default().push(link);
            }
        }
        let mut addresses: HashMap<_, Vec<_>> = HashMap::new();
        for address in &state.addresses {
            addresses.entry(&address.dev).or_default().push(address);
        }
        Self {
            state,
            links,
            ports,
            addresses,
        }
    }

    /// The link of that name.
    pub(crate) fn link(&self, name: &IfName) -> Option<&'a Link> {
        self.links.get(name).copied()
    }

    /// The ports of a link.
    pub(crate) fn ports_of(&self, master: &IfName) -> &[&'a Link] {
        self.ports.get(master).map_or(&[], Vec::as_slice)
    }

    /// The addresses of one link, in the kernel's order.
    pub(crate) fn addresses_of(&self, dev: &IfName) -> &[&'a Address] {
        self.addresses.get(dev).map_or(&[], Vec::as_slice)
    }
}

//! Which links of a namespace go with which: what is below a link, what is above it, and what it is lost with.

pub(crate) mod chain;
mod host_side;
pub(crate) mod stack;

use std::collections::{BTreeSet, HashMap};

pub use self::chain::ChainLink;
pub use self::host_side::HostSide;
use crate::model::net::link::lower::WithoutLower;
use crate::model::{Hardware, IfName, Link, LinkKind, Parent};

/// What a link has from one that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    /// It is a link on that one (`IFLA_LINK`), and deleted with it.
    Child,
    /// It names that one, and stays without it.
    Tunnel,
    /// It is a virtual function of that one.
    Function,
    /// That one is its port, and it changes with its ports: a bond, a bridge.
    Port,
    /// That one is its port, and it stays as it is: a VRF, Open vSwitch.
    Member,
}

/// The links of a namespace, each with those below it and above it.
#[derive(Debug)]
pub(crate) struct LinkGraph<'a> {
    links: &'a [Link],
    /// The first one of each name.
    by_name: HashMap<&'a IfName, &'a Link>,
    /// The devices of each bus address.
    by_bus: HashMap<&'a str, Vec<&'a Link>>,
    below: HashMap<&'a IfName, Vec<(Tie, &'a IfName)>>,
    above: HashMap<&'a IfName, Vec<(Tie, &'a Link)>>,
}

impl<'a> LinkGraph<'a> {
    pub(crate) fn new(links: &'a [Link]) -> Self {
        let mut graph = Self {
            links,
            by_name: HashMap::with_capacity(links.len()),
            by_bus: HashMap::new(),
            below: HashMap::new(),
            above: HashMap::new(),
        };
        for link in links {
            graph.by_name.entry(&link.name).or_insert(link);
            let bus = link.hardware.as_ref().and_then(|own| own.bus.as_deref());
            if let Some(bus) = bus {
                graph.by_bus.entry(bus).or_default().push(link);
            }
        }
        for link in links {
            if let Some(Parent::Own(parent)) = &link.parent {
                let tie = if dies_with_parent(link) {
                    Tie::Child
                } else {
                    Tie::Tunnel
                };
                graph.tie(link, tie, parent);
            }
            for device in graph.physical(link.hardware.as_ref()) {
                graph.tie(link, Tie::Function, &device.name);
            }
            let master = link.master.as_ref();
            if let Some(master) = master.and_then(|name| graph.link(name)) {
                let lives_on_ports = matches!(master.kind, LinkKind::Bond(_)) || master.is_bridge();
                let tie = if lives_on_ports {
                    Tie::Port
                } else {
                    Tie::Member
                };
                graph.tie(master, tie, &link.name);
            }
        }
        graph
    }

    fn tie(&mut self, upper: &'a Link, tie: Tie, lower: &'a IfName) {
        self.below
            .entry(&upper.name)
            .or_default()
            .push((tie, lower));
        self.above.entry(lower).or_default().push((tie, upper));
    }

    /// The link of that name.
    pub(crate) fn link(&self, name: &IfName) -> Option<&'a Link> {
        self.by_name.get(name).copied()
    }

    /// The devices of this namespace that a device, of any namespace, is a virtual function of.
    pub(crate) fn physical(&self, function: Option<&Hardware>) -> Vec<&'a Link> {
        let of = function.and_then(|own| Some(own.function.as_ref()?.of.as_str()));
        of.and_then(|bus| self.by_bus.get(bus))
            .cloned()
            .unwrap_or_default()
    }

    /// What is directly below a link.
    pub(crate) fn below(&self, name: &IfName) -> &[(Tie, &'a IfName)] {
        self.below.get(name).map_or(&[], Vec::as_slice)
    }

    /// What is directly above a link.
    pub(crate) fn above(&self, name: &IfName) -> &[(Tie, &'a Link)] {
        self.above.get(name).map_or(&[], Vec::as_slice)
    }

    /// How many links are below one another below this one. The kernel allows 8; more means a loop in a damaged file.
    pub(crate) fn depth(&self, name: &IfName) -> usize {
        self.depth_from(name, 0)
    }

    fn depth_from(&self, name: &IfName, level: usize) -> usize {
        const MAX_NESTING: usize = 8;
        if level > MAX_NESTING {
            return level;
        }
        let below = self
            .below(name)
            .iter()
            .filter(|(tie, _)| *tie != Tie::Member);
        let depths = below.map(|(_, lower)| 1 + self.depth_from(lower, level + 1));
        depths.max().unwrap_or_default()
    }

    /// These, and what the kernel deletes with them.
    pub(crate) fn lost_with<'n>(
        &self,
        names: impl IntoIterator<Item = &'n IfName>,
    ) -> BTreeSet<IfName> {
        self.with_above(names, |tie| matches!(tie, Tie::Child | Tie::Function))
    }

    /// These, and what the kernel deletes with them or leaves without a port or a lower link.
    pub(crate) fn changed_with<'n>(
        &self,
        names: impl IntoIterator<Item = &'n IfName>,
    ) -> BTreeSet<IfName> {
        self.with_above(names, |tie| tie != Tie::Member)
    }

    /// These, and all links that have something from them.
    pub(crate) fn all_above<'n>(
        &self,
        names: impl IntoIterator<Item = &'n IfName>,
    ) -> BTreeSet<IfName> {
        self.with_above(names, |_| true)
    }

    fn with_above<'n>(
        &self,
        names: impl IntoIterator<Item = &'n IfName>,
        goes: impl Fn(Tie) -> bool,
    ) -> BTreeSet<IfName> {
        let mut found: BTreeSet<IfName> = names.into_iter().cloned().collect();
        let mut next: Vec<IfName> = found.iter().cloned().collect();
        while let Some(lower) = next.pop() {
            let above = self.above(&lower).iter().filter(|(tie, _)| goes(*tie));
            for (_, upper) in above {
                if found.insert(upper.name.clone()) {
                    next.push(upper.name.clone());
                }
            }
        }
        found
    }

    /// The links of a pod that it loses with the host's devices, or with those that are inside it.
    pub(crate) fn lost_with_host(&self) -> BTreeSet<IfName> {
        let roots = self
            .links
            .iter()
            .filter(|link| link.is_lost_with_host() && dies_with_parent(link));
        self.lost_with(roots.map(|link| &link.name))
    }
}

/// Whether the kernel deletes it with the link that it is on.
fn dies_with_parent(link: &Link) -> bool {
    let fate = link.kind.lower().map(|lower| lower.fate);
    !matches!(fate, Some(WithoutLower::Kept | WithoutLower::Fixed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::nic::FunctionOf;

    fn link(name: &str, kind: &str, parent: Option<&str>) -> Link {
        let kind = match kind {
            "physical" => LinkKind::Physical,
            other => LinkKind::other(other),
        };
        let parent = parent.map(|name| Parent::Own(name.parse().unwrap()));
        Link {
            parent,
            ..Link::plain(name.parse().unwrap(), kind)
        }
    }

    fn on_bus(name: &str, bus: &str, of: Option<&str>) -> Link {
        let function = of.map(|of| FunctionOf {
            of: of.to_owned(),
            index: 0,
        });
        let hardware = Hardware {
            bus: Some(bus.to_owned()),
            function,
            ..Hardware::default()
        };
        Link {
            hardware: Some(hardware),
            ..link(name, "physical", None)
        }
    }

    fn names(all: &BTreeSet<IfName>) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_device_takes_what_is_on_it_and_its_functions_and_a_tunnel_or_a_port_of_it_only_changes() {
        let port = |link: Link, master: &str| Link {
            master: master.parse().ok(),
            ..link
        };
        let links = [
            port(on_bus("eth0", "0000:01:00.0", None), "br0"),
            on_bus("eth1", "0000:01:10.0", Some("0000:01:00.0")),
            link("mv1", "vxlan", Some("eth1")),
            link("gre1", "gre", Some("eth0")),
            port(link("br0", "bridge", None), "vrf0"),
            link("vrf0", "vrf", None),
        ];
        let graph = LinkGraph::new(&links);
        let eth0 = [&links[0].name];
        assert_eq!(names(&graph.lost_with(eth0)), ["eth0", "eth1", "mv1"]);
        let changed = ["br0", "eth0", "eth1", "gre1", "mv1"];
        assert_eq!(names(&graph.changed_with(eth0)), changed);
        assert!(names(&graph.all_above(eth0)).contains(&"vrf0".to_owned()));
        assert_eq!(graph.depth(&links[2].name), 2);
    }

    #[test]
    fn a_function_stands_on_every_device_of_its_bus_address() {
        let links = [
            on_bus("p0", "0000:05:00.0", None),
            on_bus("p1", "0000:05:00.0", None),
        ];
        let pod = [on_bus("net1", "0000:05:00.2", Some("0000:05:00.0"))];
        let under = LinkGraph::new(&links).under(&pod);
        let under: Vec<_> = under.iter().map(|link| link.name.to_string()).collect();
        assert_eq!(under, ["p0", "p1"]);
    }
}

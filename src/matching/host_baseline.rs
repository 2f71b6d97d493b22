//! The host's state that a restore brings back, as far as pods need it.

use std::collections::{BTreeMap, BTreeSet};

use super::host_parents;
use crate::model::checkpoint::Extension;
use crate::model::net::address::DADFAILED;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::problem::KeptIndex;
use crate::model::{
    AnswerRecord, ChainLink, Hardware, HostSide, IfName, Link, LinkGraph, LinkKind, NetState,
    Route, stack,
};
use crate::plan::{DaemonState, NicRules, Observed, snapshot_quality};

/// The host's state under the pods, and the devices at the bottom of it.
#[derive(Debug)]
pub(crate) struct HostBaseline {
    pub state: NetState,
    pub devices: BTreeSet<IfName>,
    /// Other recorded links of the host that carried packets and did not at first.
    broken: BTreeSet<IfName>,
    /// The recorded devices that were missing or made anew at first. `None` without a record of the host.
    pub lost: Option<BTreeSet<IfName>>,
    /// Whether it is the whole host, and not only what is under some pods.
    pub is_whole: bool,
    /// Parents of pods that no record describes: only their name is known.
    named: BTreeSet<IfName>,
    /// What was taken from the host, or derived from a name, for those, and the ends of pairs that are to carry packets again.
    assumed: BTreeSet<IfName>,
    /// What carried the packets of each pod.
    chains: Vec<Vec<ChainLink>>,
    /// The links that this run creates.
    pub made: Vec<IfName>,
    /// Seconds since the host's state was recorded.
    pub age: u32,
    /// What becomes of what daemons own and the host lacks.
    pub daemons: DaemonState,
    /// How settings of NICs are compared.
    pub nic: NicRules,
    /// The recorded ifindexes that devices do not get back, and why.
    pub kept_indexes: BTreeMap<u32, KeptIndex>,
}

impl HostBaseline {
    /// From the recorded state and its age, or from the pods' own stacks where there is none; `named` are parents that
    /// nothing else describes. For the whole host, `inside` are the devices that pods have now: the restore brings back all others
    /// that were recorded. The ends of pairs that carried the packets of the pods carry them again.
    pub(crate) fn new(
        recorded: Option<(NetState, u32)>,
        pods: &[&Extension],
        named: BTreeSet<IfName>,
        inside: Option<&[&Hardware]>,
        now: &NetState,
    ) -> Self {
        let of_stacks = pods.iter().map(|pod| pod.stack.as_slice());
        let mut devices: BTreeSet<IfName> = of_stacks
            .clone()
            .flat_map(stack::devices)
            .cloned()
            .collect();
        let is_whole = recorded.is_some() && inside.is_some();
        let is_recorded = recorded.is_some();
        let (state, age) = recorded.unwrap_or_else(|| (stack::as_state(of_stacks, now), 0));
        let remade = snapshot_quality::remade(&state, now, devices.iter());
        if let Some(inside) = inside {
            let is_inside = |link: &Link| {
                let device = link.hardware.as_ref().filter(|device| device.is_known());
                device.is_some_and(|device| inside.iter().any(|one| one.is_same(device)))
            };
            let own = state.links.iter().filter(|link| {
                let is_device = link.kind == LinkKind::Physical || remade.contains(&link.name);
                is_device && !is_inside(link)
            });
            devices.extend(own.map(|link| link.name.clone()));
        }
        let mut baseline = Self {
            state,
            devices,
            lost: is_recorded.then_some(remade),
            is_whole,
            named,
            assumed: BTreeSet::new(),
            chains: pods.iter().map(|pod| pod.chain.clone()).collect(),
            broken: BTreeSet::new(),
            made: Vec::new(),
            age,
            daemons: DaemonState::default(),
            nic: NicRules::default(),
            kept_indexes: BTreeMap::new(),
        };
        baseline.find_broken(now, &[]);
        baseline.learn(now);
        baseline
    }

    /// The recorded links that a restore brings back, with those above them.
    pub(crate) fn scope(&self) -> BTreeSet<IfName> {
        &self.devices | &self.broken
    }

    /// Finds what carried packets of the pods, or of the host if it is about the whole, and does not any more; `answers` are those to the
    /// host.
    pub(crate) fn find_broken(&mut self, now: &NetState, answers: &[AnswerRecord]) {
        let host = HostSide::new(now);
        let mut broken: BTreeSet<IfName> = BTreeSet::new();
        for chain in &self.chains {
            let links = chain.iter();
            let links = links.filter(|link| link.fault(chain, &host).is_some());
            broken.extend(links.map(|link| link.name.clone()));
        }
        if self.is_whole {
            let under = self.chains.iter().flatten().map(|link| &link.name);
            let under = under.chain(&self.devices).collect();
            let lost = snapshot_quality::host_losses(&self.state, answers, now, under);
            broken.extend(lost.into_iter().map(|(name, _)| name));
        }
        broken.retain(|name| {
            let link = self.state.link(name);
            let is_there = |link: &Link| host.present(name, link.hardware.as_ref()).is_some();
            link.is_some_and(|link| link.kind.can_be_made() || is_there(link))
        });
        // With those below, on which a link is made again.
        let graph = LinkGraph::new(&self.state.links);
        let stacks = broken.iter().flat_map(|name| graph.stack(name));
        self.broken = stacks.map(|link| link.name).collect();
    }

    /// The recorded devices that are missing or were made anew, and that a restore of these pods leaves out.
    pub(crate) fn left_out(&self, now: &NetState) -> Vec<IfName> {
        if self.is_whole {
            return Vec::new();
        }
        let devices = self.devices.iter();
        let remade = snapshot_quality::remade(&self.state, now, devices).into_iter();
        let in_scope = LinkGraph::new(&self.state.links).changed_with(&self.devices);
        remade.filter(|name| !in_scope.contains(name)).collect()
    }

    /// Completes the links that only have a name from the host's present state: again once the devices are back.
    pub(crate) fn learn(&mut self, now: &NetState) {
        let assumed = std::mem::take(&mut self.assumed);
        self.state
            .links
            .retain(|link| !assumed.contains(&link.name));
        self.state
            .addresses
            .retain(|address| !assumed.contains(&address.dev));
        let is_of = |route: &Route| route.devs().iter().any(|dev| assumed.contains(*dev));
        self.state.routes.retain(|route| !is_of(route));
        let host = HostSide::new(now);
        let ends = self.chains.iter().flat_map(|chain| {
            let ends = chain.iter().filter(|link| link.hardware.is_none());
            ends.filter_map(|end| end.mended(chain, &host))
        });
        for (end, routes) in ends {
            if self.state.link(&end.name).is_none() {
                self.assumed.insert(end.name.clone());
                self.devices.insert(end.name.clone());
                self.state.routes.extend(routes.iter().cloned());
                self.state.links.push(end);
            }
        }
        for name in &self.named {
            let (links, bottom) = host_parents::links_under(name, &self.state, now);
            self.assumed
                .extend(links.iter().map(|link| link.name.clone()));
            self.state.links.extend(links);
            self.devices.extend(bottom);
        }
        // The host's present addresses are its own: no pod may claim them.
        let own = now.addresses.iter().filter(|address| {
            address.flags & DADFAILED == 0 && self.assumed.contains(&address.dev)
        });
        self.state.addresses.extend(own.cloned());
    }

    /// The missing VLANs of which only the name is known.
    pub(crate) fn nameless(&self, now: &NetState) -> Vec<IfName> {
        let vlans = self.assumed.iter().filter(|name| {
            let assumed = self.state.link(name);
            assumed.is_some_and(|link| matches!(link.kind, LinkKind::Vlan(_)))
        });
        vlans
            .filter(|name| now.link(name).is_none())
            .cloned()
            .collect()
    }

    /// The host's namespace as its plan takes it.
    pub(crate) fn observed<'a>(
        &'a self,
        now: &'a NetState,
        new_link: Option<&'a Sysctls>,
    ) -> Observed<'a> {
        Observed {
            state: now,
            new_link,
            age: self.age,
            daemons: self.daemons,
            nic: self.nic,
            made: &self.made,
            kept_indexes: Some(&self.kept_indexes),
        }
    }
}

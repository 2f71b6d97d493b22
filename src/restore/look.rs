//! What a pod has, read from inside its namespace during a restore, and what it lacks.

use std::collections::BTreeSet;

use super::job::Job;
use super::probe_targets;
use crate::inventory::observe::Host;
use crate::kernel::{Error, state};
use crate::model::net::address::TENTATIVE;
use crate::model::net::link::sysctl::{SysctlKey, Sysctls};
use crate::model::{ConflictProbe, IfName, Link, LinkKind, NetState};
use crate::plan::{HostLinks, Step};

impl Job {
    /// Reads the links, which shows the missing ones, and for a probe the addresses. Of a pod without a missing link everything
    /// is read: it may be correct.
    pub(super) fn survey(&mut self, host: &Host, links: &HostLinks, probe: ConflictProbe) {
        if self.before.is_some() {
            return;
        }
        let pod = &mut self.matched.pod;
        let state = match pod.observe_links_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(&error),
        };
        self.before = Some(link_names(&state));
        self.missing = self.matched.missing(&state, links);
        let state = if self.missing.is_empty() {
            let needs = self.matched.needs(&state);
            self.matched.complete_inside(state, needs)
        } else if probe == ConflictProbe::Off {
            return;
        } else {
            let socket = self.matched.pod.socket();
            socket.and_then(|socket| state::with_addresses(socket, state))
        };
        let state = match state {
            Ok(state) => state,
            Err(error) => return self.give_up(&error),
        };
        if probe != ConflictProbe::Off {
            self.targets = probe_targets::targets(&self.matched, &state, links);
        }
        if self.missing.is_empty() {
            self.note(state, links);
            if !self.finished {
                // Its turn comes later, and begins with a new observation.
                self.last = None;
            }
        }
    }

    /// Plans what is missing after links were created; the calling thread is inside the pod's namespace. In a pod that has no other
    /// links these have nothing yet, and the rest is taken to be as recorded: whether it is, the next observation shows.
    pub(super) fn look(&mut self, host: &Host, links: &HostLinks) {
        let state = match self.links_inside(host) {
            Ok(state) => state,
            Err(error) => return self.give_up(&error),
        };
        let had_none = self.before.as_ref().is_some_and(Vec::is_empty);
        let is_new = had_none && self.has_only_created_or(|_| false);
        if is_new && self.matched.has_only_links(&state, &self.created) {
            let state = self.matched.expected(state, &self.created);
            let plan = self.matched.plan(&state, None, links, &self.created);
            self.last = Some((state, plan));
        } else {
            self.complete(state, links);
        }
    }

    /// Observes as far as its record needs it, and plans; the calling thread is inside the pod's namespace.
    pub(super) fn observe(&mut self, host: &Host, links: &HostLinks) {
        match self.links_inside(host) {
            Ok(state) => self.complete(state, links),
            Err(error) => self.give_up(&error),
        }
    }

    fn links_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        let mut state = self.matched.pod.observe_links_inside(host)?;
        self.settle_new(&mut state, host);
        Ok(state)
    }

    /// Reads the rest, and plans.
    fn complete(&mut self, state: NetState, links: &HostLinks) {
        let needs = self.matched.needs(&state);
        match self.matched.complete_inside(state, needs) {
            Ok(state) => self.note(state, links),
            Err(error) => self.give_up(&error),
        }
    }

    /// The neighbour settings of links that this run has created, and not changed since, are known.
    fn settle_new(&self, state: &mut NetState, host: &Host) {
        if !self.has_only_created_or(Step::is_addition) {
            return;
        }
        let initial = &host.initial_settings;
        for link in &mut state.links {
            let settings = &mut link.sysctls;
            if !self.created.contains(&link.name) {
                continue;
            }
            // Without IPv6 a link has no settings for it.
            if !settings.ipv4.is_empty() {
                settings.neigh4.clone_from(&initial.neigh4);
            }
            if !settings.ipv6.is_empty() {
                settings.neigh6.clone_from(&initial.neigh6);
            }
        }
    }

    /// Plans what is missing in this state.
    fn note(&mut self, mut state: NetState, links: &HostLinks) {
        let plan = self.matched.plan(&state, None, links, &self.created);
        let stuck = self
            .last
            .as_ref()
            .is_some_and(|(_, last)| last.steps == plan.steps);
        let waiting = state
            .addresses
            .iter()
            .any(|address| address.flags & TENTATIVE != 0);
        self.finished = plan.steps.is_empty() || (stuck && !waiting);
        self.routers = routers(&state);
        if self.finished && plan.later.is_empty() {
            // Most of what a thousand pods would keep, and nothing is compared with them any more.
            forget_settings(&mut state);
            if let Some(recorded) = &mut self.matched.checkpoint.netfix {
                forget_settings(&mut recorded.state);
            }
        }
        self.last = Some((state, plan));
    }
}

pub(super) fn link_names(state: &NetState) -> Vec<IfName> {
    let links = state
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Loopback);
    links.map(|link| link.name.clone()).collect()
}

/// The links with IPv6 forwarding.
fn routers(state: &NetState) -> BTreeSet<IfName> {
    const FORWARDING: SysctlKey = SysctlKey::known("forwarding");
    let is_router = |link: &&Link| link.sysctls.ipv6.get(&FORWARDING) == Some(&1);
    let routers = state.links.iter().filter(is_router);
    routers.map(|link| link.name.clone()).collect()
}

fn forget_settings(state: &mut NetState) {
    for link in &mut state.links {
        link.sysctls = Sysctls::default();
    }
}

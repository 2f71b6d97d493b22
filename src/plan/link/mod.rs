//! The plan for one link, on the host and in pods: one order of steps for both.

mod bond;
pub(crate) mod diff;
mod fdb;
pub(super) mod ifindex;
pub(crate) mod ipv6;
pub(super) mod lower;
pub(super) mod makers;
pub(crate) mod nic;
pub(crate) mod port;
pub(crate) mod queues;
pub(crate) mod sriov;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use self::fdb::FdbTable;
use self::ipv6::IPV6_MTU;
use super::traffic;
use crate::model::net::link::Flags;
use crate::model::net::link::sysfs::SysfsSettings;
use crate::model::{IfName, Indexed, Link, NetState, Problem, Traffic};
use crate::plan::routers;
use crate::plan::{HostLinks, NicMode, Observed, Plan};

/// The links of one namespace as recorded and as they are now, with the plan from one to the other.
pub(super) struct LinkPlanner<'a> {
    pub wanted: Indexed<'a>,
    pub now: Indexed<'a>,
    pub observed: Observed<'a>,
    pub plan: Plan,
    /// Links that other programs made again.
    pub others: BTreeSet<IfName>,
}

impl<'a> LinkPlanner<'a> {
    pub(super) fn new(wanted: &'a NetState, observed: Observed<'a>) -> Self {
        let (wanted, now) = (Indexed::new(wanted), Indexed::new(observed.state));
        Self {
            others: makers::of_others(&wanted, &now),
            wanted,
            now,
            observed,
            plan: Plan::default(),
        }
    }

    pub(super) fn report(&mut self, problem: Problem) {
        self.plan.problems.push(problem);
    }

    /// A link right after its creation, down and with initial settings, where these are known.
    pub(super) fn fresh(&self, link: &Link) -> Option<Link> {
        let mut sysctls = self.observed.new_link?.clone();
        // The one setting that is not from `default`: it follows the link's MTU.
        if let Some(mtu) = sysctls.ipv6.get_mut(&IPV6_MTU) {
            *mtu = link.mtu.into();
        }
        let flags = Flags {
            multicast: true,
            ..Flags::default()
        };
        Some(Link {
            flags,
            alias: None,
            altnames: Vec::new(),
            group: 0,
            master: None,
            port: Vec::new(),
            ports: Vec::new(),
            backup_port: None,
            blocked: false,
            vlans: None,
            mdb: Vec::new(),
            broadcast: None,
            groups: Vec::new(),
            protodown: false,
            dormant: false,
            token: None,
            traffic: Traffic::default(),
            sysctls,
            sysfs: SysfsSettings::new(),
            nic: None,
            fdb: Vec::new(),
            ..link.clone()
        })
    }

    /// Reports what no step restores: the place in a team or another master, and some of the traffic control. `now` is `None`
    /// for a missing link.
    pub(super) fn cannot_restore(&mut self, wanted: &Link, now: Option<&Link>) {
        let lost = port::lost_master(wanted, now, &self.wanted, &self.now);
        self.plan.problems.extend(lost);
        traffic::cannot_restore(wanted, now, &mut self.plan);
    }

    /// Gives the ports of bridges their backups again, those that stay as well, if one of both is in scope.
    pub(super) fn backup_ports(
        &mut self,
        in_scope: &[&Link],
        name_now: impl Fn(&IfName) -> IfName,
    ) {
        let in_scope: HashSet<&IfName> = in_scope.iter().map(|link| &link.name).collect();
        for wanted in &self.wanted.state.links {
            if let Some(backup) = &wanted.backup_port
                && (in_scope.contains(&wanted.name) || in_scope.contains(backup))
            {
                let names = (name_now(&wanted.name), name_now(backup));
                port::backup(wanted, names, &self.now, &mut self.plan);
            }
        }
    }

    /// Lets links that stay send packets to links `in_scope` again, which were lost.
    pub(super) fn redirects(&mut self, in_scope: &[&Link]) {
        let in_scope: HashSet<&IfName> = in_scope.iter().map(|link| &link.name).collect();
        let was_lost = |name: &IfName| in_scope.contains(name);
        let links = self.wanted.state.links.iter();
        for link in links.filter(|link| !was_lost(&link.name)) {
            if let Some(now) = self.now.link(&link.name) {
                traffic::redirects(link, now, was_lost, &self.now, &mut self.plan);
            }
        }
    }

    /// The steps from the present state of a link to the recorded one, without its addresses and routes. On the host, `ports` are
    /// the links that a bond can have as ports; netfix restores no bonds in pods.
    pub(super) fn settle(&mut self, wanted: &Link, now: &Link, ports: Option<&HostLinks>) {
        let (state, present) = (&self.wanted, &self.now);
        let plan = &mut self.plan;
        let wanted = &*diff::target(wanted, now, present);
        // Before all else: many drivers reset the link, and some their limits of the MTU.
        nic::steps(wanted, now, state, &self.observed, plan);
        // The MTU comes before the sysctls: with a large enough one, a link gets IPv6 and the settings of a new link.
        let wanted = &*makers::target(wanted, now, (state, present), &self.others, plan);
        let wanted = &*routers::target(wanted, now, (state, present));
        diff::attributes(wanted, now, state, present, plan);
        let now = &*if diff::decides_mtu(wanted, now, state) {
            ipv6::with_new_mtu(wanted, now, self.observed.new_link, plan)
        } else {
            Cow::Borrowed(now)
        };
        // An operator that finds virtual functions of a device that is down, or has a smaller MTU, drains the node.
        sriov::make(wanted, now, self.observed.nic.mode, plan);
        port::steps(wanted, now, (state, present), self.observed.daemons, plan);
        fdb::steps(wanted, now, FdbTable::Own, self.observed.daemons, plan);
        diff::kind_data(wanted, now, plan);
        diff::sysctls(wanted, now, state, plan);
        traffic::steps(wanted, now, present, plan);
        if let Some(host) = ports {
            bond::steps(wanted, now, state, present, host, plan);
        }
        // Last, because the kernel uses most settings only when a link goes up.
        ipv6::up(wanted, now, state, plan);
        // A driver that is bound while the device is down gives the function a random MAC.
        if self.observed.nic.mode == NicMode::Restore {
            sriov::bind(wanted, now, state, present, plan);
        }
    }
}

//! The steps that make a link a port of its former bridge or VRF again, with what it had there. A bond takes its ports itself.

use std::collections::BTreeSet;

use super::diff::{self, is_bond_port};
use super::fdb::{self, FdbTable};
use crate::model::net::link::port::{FORWARDING, PortVlans, STATE};
use crate::model::net::raw::RawAttribute;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{IfName, Indexed, Link, Problem};
use crate::plan::{Change, DaemonState, NetlinkStep, Plan, Step};

/// The recorded master, unless it is a bond.
fn master_but_bond<'l>(wanted: &'l Link, state: &Indexed<'_>) -> Option<&'l IfName> {
    let master = wanted.master.as_ref();
    master.filter(|_| !is_bond_port(wanted, state))
}

/// What is wrong if the link cannot become a port of its former master again.
pub(super) fn lost_master(
    wanted: &Link,
    now: Option<&Link>,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
) -> Option<Problem> {
    let then = master_but_bond(wanted, state)?;
    match now.and_then(|now| now.master.as_ref()) {
        Some(now) if now == then => None,
        Some(now) => {
            let (now, then) = (now.clone(), then.clone());
            Some(ConflictCause::OtherMaster { now, then }.error(&wanted.name))
        }
        None if can_join(wanted, then, state, present) => None,
        None => {
            let master = then.clone();
            let is_missing = present.link(then).is_none()
                && !state.link(then).is_some_and(Link::is_open_vswitch);
            let cause = if is_taken_back(wanted, now, state, present) {
                PlanCause::NotTakenBack { master }
            } else if is_missing {
                PlanCause::MasterMissing { master }
            } else {
                PlanCause::MasterLost { master }
            };
            Some(cause.error(&wanted.name))
        }
    }
}

/// Whether the link was a port of Open vSwitch and is of none now: the daemon of that, which is still there, takes it back.
pub(crate) fn is_taken_back(
    wanted: &Link,
    now: Option<&Link>,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
) -> bool {
    let of_switch = |all: &Indexed<'_>| {
        let master = wanted.master.as_ref().and_then(|name| all.link(name));
        master.is_some_and(Link::is_open_vswitch)
    };
    now.is_none_or(|now| now.master.is_none()) && of_switch(state) && of_switch(present)
}

/// Whether netfix can record what a port has in its master, and restore it.
pub(crate) fn is_restorable(port: &Link, state: &Indexed<'_>) -> bool {
    let master = port.master.as_ref().and_then(|name| state.link(name));
    let restores = |master: &Link| has_known_vlans(port, master) || master.is_open_vswitch();
    is_bond_port(port, state) || master.is_some_and(restores)
}

/// Whether netfix can add a port to the master, and knows its VLANs where they count.
fn has_known_vlans(port: &Link, master: &Link) -> bool {
    master.takes_ports() && (!master.vlan_filtering || port.vlans.is_some())
}

/// Whether the master is still there, and netfix can add the port to it.
fn can_join(wanted: &Link, master: &IfName, state: &Indexed<'_>, present: &Indexed<'_>) -> bool {
    let accepts = |link: Option<&Link>| link.is_some_and(|link| has_known_vlans(wanted, link));
    accepts(state.link(master)) && accepts(present.link(master))
}

/// The steps that make the link a port of its bridge or VRF again, and those for what it had there. They come before it goes up:
/// packets must not get into the wrong VLAN.
pub(super) fn steps(
    wanted: &Link,
    now: &Link,
    (state, present): (&Indexed<'_>, &Indexed<'_>),
    daemons: DaemonState,
    plan: &mut Plan,
) {
    let Some(name) = master_but_bond(wanted, state) else {
        return;
    };
    let master = present.link(name);
    if now.master.is_none() && can_join(wanted, name, state, present) {
        plan.push(Step::set(&now.name, Change::Master(name.clone())));
        if let Some(bridge) = master.filter(|master| master.is_bridge()) {
            in_tables(wanted, &as_new_port(now, bridge), bridge, daemons, plan);
        }
    } else if now.master.as_ref() == Some(name) {
        let mut settings = settings(wanted, now);
        if now.blocked && !wanted.blocked {
            settings.push(RawAttribute {
                number: STATE,
                value: vec![FORWARDING],
            });
        }
        if !settings.is_empty() {
            plan.push(Step::set(&now.name, Change::Port(settings)));
        }
        if let Some(bridge) = master.filter(|master| master.is_bridge()) {
            in_tables(wanted, now, bridge, daemons, plan);
        }
    }
}

/// The link when the bridge has taken it.
fn as_new_port(link: &Link, bridge: &Link) -> Link {
    let given = bridge.default_pvid.map(PortVlans::default_of_port);
    Link {
        vlans: Some(given.into_iter().collect()),
        mdb: Vec::new(),
        ..link.clone()
    }
}

/// `IFLA_BRPORT_BACKUP_NHID` (`linux/if_link.h`), which the kernel reports only where it is set.
const BACKUP_NHID: u16 = 44;

/// The recorded settings that differ, of those that the kernel has.
pub(super) fn settings(wanted: &Link, now: &Link) -> Vec<RawAttribute> {
    let mut known: BTreeSet<u16> = now.port.iter().map(|raw| raw.number).collect();
    known.insert(BACKUP_NHID);
    let settings = wanted.port.iter();
    settings
        .filter(|raw| known.contains(&raw.number) && !now.port.contains(raw))
        .cloned()
        .collect()
}

/// The step for the backup of a port, which must be a port of the same bridge. `names` are the present ones of both.
pub(super) fn backup(
    wanted: &Link,
    (dev, backup): (IfName, IfName),
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let now = present.link(&dev);
    let is_port = |name: &IfName| {
        let now = present.link(name).and_then(|link| link.master.as_ref());
        let mut steps = plan.steps.iter().filter_map(Step::netlink);
        now == wanted.master.as_ref()
            || steps.any(|step| {
                matches!(step, NetlinkStep::SetLink { dev, change: Change::Master(master), .. }
                if dev == name && wanted.master.as_ref() == Some(master))
            })
    };
    if now.is_none_or(|now| now.backup_port.as_ref() != Some(&backup))
        && is_port(&dev)
        && is_port(&backup)
    {
        plan.push(Step::set(&dev, Change::BackupPort(backup)));
    }
}

/// The steps for what a port has in the tables of its bridge.
fn in_tables(wanted: &Link, now: &Link, bridge: &Link, daemons: DaemonState, plan: &mut Plan) {
    vlans(wanted, now, bridge, plan);
    fdb::steps(wanted, now, FdbTable::Bridge, daemons, plan);
    // A bridge that is down takes no group (`br_mdb_add` in `net/bridge/br_mdb.c`).
    if bridge.flags.up {
        let groups = diff::lacking(&wanted.mdb, &now.mdb);
        plan.extend(groups.into_iter().map(|entry| NetlinkStep::AddGroup {
            bridge: bridge.name.clone(),
            port: now.name.clone(),
            entry,
        }));
    }
}

/// The VLAN that the bridge gave to a new port goes, if the port was not in it; others that are not recorded were added later, and
/// stay.
fn vlans(wanted: &Link, now: &Link, bridge: &Link, plan: &mut Plan) {
    let (Some(then), Some(current)) = (&wanted.vlans, &now.vlans) else {
        return;
    };
    let given: Vec<_> = bridge
        .default_pvid
        .map(PortVlans::default_of_port)
        .into_iter()
        .collect();
    let is_new = *current == given || wanted.is_made_anew(now);
    let is_there = PortVlans::without(&given, current).is_empty();
    let surplus = PortVlans::without(&given, then);
    if is_new && is_there && !surplus.is_empty() {
        plan.push(Step::set(&now.name, Change::DeleteVlans(surplus)));
    }
    let missing = PortVlans::beyond(then, current);
    if !missing.is_empty() {
        plan.push(Step::set(&now.name, Change::AddVlans(missing)));
    }
}

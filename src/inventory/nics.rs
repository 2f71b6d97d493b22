//! The NICs of the host: every device with a bus address, and what pods depend on in its place.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::{drivers, functions, procfs};
use crate::kernel::{Error, Socket, ability, dump, ethtool};
use crate::managers;
use crate::model::manager::Manager;
use crate::model::problem::KeptIndex;
use crate::model::{IfName, Link, LinkKind, NetState, Nic, Problem};
use crate::plan::{IndexMode, snapshot_quality};

/// The daemon that negotiates data center bridging with the switch, and configures it on the devices.
pub(crate) const LLDPAD: &str = "lldpad";

/// What of the host's devices others use or configure, and a reload of the driver takes from them.
pub(crate) fn at_risk(host: &NetState) -> Vec<Problem> {
    let mut found = snapshot_quality::data_center_bridging(host, false);
    if !found.is_empty() && procfs::runs(LLDPAD) {
        found = snapshot_quality::data_center_bridging(host, true);
    }
    found.extend(functions::held(host));
    found.extend(drivers::at_risk(host));
    found
}

/// These links of the host's namespace, in ascending order of their ifindex.
pub(crate) fn named(names: &BTreeSet<IfName>) -> Result<Vec<Nic>, Error> {
    let mut socket = Socket::open_here()?;
    let links = dump::links(&mut socket, None, &mut Vec::new())?;
    Ok(among(&links, names))
}

/// Those of these links of the host's namespace, in which the calling thread is.
pub(crate) fn among(links: &[Link], names: &BTreeSet<IfName>) -> Vec<Nic> {
    let links = links.iter().filter(|link| names.contains(&link.name));
    links.map(ethtool::nic).collect()
}

/// The links of this driver, of any kind, in the host's namespace.
pub(crate) fn of_driver(driver: &str) -> Result<Vec<Nic>, Error> {
    let mut socket = Socket::open_here()?;
    let links = dump::links(&mut socket, None, &mut Vec::new())?;
    Ok(links
        .iter()
        .map(ethtool::nic)
        .filter(|nic| nic.driver.as_deref() == Some(driver))
        .collect())
}

/// Reads them from the host's namespace, in ascending order of their ifindex; `under_pods` are the devices at the bottom of
/// the pods' links.
pub(crate) fn read(under_pods: &BTreeSet<IfName>) -> Result<Vec<Nic>, Error> {
    let mut socket = Socket::open_here()?;
    let links = dump::links(&mut socket, None, &mut Vec::new())?;
    Ok(links
        .iter()
        .filter_map(|link| {
            let nic = ethtool::nic(link);
            let is_device = link.kind == LinkKind::Physical && nic.bus.is_some();
            (is_device || under_pods.contains(&link.name)).then_some(nic)
        })
        .collect())
}

/// Those of these links that do not get their ifindex back after a reload of their driver, by it: a person wants that, the kernel cannot
/// do it, or an `ifup` would not survive it that brings the device up meanwhile. The calling thread is inside the host's namespace.
pub(crate) fn kept_indexes(mode: IndexMode, links: &[Link]) -> BTreeMap<u32, KeptIndex> {
    let of_all = match mode {
        IndexMode::Restore => ability::kept_index(),
        IndexMode::Keep => Some(KeptIndex::Requested),
    };
    let of_ifupdown = managers::brought_up_by_ifupdown(links);
    let why = |link: &Link| {
        let is_owned = of_ifupdown.contains(&link.name);
        let owned = is_owned.then_some(KeptIndex::Owner(Manager::Ifupdown));
        of_all.clone().or(owned)
    };
    let devices = links.iter().filter(|link| link.is_device());
    devices
        .filter_map(|link| Some((link.index, why(link)?)))
        .collect()
}

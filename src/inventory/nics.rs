//! The NICs of the host: every device with a bus address, and what pods depend on in its place.

use std::collections::BTreeSet;

use crate::kernel::{Error, Socket, dump, ethtool};
use crate::model::{IfName, LinkKind, Nic};

/// These links of the host's namespace, in ascending order of their ifindex.
pub(crate) fn named(names: &BTreeSet<IfName>) -> Result<Vec<Nic>, Error> {
    let mut socket = Socket::open_here()?;
    let links = dump::links(&mut socket, None, &mut Vec::new())?;
    let links = links.iter().filter(|link| names.contains(&link.name));
    Ok(links.map(ethtool::nic).collect())
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

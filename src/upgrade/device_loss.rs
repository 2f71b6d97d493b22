//! What the host loses with one of its devices, and a restore brings back.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Address, IfName, Link, LinkGraph, NetState};

/// A device of the host that COMMAND takes, with the number of objects on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceLoss {
    /// Its name.
    pub name: IfName,
    /// Its driver; null when unknown.
    pub driver: Option<String>,
    /// Links on it, such as VLANs, and those on them.
    pub links: usize,
    /// Addresses of it and of these.
    pub addresses: usize,
    /// Routes through them alone.
    pub routes: usize,
    /// What is set on it by ethtool(8).
    pub settings: usize,
    /// Its virtual functions.
    pub functions: u32,
}

impl DeviceLoss {
    pub(super) fn of(name: IfName, host: &NetState, graph: &LinkGraph<'_>) -> Self {
        let names = graph.changed_with([&name]);
        let mut addresses: Vec<&Address> = host.addresses.iter().collect();
        addresses.retain(|one| names.contains(&one.dev) && !one.comes_by_itself());
        let routes = host.routes.iter().filter(|route| {
            let devs = route.devs();
            !devs.is_empty() && devs.into_iter().all(|dev| names.contains(dev))
        });
        let device = host.link(&name);
        let hardware = device.and_then(|link| link.hardware.as_ref());
        let nic = device.and_then(|link| link.nic.as_ref());
        let settings = nic.into_iter().flat_map(|nic| nic.settings.values());
        let sriov = device.and_then(Link::sriov);
        Self {
            driver: hardware.and_then(|hardware| hardware.driver.clone()),
            links: names.len() - 1,
            addresses: addresses.len(),
            routes: routes.count(),
            settings: settings.map(BTreeMap::len).sum(),
            functions: sriov.map_or(0, |sriov| sriov.vfs),
            name,
        }
    }
}

//! The host, as the pods on it see it: indexed once for all of them.

use std::collections::HashMap;

use super::LinkGraph;
use crate::model::net::route::TABLE_MAIN;
use crate::model::net::way::{Packet, WayExit};
use crate::model::{Hardware, IfName, Indexed, Link, NetState, Route};

/// The host, as the pods on it see it.
#[derive(Debug)]
pub struct HostSide<'a> {
    pub(crate) state: &'a NetState,
    /// Its links.
    pub(crate) graph: LinkGraph<'a>,
    pub(crate) index: Indexed<'a>,
    devices: Vec<&'a Link>,
    /// Its routes, by the one link that they go out of.
    routes: HashMap<&'a IfName, Vec<&'a Route>>,
    /// Where packets go.
    ways: HashMap<&'a Packet, &'a WayExit>,
}

impl<'a> HostSide<'a> {
    /// The host's side in this state.
    #[must_use]
    pub fn new(state: &'a NetState) -> Self {
        let devices = state.links.iter().filter(|link| link.hardware.is_some());
        let mut routes: HashMap<_, Vec<_>> = HashMap::new();
        for route in &state.routes {
            if let [dev] = route.devs()[..] {
                routes.entry(dev).or_default().push(route);
            }
        }
        let ways = state.ways.iter();
        Self {
            state,
            graph: LinkGraph::new(&state.links),
            index: Indexed::new(state),
            devices: devices.collect(),
            routes,
            ways: ways.map(|way| (&way.packet, &way.exit)).collect(),
        }
    }

    /// Like [`NetState::present`].
    pub(crate) fn present(&self, name: &IfName, hardware: Option<&Hardware>) -> Option<&'a Link> {
        let Some(device) = hardware.filter(|device| device.is_known()) else {
            return self.index.link(name);
        };
        let is_it = |link: &&&Link| (link.hardware.as_ref()).is_some_and(|own| own.is_same(device));
        self.devices.iter().find(is_it).copied()
    }

    /// The routes that go out of this link alone.
    pub(crate) fn routes_of(&self, dev: &IfName) -> &[&'a Route] {
        self.routes.get(dev).map_or(&[], Vec::as_slice)
    }

    /// Where this packet goes, if that was looked up.
    pub(crate) fn exit_of(&self, packet: &Packet) -> Option<&'a WayExit> {
        self.ways.get(packet).copied()
    }

    /// Whether packets for the one address of this route, which is there, are refused or go out of another link than `dev`.
    pub(crate) fn overrides(&self, route: &Route, dev: &IfName) -> bool {
        let to = route.one_address();
        let exit = to.and_then(|to| self.exit_of(&Packet::plain(to)));
        // In another table it may be for other packets.
        exit.is_some_and(|exit| match exit {
            WayExit::Refused { .. } => true,
            WayExit::Link {
                dev: other, table, ..
            } => *table == Some(TABLE_MAIN) && other != dev,
            WayExit::Local { .. } => false,
        })
    }
}

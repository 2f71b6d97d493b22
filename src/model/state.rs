//! The whole network state of one namespace.

use serde::{Deserialize, Serialize};

use super::address::PASSING_FLAGS;
use super::{Address, IfName, Link, Neighbour, Route, Rule};

/// Everything in one namespace that a restore may have to put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetState {
    /// Links in ascending order of their index, so that a parent comes before what stands on it.
    pub links: Vec<Link>,
    /// Addresses in the kernel's order, which decides which of several is primary.
    pub addresses: Vec<Address>,
    /// Routes of all tables, without those that the kernel makes by itself.
    pub routes: Vec<Route>,
    /// Rules of both families.
    pub rules: Vec<Rule>,
    /// Permanent and proxy neighbours.
    pub neighbours: Vec<Neighbour>,
    /// What the kernel has here that netfix can neither describe nor restore, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

impl NetState {
    /// The link of that name.
    #[must_use]
    pub fn link(&self, name: &IfName) -> Option<&Link> {
        self.links.iter().find(|link| link.name == *name)
    }

    /// The state without what passes by itself: the phases of duplicate address detection.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        for address in &mut self.addresses {
            address.flags &= !PASSING_FLAGS;
        }
        self
    }

    /// The state without what runs down by itself: how long an address is still lent. That it is lent stays.
    #[must_use]
    pub fn timeless(mut self) -> Self {
        for address in &mut self.addresses {
            address.valid_lft = address.valid_lft.map(|_| 0);
            address.preferred_lft = address.preferred_lft.map(|_| 0);
        }
        self
    }

    /// The addresses of one link, in the kernel's order.
    pub fn addresses_of<'a>(&'a self, dev: &'a IfName) -> impl Iterator<Item = &'a Address> {
        self.addresses.iter().filter(move |address| address.dev == *dev)
    }
}

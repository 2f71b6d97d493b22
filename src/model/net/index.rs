//! A state with its links and addresses by name: a pod may have thousands of both.

use std::collections::HashMap;

use crate::model::{Address, IfName, Link, NetState};

/// A state that is searched by names of links.
#[derive(Debug)]
pub(crate) struct Indexed<'a> {
    pub state: &'a NetState,
    links: HashMap<&'a IfName, &'a Link>,
    addresses: HashMap<&'a IfName, Vec<&'a Address>>,
}

impl<'a> Indexed<'a> {
    pub(crate) fn new(state: &'a NetState) -> Self {
        let mut links = HashMap::with_capacity(state.links.len());
        for link in &state.links {
            links.entry(&link.name).or_insert(link);
        }
        let mut addresses: HashMap<_, Vec<_>> = HashMap::new();
        for address in &state.addresses {
            addresses.entry(&address.dev).or_default().push(address);
        }
        Self {
            state,
            links,
            addresses,
        }
    }

    /// The link of that name.
    pub(crate) fn link(&self, name: &IfName) -> Option<&'a Link> {
        self.links.get(name).copied()
    }

    /// The addresses of one link, in the kernel's order.
    pub(crate) fn addresses_of(&self, dev: &IfName) -> &[&'a Address] {
        self.addresses.get(dev).map_or(&[], Vec::as_slice)
    }
}

//! What is missing, and the ordered steps that put it back.
//!
//! Pure: from a checkpoint and an observation to a [`Plan`]. The executor has nothing left to decide. A link that
//! does not exist yet has settings that nobody knows, so a plan for it ends with its creation, unless
//! [`Observed::new_link`] says what new links start with; planning again after a new observation does the rest.

pub mod claims;
mod host;
mod partial;
mod pod;
mod settle;
mod step;
mod via;
pub mod worth;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::sysctl::Sysctls;
use crate::model::{IfName, NetState, Problem};

pub use host::host;
pub use partial::complete;
pub use pod::pod;
pub use step::{Change, Step};

/// What the kernel says of one namespace.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Its state.
    pub state: &'a NetState,
    /// What a new link of this namespace starts with, where that was read.
    pub new_link: Option<&'a Sysctls>,
    /// Seconds since the checkpoint was written: what address lifetimes have lost.
    pub age: u32,
}

/// What to do in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Steps that must wait until their link is up and has carrier.
    pub later: Vec<Step>,
    /// What no step can put right, and what is only worth knowing.
    pub problems: Vec<Problem>,
}

impl Plan {
    /// All steps in words, those that must wait included.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let later = self.later.iter().map(|step| format!("{step} (once it has carrier)"));
        self.steps.iter().map(ToString::to_string).chain(later).collect()
    }
}

/// What became of the host's links, as far as pods that stand on them must know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLinks {
    /// Links that are there, or will be once the host's plan is done, by their name in the checkpoint.
    pub present: BTreeSet<IfName>,
    /// Devices that came back under another name.
    pub renamed: BTreeMap<IfName, IfName>,
    /// The MTU that each link in `present` has, or will have, in bytes.
    pub mtus: BTreeMap<IfName, u32>,
}

impl HostLinks {
    /// Forgets the links that `state`, a new observation of the host, does not have.
    pub fn confirm(&mut self, state: &NetState) {
        let Self { present, renamed, mtus } = self;
        let now = |then: &IfName| state.link(renamed.get(then).unwrap_or(then));
        present.retain(|then| now(then).is_some());
        *mtus = present.iter().filter_map(|then| Some((then.clone(), now(then)?.mtu))).collect();
    }

    /// The name that a link of the checkpoint has now.
    #[must_use]
    pub fn name_now(&self, then: &IfName) -> IfName {
        self.renamed.get(then).unwrap_or(then).clone()
    }
}

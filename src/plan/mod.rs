//! What is missing, and the ordered steps that restore it.
//!
//! Pure: from a checkpoint and an observation to a [`Plan`], so that the executor decides nothing. The settings of a missing
//! link are unknown, and its plan ends with its creation, unless [`Observed::new_link`] has the initial settings. The next
//! plan, after a new observation, does the rest.

pub(crate) mod addresses;
mod cni_complete;
mod cni_routes;
mod host;
mod host_links;
pub(crate) mod link;
mod order;
mod pod;
mod routes;
pub mod snapshot_quality;
mod step;
mod traffic;
mod verdict;

use crate::model::net::link::sysctl::Sysctls;
use crate::model::{NetState, Problem};

pub use crate::plan::cni_complete::complete;
pub use host::host;
pub use host_links::{HostDevice, HostLinks};
pub use pod::{missing_links, pod};
pub use step::{Change, NetlinkStep, OrderedObject, Rewrite, Step};
pub use verdict::PodVerdict;

/// The observation of one namespace.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Its state.
    pub state: &'a NetState,
    /// The initial settings of a new link in this namespace, where they were read.
    pub new_link: Option<&'a Sysctls>,
    /// Seconds since the checkpoint was written, by which address lifetimes are shorter.
    pub age: u32,
}

/// What to do in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Steps that must wait until their link is up and has carrier.
    pub later: Vec<Step>,
    /// Differences for which there is no step.
    pub problems: Vec<Problem>,
}

impl Plan {
    /// Adds a step.
    fn push(&mut self, step: impl Into<Step>) {
        self.steps.push(step.into());
    }

    /// Adds steps, in this order.
    fn extend(&mut self, steps: impl IntoIterator<Item: Into<Step>>) {
        self.steps.extend(steps.into_iter().map(Into::into));
    }

    /// All steps as text, including those that must wait.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let later = self
            .later
            .iter()
            .map(|step| format!("{step} (once it has carrier)"));
        self.steps
            .iter()
            .map(ToString::to_string)
            .chain(later)
            .collect()
    }
}

//! What is missing, and the ordered steps that restore it.
//!
//! Pure: from a checkpoint and an observation to a [`Plan`], so that the executor decides nothing. The settings of a missing
//! link are unknown, and its plan ends with its creation, unless [`Observed::new_link`] has the initial settings. The next
//! plan, after a new observation, does the rest.

pub(crate) mod addresses;
mod cni;
pub(crate) mod daemons;
pub(crate) mod drivers;
mod host;
pub mod indexes;
mod input;
pub(crate) mod link;
mod order;
mod output;
mod pod;
pub(crate) mod routers;
mod routes;
pub mod snapshot_quality;
mod step;
mod surplus;
mod traffic;
mod verdict;

pub use crate::plan::cni::complete::complete;
pub use host::host;
pub use input::{DaemonState, HostDevice, HostLinks, IndexMode, NicMode, NicRules, Observed};
pub use output::{AwaitedEvent, Plan};
pub use pod::{missing_links, pod};
pub use step::{
    Change, NetlinkStep, NicStep, OrderedObject, Rewrite, SriovChange, SriovStep, Step,
};
pub use verdict::{PodVerdict, cut_off};

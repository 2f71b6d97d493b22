//! Routes: between rtnetlink messages and the model (`ip route`).

pub(crate) mod advertised;
pub mod lookup;
pub mod nexthop;
mod read;
pub mod rule;
pub mod ways;
mod write;

use crate::kernel::Errno;
use crate::model::IfName;

pub(super) use read::parse;
pub use write::{add, change, del};

/// The ifindex of an interface.
pub type IndexOf<'a> = &'a dyn Fn(&IfName) -> Result<u32, Errno>;

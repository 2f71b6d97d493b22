//! Plain data: names, addresses, links, routes, checkpoints. Constructors refuse invalid values.
//!
//! This module performs no I/O and depends on no other layer.

pub mod address;
pub mod bond;
pub(crate) mod by_netns;
pub mod bytes;
pub mod checkpoint;
pub mod claim;
pub mod cni_result;
pub mod conflict_probe;
pub(crate) mod connected;
pub mod exit;
pub mod fidelity;
pub mod identity;
mod index;
mod kind;
pub(crate) mod limits;
pub mod link;
pub mod mac;
pub mod manager;
pub mod name;
pub mod neighbour;
pub mod nexthop;
pub mod nic;
pub mod partial;
pub mod problem;
pub mod raw;
pub(crate) mod recent;
pub mod route;
pub mod rule;
pub mod settings;
pub mod stack;
pub mod state;
pub mod summary;
pub mod sysctl;
pub mod sysfs;
pub(crate) mod text;
pub mod traffic;
mod vlan;
pub mod window;

pub use address::Address;
pub use bytes::Bytes;
pub use checkpoint::{Checkpoint, NodeState, PodInfo, StackLink};
pub use claim::Claim;
pub use conflict_probe::ConflictProbe;
pub use exit::Exit;
pub use identity::{NetnsIdentity, NodeIdentity, PodId};
pub(crate) use index::Indexed;
pub use link::{Hardware, Link, LinkKind, Parent};
pub use mac::Mac;
pub use name::IfName;
pub use neighbour::Neighbour;
pub use nexthop::Nexthop;
pub use nic::{Nic, WindowNic};
pub use partial::Partial;
pub use problem::{Code, Problem, Severity};
pub use route::Route;
pub use rule::Rule;
pub use state::NetState;
pub(crate) use summary::interfaces;
pub use summary::{GatewayAnswer, Interface, PodSummary, State, TargetAnswer, TargetKind};
pub use traffic::{Traffic, TrafficObject};
pub use window::Window;

/// For keys that are stored only if they are true.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_false(value: &bool) -> bool {
    !value
}

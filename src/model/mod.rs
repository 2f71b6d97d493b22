//! Plain data: names, addresses, links, routes, checkpoints. Constructors refuse invalid values.
//!
//! This module performs no I/O and depends on no other layer.

pub mod bytes;
pub mod checkpoint;
pub mod conflict_probe;
pub mod exit;
pub mod fate;
pub mod fidelity;
pub(crate) mod loss;
pub mod manager;
pub mod net;
pub mod next;
pub mod pod;
pub mod problem;
pub(crate) mod raw_object;
pub(crate) mod recent;
pub mod rehearsal;
pub mod stamp;
pub(crate) mod text;
pub mod window;

pub use crate::model::net::address::Address;
pub use crate::model::net::graph::{ChainLink, HostSide};
pub(crate) use crate::model::net::graph::{LinkGraph, Tie, chain, stack};
pub use crate::model::net::link::{Hardware, Link, LinkKind, Parent};
pub use crate::model::net::mac::Mac;
pub use crate::model::net::name::IfName;
pub use crate::model::net::neighbour::Neighbour;
pub use crate::model::net::nexthop::Nexthop;
pub use crate::model::net::nic::{Nic, WindowNic};
pub use crate::model::net::route::Route;
pub use crate::model::net::rule::Rule;
pub(crate) use crate::model::net::state::Indexed;
pub use crate::model::net::state::NetState;
pub use crate::model::net::traffic::{Traffic, TrafficObject};
pub use crate::model::pod::answers::{AnswerRecord, AnswerRecords};
pub use crate::model::pod::claim::Claim;
pub use crate::model::pod::cut_off::{CutOff, CutOffCause, LinkFault};
pub use crate::model::pod::identity::{NetnsIdentity, NodeIdentity, PodId};
pub use crate::model::pod::partial::Partial;
pub(crate) use crate::model::pod::summary::interfaces;
pub use crate::model::pod::summary::{
    GatewayAnswer, Interface, PodSummary, State, TargetAnswer, TargetKind,
};
pub use bytes::Bytes;
pub use checkpoint::{Checkpoint, NodeState, PodInfo, StackLink};
pub use conflict_probe::{AddressProxy, ConflictProbe, ProbeRate};
pub use exit::Exit;
pub use loss::{IpFamily, Loss, LossCause};
pub use problem::{Code, Problem, Severity};
pub use rehearsal::Rehearsal;
pub use stamp::Stamp;
pub use window::Window;

/// For keys that are stored only if they are true.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

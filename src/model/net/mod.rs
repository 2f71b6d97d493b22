//! What a network namespace holds: links, addresses, routes, rules, neighbours, traffic control.

pub mod address;
pub(crate) mod connected;
pub(crate) mod graph;
mod lease;
pub(crate) mod limits;
pub mod link;
pub mod mac;
pub mod name;
pub mod neighbour;
pub mod nexthop;
pub mod nic;
pub mod raw;
pub(crate) mod reach;
pub mod route;
pub mod rule;
pub mod state;
pub mod traffic;
pub mod way;

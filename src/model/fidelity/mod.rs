//! What netfix does with each attribute that the kernel reports. The tables of addresses, neighbours, routes, rules and nexthop
//! objects are in the files of their types, whose rows are read and sent (`form.rs`). `docs/reference/fidelity.md` is made of all
//! tables, and a test compares them with everything that the kernel's dumps contain.

pub(super) mod attribute;
pub(crate) mod form;
mod link;
mod nic;
mod other;
mod tunnel;

pub use crate::model::net::address::ADDRESS;
pub use crate::model::net::neighbour::NEIGHBOUR;
pub use crate::model::net::nexthop::NEXTHOP;
pub use crate::model::net::route::{HOP, METRIC, ROUTE};
pub use crate::model::net::rule::RULE;
pub use attribute::{Attribute, AttributeTable, Treatment, TwinComparison};
pub use link::{BOND, BOND_PORT, BRIDGE_PORT, INET6, IPVLAN, LINK, LINK_INFO, MACVLAN, VLAN};
pub use nic::NIC;
pub use other::{RESILIENT, TRAFFIC};
pub use tunnel::{TUNNEL, VXLAN};

/// Every table.
pub const TABLES: [&AttributeTable; 21] = [
    &LINK,
    &LINK_INFO,
    &MACVLAN,
    &IPVLAN,
    &VLAN,
    &VXLAN,
    &TUNNEL,
    &BOND,
    &BOND_PORT,
    &BRIDGE_PORT,
    &INET6,
    &ADDRESS,
    &ROUTE,
    &HOP,
    &METRIC,
    &NEXTHOP,
    &RESILIENT,
    &RULE,
    &NEIGHBOUR,
    &TRAFFIC,
    &NIC,
];

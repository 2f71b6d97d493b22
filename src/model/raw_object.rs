//! An object as the kernel reports it, with all its attributes: for comparisons that rely on none of netfix's readers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::model::IfName;

/// The attribute `IFLA_LINK` where it is an ifindex of another namespace, not a name.
pub(crate) const LINK_ELSEWHERE: &str = "IFLA_LINK in another namespace";

/// An object of a namespace with the attributes that can be set, by their names in the kernel's headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObject {
    pub what: RawKind,
    /// What distinguishes it from others of its kind, as ip(8) would write it.
    pub name: String,
    /// The interfaces that it is, is on, or leads to.
    pub devs: BTreeSet<IfName>,
    /// The address itself, or the one that packets on a route have as their source.
    pub source: Option<IpAddr>,
    /// What a route is.
    pub route: Option<RawRoute>,
    /// The values as bytes, in the kernel's form.
    pub attributes: BTreeMap<String, Vec<u8>>,
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RawKind {
    Link,
    Address,
    Route,
    Nexthop,
    Neighbour,
}

/// What distinguishes the kernel's own routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRoute {
    /// The prefix without its length; `None` for the default route.
    pub to: Option<IpAddr>,
    /// `RTA_TABLE`.
    pub table: u32,
    /// `RTPROT_*`.
    pub protocol: u8,
    /// `RTN_*`.
    pub kind: u8,
    /// Whether it is for IPv6.
    pub is_ipv6: bool,
}

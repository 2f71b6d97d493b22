//! The part of a checkpoint that `i40e_net_fix` reads: a CNI result of the pod's main interface.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::net::address::in_adding_order;
use crate::model::net::route;
use crate::model::{Address, IfName, LinkKind, Mac, NetState, Route};

/// The parts of a CNI result that `i40e_net_fix` reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniResult {
    /// The interfaces; the main one is first.
    #[serde(default)]
    pub interfaces: Vec<CniInterface>,
    /// The main interface's addresses.
    #[serde(default)]
    pub ips: Vec<CniIp>,
    /// Routes through a gateway.
    #[serde(default)]
    pub routes: Vec<CniRoute>,
    /// Part of the format; always empty.
    #[serde(default)]
    pub dns: CniDns,
}

/// A CNI result's DNS part, which no restore needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniDns {}

/// An interface of a CNI result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniInterface {
    /// Interface name.
    pub name: IfName,
    /// Hardware address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// MTU in bytes (CNI 1.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Path of the namespace that holds it.
    #[serde(default)]
    pub sandbox: String,
}

/// An address of a CNI result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniIp {
    /// `"4"` or `"6"`; absent from CNI 1.0 on.
    #[serde(default)]
    pub version: String,
    /// Index into the interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<usize>,
    /// Address with prefix length.
    pub address: IpNet,
    /// Gateway of the address's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
}

/// A route of a CNI result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniRoute {
    /// Destination.
    pub dst: IpNet,
    /// Gateway; without one, the gateway of an address of the same family applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gw: Option<IpAddr>,
    /// MTU along the path in bytes (CNI 1.1, as everything below).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Maximum segment size to advertise in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// Metric of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Routing table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// Scope (`RT_SCOPE_*`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<u8>,
}

impl CniRoute {
    /// A route with default attributes.
    pub(crate) fn via(dst: IpNet, gw: Option<IpAddr>) -> Self {
        Self {
            dst,
            gw,
            ..Self::default()
        }
    }
}

/// The interface that `i40e_net_fix` is to restore: a macvlan, the only kind that it creates, and one with a default route if
/// there is one; else the interface of the default route, else the first.
pub(crate) fn main_interface(state: &NetState) -> Option<IfName> {
    let is_default = |route: &&Route| destination(route).is_some_and(|dst| dst.prefix_len() == 0);
    let routes = state.routes.iter().filter(is_default);
    let of_default = routes.filter_map(|route| Some(route.gateways().first()?.1));
    let macvlans: Vec<&IfName> = state
        .links_but_loopback()
        .filter(|link| matches!(link.kind, LinkKind::Macvlan(_)))
        .map(|link| &link.name)
        .collect();
    let main = of_default.clone().find(|name| macvlans.contains(name));
    let main = main.or_else(|| macvlans.first().copied());
    let main = main.or_else(|| of_default.clone().next());
    let main = main.or_else(|| state.links_but_loopback().next().map(|link| &link.name));
    main.cloned()
}

/// The destination of a unicast route in the main table.
fn destination(of: &Route) -> Option<IpNet> {
    let is_main = of.table == route::TABLE_MAIN && of.kind == route::KIND_UNICAST;
    is_main.then_some(of.dst)
}

pub(crate) fn cni_result(state: &NetState, ifname: &IfName, netns: &str) -> CniResult {
    let routes = cni_routes(state, ifname);
    let default = |is_ipv4: bool| {
        let mut defaults = routes.iter().filter(|route| route.dst.prefix_len() == 0);
        let route = defaults.find(|route| route.dst.addr().is_ipv4() == is_ipv4)?;
        route.gw
    };
    let (gateway4, gateway6) = (default(true), default(false));
    let addresses = state.addresses_of(ifname);
    let ips = in_adding_order(addresses)
        .filter(|address| !address.comes_by_itself())
        .filter_map(|address| {
            Some(CniIp {
                version: if address.local.is_ipv4() { "4" } else { "6" }.to_owned(),
                interface: Some(0),
                address: IpNet::new(address.local, address.prefix_len).ok()?,
                gateway: if address.local.is_ipv4() {
                    gateway4
                } else {
                    gateway6
                },
            })
        })
        .collect();
    let main = CniInterface {
        name: ifname.clone(),
        mac: state.link(ifname).and_then(|link| link.mac),
        mtu: None,
        sandbox: netns.to_owned(),
    };
    CniResult {
        interfaces: vec![main],
        ips,
        routes,
        dns: CniDns {},
    }
}

/// Routes with a gateway only: `i40e_net_fix` would send any other route through the default gateway. It stops at a route that
/// the kernel refuses, so each gateway must be in a subnet of an address, or link-local.
fn cni_routes(state: &NetState, ifname: &IfName) -> Vec<CniRoute> {
    let subnets: Vec<IpNet> = state
        .addresses_of(ifname)
        .filter_map(Address::subnet)
        .collect();
    let is_reachable = |gateway: &IpAddr| {
        subnets.iter().any(|subnet| subnet.contains(gateway))
            || matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local())
    };
    let through_main = |of: &Route| match of.gateways().as_slice() {
        [(gateway, dev)] if *dev == ifname => Some(*gateway).filter(is_reachable),
        _ => None,
    };
    state
        .routes
        .iter()
        .filter_map(|of| Some((destination(of)?, through_main(of)?)))
        .filter(|(dst, gateway)| dst.addr().is_ipv4() == gateway.is_ipv4())
        .map(|(dst, gateway)| CniRoute::via(dst, Some(gateway)))
        .collect()
}

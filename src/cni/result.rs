//! A CNI result of any version, and the one in a checkpoint of `i40e_net_fix`.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;

use super::spare_mac;
use crate::model::net::link::sysctl::SysctlKey;
use crate::model::pod::cni_result::{CniInterface, CniIp, CniResult, CniRoute};
use crate::model::pod::partial::{Attachment, Made};
use crate::model::{Checkpoint, IfName, Partial};

/// Results before CNI 0.3 have at most one address of each family and name no interface.
#[derive(Deserialize)]
struct Early {
    ip4: Option<EarlyIp>,
    ip6: Option<EarlyIp>,
}

#[derive(Deserialize)]
struct EarlyIp {
    ip: IpNet,
    gateway: Option<IpAddr>,
    #[serde(default)]
    routes: Vec<CniRoute>,
}

/// Reads a result.
pub(super) fn parse(value: &Value) -> Result<CniResult, String> {
    if value.is_null() {
        return Err("it is missing".to_owned());
    }
    let mut result = CniResult::deserialize(value).map_err(|error| error.to_string())?;
    let Early { ip4, ip6 } = Early::deserialize(value).map_err(|error| error.to_string())?;
    for EarlyIp {
        ip,
        gateway,
        routes,
    } in [ip4, ip6].into_iter().flatten()
    {
        let version = if ip.addr().is_ipv4() { "4" } else { "6" }.to_owned();
        result.ips.push(CniIp {
            version,
            interface: None,
            address: ip,
            gateway,
        });
        result.routes.extend(routes);
    }
    Ok(result)
}

/// The addresses of one interface of a result.
pub(super) fn own_addresses<'a>(ifname: &'a IfName, result: &'a CniResult) -> Vec<&'a CniIp> {
    result
        .ips
        .iter()
        .filter(|ip| {
            let interface = ip.interface.and_then(|at| result.interfaces.get(at));
            interface.is_none_or(|interface| interface.name == *ifname)
        })
        .collect()
}

/// The pod's interface of that name; a result also lists those that a plugin created on the host.
pub(super) fn interface<'a>(ifname: &IfName, result: &'a CniResult) -> Option<&'a CniInterface> {
    let named = || {
        result
            .interfaces
            .iter()
            .filter(|interface| interface.name == *ifname)
    };
    named()
        .find(|interface| !interface.sandbox.is_empty())
        .or_else(|| named().next())
}

/// Adds the contents of a result to an attachment.
pub(super) fn fill(attachment: &mut Attachment, result: &CniResult, ips: &[&CniIp]) {
    if let Some(interface) = interface(&attachment.ifname, result) {
        attachment.mac = interface.mac.or(attachment.mac);
        attachment.mtu = attachment.mtu.or(interface.mtu).filter(|mtu| *mtu != 0);
    }
    let gateway_of = |dst: IpNet| {
        ips.iter()
            .filter_map(|ip| ip.gateway)
            .find(|gateway| gateway.is_ipv4() == dst.addr().is_ipv4())
    };
    attachment.routes = result
        .routes
        .iter()
        .map(|route| CniRoute {
            gw: route.gw.or_else(|| gateway_of(route.dst)),
            ..route.clone()
        })
        .collect();
    attachment.addresses = ips.iter().map(|ip| ip.address).collect();
    if attachment
        .addresses
        .iter()
        .any(|address| address.addr().is_ipv6())
    {
        // Plugins enable IPv6 before they add the first address: runtimes may disable it for new interfaces.
        attachment
            .tuning
            .implied
            .ipv6
            .insert(SysctlKey::known("disable_ipv6"), 0);
    }
}

/// One macvlan, whose parent is unknown, with every address and route of the result.
#[must_use]
pub fn of_origin(checkpoint: &Checkpoint) -> Partial {
    let made = Made::Macvlan {
        mode: None,
        bc_queue_len: None,
    };
    let mut attachment = Attachment::bare(checkpoint.ifname.clone(), made);
    let sandbox = Some(&checkpoint.sandbox).filter(|sandbox| !sandbox.is_empty());
    attachment.spare_mac = sandbox.map(|sandbox| spare_mac(sandbox, &checkpoint.ifname));
    let result = &checkpoint.result;
    if interface(&checkpoint.ifname, result).is_none() {
        // In a file with another name for the interface, the first one is meant.
        attachment.mac = result.interfaces.first().and_then(|first| first.mac);
    }
    fill(
        &mut attachment,
        result,
        &result.ips.iter().collect::<Vec<_>>(),
    );
    Partial {
        attachments: vec![attachment],
    }
}

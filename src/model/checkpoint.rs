//! What is written to disk: one checkpoint a pod, and the node's own state.
//!
//! A checkpoint is the origin's format (a CNI result with a little around it) plus one key, `netfix`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Hardware, IfName, LinkKind, Mac, NetState, NetnsIdentity, NodeIdentity, PodId, Route};
use super::{link::Vlan, route};

/// The schema that this program writes; older ones are read for ever, newer ones are refused.
pub const SCHEMA: u32 = 1;

/// One pod: everything that is needed to put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// A path that led to the namespace when the checkpoint was written.
    pub netns: String,
    /// The pod's name; empty where nobody knows it.
    #[serde(default)]
    pub podname: String,
    /// The sandbox id; empty for a namespace without a sandbox.
    #[serde(default)]
    pub sandbox: String,
    /// The pod's main interface.
    pub ifname: IfName,
    /// What the origin restores from: the main interface only.
    pub result: CniResult,
    /// Everything else; absent in a file that netfix did not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netfix: Option<Extension>,
}

/// The parts of a CNI result that the origin reads.
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
    /// Kept for the format's sake; always empty.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniRoute {
    /// Destination.
    pub dst: IpNet,
    /// Gateway; without one the gateway of the same family's address counts.
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
    /// A route by a gateway with nothing special about it.
    #[must_use]
    pub fn via(dst: IpNet, gw: Option<IpAddr>) -> Self {
        Self { dst, gw, mtu: None, advmss: None, priority: None, table: None, scope: None }
    }
}

/// What only netfix writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Version of this format.
    pub schema: u32,
    /// When the state was read (RFC 3339, UTC).
    pub created: String,
    /// Where.
    pub node: NodeIdentity,
    /// In which namespace.
    pub identity: NetnsIdentity,
    /// Whose.
    pub pod: PodInfo,
    /// The host's links under the pod's, top first.
    pub stack: Vec<StackLink>,
    /// The namespace's whole state.
    pub state: NetState,
}

impl Extension {
    /// Whether it was written about this very namespace, on this machine and in this boot, beyond doubt: by what the
    /// kernel says, or because a runtime says that the same sandbox has the same inode.
    #[must_use]
    pub fn is_about(&self, node: &NodeIdentity, identity: &NetnsIdentity, pod: &PodInfo) -> bool {
        let same_sandbox = || self.identity.may_be(identity) && self.pod.is_surely(pod);
        self.node.is_same(node) && (self.identity.is_same(identity) || same_sandbox())
    }
}

/// Who lives in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodInfo {
    /// Name of the checkpoint file.
    pub id: PodId,
    /// Kubernetes namespace, where a runtime told it.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Pod or container name.
    #[serde(default)]
    pub name: Option<String>,
    /// Pod uid, where a runtime told it.
    #[serde(default)]
    pub uid: Option<String>,
    /// Whole sandbox id.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// Attempt number of the sandbox.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Who said so: a runtime (`cri`, `docker`, `podman`), or else `cgroup`, `mount` or `proc`.
    pub source: String,
}

impl PodInfo {
    /// Whether they cannot be the same pod: sandbox or uid are known of both and differ. A name says nothing, a pod
    /// that is made again has the same.
    #[must_use]
    pub fn contradicts(&self, other: &Self) -> bool {
        differ(self.sandbox.as_ref(), other.sandbox.as_ref()) || differ(self.uid.as_ref(), other.uid.as_ref())
    }

    /// Whether they are the same pod beyond doubt: the sandbox, which is never made twice, is known of both.
    #[must_use]
    pub fn is_surely(&self, other: &Self) -> bool {
        self.sandbox.is_some() && self.sandbox == other.sandbox && !self.contradicts(other)
    }

    /// Takes over what was once known of the same pod. Who knows the sandbox or the Kubernetes namespace knows the
    /// name, and the file is named after the sandbox; else the pod keeps the name that it had, and who said so. Nothing
    /// is taken over from another pod that was in the same namespace.
    pub fn learn(&mut self, then: Self) {
        if self.contradicts(&then) {
            return;
        }
        let Self { id, namespace, name, uid, sandbox, attempt, source } = self;
        let is_told = sandbox.is_some() || namespace.is_some();
        *name = if is_told { name.take().or(then.name) } else { then.name.or(name.take()) };
        if sandbox.is_none() || then.sandbox == *sandbox {
            *id = then.id;
        }
        if sandbox.is_none() && then.sandbox.is_some() {
            *source = then.source;
        }
        *namespace = namespace.take().or(then.namespace);
        *uid = uid.take().or(then.uid);
        *sandbox = sandbox.take().or(then.sandbox);
        *attempt = attempt.take().or(then.attempt);
    }

    /// What people call it: `NAMESPACE/NAME`, or what is known of it, else the id. Safe to print.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}").escape_debug().to_string(),
            (None, Some(name)) => name.escape_debug().to_string(),
            _ => self.id.to_string(),
        }
    }
}

fn differ(a: Option<&String>, b: Option<&String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// One link of the host that a pod's link stands on. Never named by its index, which a reload changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackLink {
    /// Its name.
    pub name: IfName,
    /// Its kind, as `ip link` names it.
    pub kind: String,
    /// Hardware address, where it has one.
    pub mac: Option<Mac>,
    /// Maximum transmission unit in bytes.
    pub mtu: u32,
    /// For a VLAN: id, protocol, flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<Vlan>,
    /// For a device: permanent MAC, bus address, driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// What it stands on: a VLAN's link, a bond's ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<IfName>,
}

/// The host's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Version of this format.
    pub schema: u32,
    /// When the state was read (RFC 3339, UTC).
    pub created: String,
    /// Where.
    pub node: NodeIdentity,
    /// The namespace's whole state.
    pub state: NetState,
    /// Namespaces that had nothing but a loopback device, and so have no checkpoint.
    #[serde(default)]
    pub empty: Vec<NetnsIdentity>,
    /// When a snapshot last found each pod's checkpoint true, or wrote it (RFC 3339, UTC).
    #[serde(default)]
    pub seen: BTreeMap<PodId, String>,
    /// When the last snapshot of all pods was that was not taken in a bad moment (RFC 3339, UTC).
    #[serde(default)]
    pub complete: Option<String>,
}

impl NodeState {
    /// When a snapshot last found a pod's checkpoint true; `None` when none is known that did.
    #[must_use]
    pub fn seen(&self, pod: &PodId) -> Option<&str> {
        self.seen.get(pod).map(String::as_str)
    }

    /// Whether both say the same about the host, whenever that was.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let has_all = |of: &Self, in_other: &Self| {
            of.empty
                .iter()
                .all(|netns| in_other.empty.iter().any(|known| known == netns || known.is_same(netns)))
        };
        self.node == other.node
            && self.state.clone().timeless() == other.state.clone().timeless()
            && has_all(self, other)
            && has_all(other, self)
    }
}

impl Checkpoint {
    /// A checkpoint in which the origin's keys say the same as `extension`, as far as they can.
    ///
    /// `None` when the state has no interface that could be called the main one.
    #[must_use]
    pub fn new(netns: String, extension: Extension) -> Option<Self> {
        let ifname = main_interface(&extension.state)?;
        let result = cni_result(&extension.state, &ifname, &netns);
        Some(Self {
            netns,
            podname: extension.pod.name.clone().unwrap_or_default(),
            sandbox: extension.pod.sandbox.clone().unwrap_or_default(),
            ifname,
            result,
            netfix: Some(extension),
        })
    }

    /// Whether both are netfix's own and say the same, whenever that was: times differ, and how long addresses are still
    /// lent.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let timeless = |checkpoint: &Self| {
            let mut checkpoint = checkpoint.clone();
            let extension = checkpoint.netfix.as_mut()?;
            extension.created.clear();
            extension.state = std::mem::take(&mut extension.state).timeless();
            Some(checkpoint)
        };
        timeless(self).is_some_and(|mine| timeless(other) == Some(mine))
    }

    /// The better one of several checkpoints about one namespace has the higher rank: netfix's own knows more than the
    /// origin's, a younger one is truer, and one that knows the sandbox says more.
    #[must_use]
    pub fn rank(&self) -> impl Ord + use<> {
        let written = self.netfix.as_ref().map(|e| (e.created.clone(), e.pod.sandbox.is_some()));
        (written.is_some(), written)
    }
}

/// The interface that carries the default route, else the first that netfix could make, else the first.
fn main_interface(state: &NetState) -> Option<IfName> {
    let links = || state.links.iter().filter(|link| link.kind != LinkKind::Loopback);
    let is_default = |dst: &IpNet| dst.prefix_len() == 0;
    let default = state
        .routes
        .iter()
        .filter(|route| destination(route).is_some_and(|dst| is_default(&dst)))
        .find_map(|route| route.gateways().first().map(|(_, dev)| (*dev).clone()));
    default
        .or_else(|| links().find(|link| matches!(link.kind, LinkKind::Macvlan(_))).map(|l| l.name.clone()))
        .or_else(|| links().next().map(|link| link.name.clone()))
}

/// The destination of a unicast route in the main table.
fn destination(of: &Route) -> Option<IpNet> {
    match of {
        Route::V4(r) if r.table == route::TABLE_MAIN && r.kind == route::KIND_UNICAST => Some(r.dst.into()),
        Route::V6(r) if r.table == route::TABLE_MAIN && r.kind == route::KIND_UNICAST => Some(r.dst.into()),
        _ => None,
    }
}

fn cni_result(state: &NetState, ifname: &IfName, netns: &str) -> CniResult {
    let routes = cni_routes(state, ifname);
    let gateway = |ip: IpAddr| {
        let same_family = |route: &&CniRoute| route.dst.addr().is_ipv4() == ip.is_ipv4();
        let default = routes.iter().filter(same_family).find(|route| route.dst.prefix_len() == 0);
        default.and_then(|route| route.gw)
    };
    let ips = state
        .addresses_of(ifname)
        .filter(|address| !address.comes_by_itself())
        .filter_map(|address| {
            Some(CniIp {
                version: if address.local.is_ipv4() { "4" } else { "6" }.to_owned(),
                interface: Some(0),
                address: IpNet::new(address.local, address.prefix_len).ok()?,
                gateway: gateway(address.local),
            })
        })
        .collect();
    let main = CniInterface {
        name: ifname.clone(),
        mac: state.link(ifname).and_then(|link| link.mac),
        mtu: None,
        sandbox: netns.to_owned(),
    };
    CniResult { interfaces: vec![main], ips, routes, dns: CniDns {} }
}

/// Routes with a gateway only: the origin would send any other one through the default gateway.
fn cni_routes(state: &NetState, ifname: &IfName) -> Vec<CniRoute> {
    let through_main = |of: &Route| match of.gateways().as_slice() {
        [(gateway, dev)] if *dev == ifname => Some(*gateway),
        _ => None,
    };
    state
        .routes
        .iter()
        .filter_map(|of| Some(CniRoute::via(destination(of)?, Some(through_main(of)?))))
        .collect()
}

//! Summaries of pods for answers and window records.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Bytes, IfName, Indexed, Mac, NetState, Parent, PodInfo, Route, is_false};

/// The result of a command for one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A checkpoint was written.
    Saved,
    /// The checkpoint on disk is up to date.
    Unchanged,
    /// The pod has lost something; its good checkpoint was kept.
    Degraded,
    /// It is younger than the last snapshot, and has interfaces.
    New,
    /// It reaches nothing, and no good checkpoint shows that it ever did more.
    CutOff,
    /// It has no checkpoint, and may have lost something.
    NoCheckpoint,
    /// A loopback device only: nothing to save.
    Empty,
    /// A checkpoint is stored.
    Stored,
    /// A checkpoint of another program was imported.
    Imported,
    /// netfix's own checkpoint is better and was kept.
    Kept,
    /// The pod no longer runs: nothing to do.
    Gone,
    /// The checkpoint was last verified too long ago.
    Stale,
    /// The kernel has everything that the checkpoint has.
    InSync,
    /// Something is missing or differs.
    Drifted,
    /// All missing objects were restored.
    Restored,
    /// Some missing objects were restored, some not.
    Partial,
    /// The gateways answer.
    Reachable,
    /// No gateway has ever answered.
    NeverAnswered,
    /// A gateway does not answer.
    Unreachable,
    /// A gateway could not be probed.
    Unknown,
    /// There is no gateway.
    NoGateway,
    /// netfix could not process the pod.
    Failed,
}

impl State {
    /// Whether this is a success.
    pub(crate) fn is_good(self) -> bool {
        !matches!(
            self,
            Self::Degraded
                | Self::NoCheckpoint
                | Self::Stale
                | Self::Drifted
                | Self::Partial
                | Self::Unreachable
                | Self::Unknown
                | Self::Failed
        )
    }
}

/// One interface of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: IfName,
    /// Its kind.
    pub kind: String,
    /// Its hardware address.
    pub mac: Option<Mac>,
    /// Its parent.
    pub parent: Option<IfName>,
    /// MTU in bytes; null where the checkpoint has none.
    pub mtu: Option<u32>,
    /// Its addresses with prefix length, without those that the kernel or the network adds.
    pub addresses: Vec<IpNet>,
    /// Gateways reached through it.
    pub gateways: Vec<IpAddr>,
}

/// The answer of one gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAnswer {
    /// The gateway.
    pub address: IpAddr,
    /// The interface of the pod or the host.
    pub dev: IfName,
    /// Whether it answered; null when it could not be probed.
    pub reachable: Option<bool>,
    /// It did not answer, and never has: nothing is known to be lost.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never_answered: bool,
    /// Round trip in microseconds; null when it did not answer.
    pub rtt_us: Option<u64>,
    /// The hardware address that answered.
    pub lladdr: Option<Mac>,
}

/// The protocol of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// ICMP echo, of either family.
    Ping,
    /// A TCP connection.
    Tcp,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ping => "ping",
            Self::Tcp => "tcp",
        })
    }
}

/// Whether a target answered a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetAnswer {
    /// The protocol.
    pub kind: TargetKind,
    /// The address, or host and port, as the user gave it.
    pub target: String,
    /// Whether it answered.
    pub reachable: bool,
    /// Round trip in microseconds; null when it did not answer.
    pub rtt_us: Option<u64>,
}

/// A pod as a record or an observation describes it, in few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSummary {
    /// Its names.
    pub info: PodInfo,
    /// A path that leads to its network namespace; `None` where a damaged file hides it.
    pub netns: Option<Bytes>,
    /// When its checkpoint was written (RFC 3339), where it has one.
    pub created: Option<String>,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
}

impl PodSummary {
    /// A pod of which only the names and the namespace's path are known.
    pub(crate) fn bare(info: &PodInfo, netns: Option<&Path>) -> Self {
        Self {
            info: info.clone(),
            netns: netns.map(Bytes::from),
            created: None,
            interfaces: Vec::new(),
        }
    }
}

/// The interfaces of a state, without the loopback device.
pub(crate) fn interfaces(state: &NetState) -> Vec<Interface> {
    let index = Indexed::new(state);
    let mut known = HashSet::new();
    let mut gateways: HashMap<&IfName, Vec<IpAddr>> = HashMap::new();
    for (gateway, dev) in state.routes.iter().flat_map(Route::gateways) {
        if known.insert((gateway, dev)) {
            gateways.entry(dev).or_default().push(gateway);
        }
    }
    state
        .links_but_loopback()
        .map(|link| Interface {
            name: link.name.clone(),
            kind: link.kind.name().to_owned(),
            mac: link.mac,
            parent: link.parent.as_ref().and_then(Parent::name).cloned(),
            mtu: Some(link.mtu),
            addresses: index
                .addresses_of(&link.name)
                .iter()
                .filter(|address| !address.comes_by_itself())
                .filter_map(|address| IpNet::new(address.local, address.prefix_len).ok())
                .collect(),
            gateways: gateways.remove(&link.name).unwrap_or_default(),
        })
        .collect()
}

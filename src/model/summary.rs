//! Pods in few words, as answers and records tell of them.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{IfName, Link, LinkKind, Mac, NetState, Parent, Route};

/// What a command found or did, for one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A checkpoint was written.
    Saved,
    /// The checkpoint on disk already says the same.
    Unchanged,
    /// The pod has lost something; its good checkpoint was kept.
    Degraded,
    /// It may have lost something, and no checkpoint says what.
    NoCheckpoint,
    /// Nothing but a loopback device: nothing to save.
    Empty,
    /// A checkpoint is stored.
    Stored,
    /// A checkpoint of another program was taken over.
    Imported,
    /// netfix's own checkpoint is better and was kept.
    Kept,
    /// The pod lives no longer: there is nothing to do for it.
    Gone,
    /// The last snapshot that found it true is too long ago.
    Stale,
    /// The kernel has everything that the checkpoint has.
    InSync,
    /// Something is missing or differs.
    Drifted,
    /// Was missing something and has it again.
    Restored,
    /// Something was put back, something is still missing.
    Partial,
    /// The gateways answer.
    Reachable,
    /// A gateway does not answer.
    Unreachable,
    /// A gateway could not be asked.
    Unknown,
    /// There is no gateway to ask.
    NoGateway,
    /// It could not be handled at all.
    Failed,
}

impl State {
    /// Whether this is what the user hoped for.
    #[must_use]
    pub fn is_good(self) -> bool {
        use State::{
            Empty, Gone, Imported, InSync, Kept, NoGateway, Reachable, Restored, Saved, Stored, Unchanged,
        };
        matches!(
            self,
            Saved
                | Unchanged
                | Empty
                | Stored
                | Imported
                | Kept
                | Gone
                | InSync
                | Restored
                | Reachable
                | NoGateway
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.pad(word.as_str().unwrap_or_default())
    }
}

/// One interface of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceView {
    /// Its name.
    pub name: IfName,
    /// Its kind.
    pub kind: String,
    /// Its hardware address.
    pub mac: Option<Mac>,
    /// The host's link that it stands on.
    pub parent: Option<IfName>,
    /// MTU in bytes; null where the checkpoint does not say.
    pub mtu: Option<u32>,
    /// Its addresses with prefix length, without those that the kernel makes by itself.
    pub addresses: Vec<String>,
    /// Gateways reached through it.
    pub gateways: Vec<IpAddr>,
}

/// The answer of one gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayView {
    /// The gateway.
    pub address: IpAddr,
    /// The pod's interface.
    pub dev: IfName,
    /// Whether it answered; null when it could not be asked at all.
    pub reachable: Option<bool>,
    /// Round trip in microseconds; null when it did not answer.
    pub rtt_us: Option<u64>,
    /// The hardware address that answered.
    pub lladdr: Option<Mac>,
}

/// The interfaces of a state, without the loopback device.
#[must_use]
pub fn interfaces(state: &NetState) -> Vec<InterfaceView> {
    let links = state.links.iter().filter(|link| link.kind != LinkKind::Loopback);
    let view = |link: &Link| {
        let addresses = state.addresses_of(&link.name).filter(|address| !address.comes_by_itself());
        let mut gateways: Vec<IpAddr> = Vec::new();
        for (gateway, dev) in state.routes.iter().flat_map(Route::gateways) {
            if *dev == link.name && !gateways.contains(&gateway) {
                gateways.push(gateway);
            }
        }
        InterfaceView {
            name: link.name.clone(),
            kind: link.kind.name().to_owned(),
            mac: link.mac,
            parent: match &link.parent {
                Some(Parent::Own(name) | Parent::Host(name)) => Some(name.clone()),
                Some(Parent::Elsewhere) | None => None,
            },
            mtu: Some(link.mtu),
            addresses: addresses.map(|a| format!("{}/{}", a.local, a.prefix_len)).collect(),
            gateways,
        }
    };
    links.map(view).collect()
}

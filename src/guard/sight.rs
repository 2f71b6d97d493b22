//! What one look found, for the decision.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{IfName, Loss, LossCause, PodId};

/// What one look found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sight {
    /// When it was taken (`CLOCK_BOOTTIME`, milliseconds).
    pub now: u64,
    pub boot: Option<String>,
    /// When the snapshot was taken that it compares with.
    pub snapshot: Option<String>,
    /// The open window.
    pub window: Option<WindowSight>,
    /// Until when a person keeps the guard still.
    pub hold: Option<HoldSight>,
    /// Whether a record could not be read or a namespace not be entered: pods are missing here.
    pub is_unread: bool,
    /// The host's links under pods, by their recorded names.
    pub links: LinkSights,
    pub pods: Vec<PodSight>,
    /// The names of running pods without a record that can be read.
    pub damaged: Vec<String>,
    /// What the host has lost, where it is about the whole node.
    pub host: Option<Loss>,
    /// The devices under what the host has lost.
    pub host_on: BTreeSet<IfName>,
    /// The selectors, where no running pod matches them.
    pub no_match: Option<String>,
}

/// A person keeps the guard still.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HoldSight {
    /// Until when (RFC 3339, UTC).
    pub until: String,
    /// For so many milliseconds.
    pub left: u64,
}

/// An open window.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WindowSight {
    /// A guard that is gone left it.
    Unfinished,
    /// Of this command, which is at work, or has paused kubelet.
    Of(String),
}

/// A recorded link of the host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct LinkSight {
    /// Its ifindex in the snapshot.
    pub recorded: u32,
    /// Its ifindex; `None` where it is gone.
    pub now: Option<u32>,
    /// Whether only its driver makes it.
    pub is_device: bool,
    /// Whether no pod is on it.
    pub is_host_only: bool,
    /// Whether a restore makes it although it is a device: a virtual function.
    pub comes: bool,
    /// The links below it: its parent, or its ports.
    pub below: Vec<IfName>,
    /// Whether it lives on its ports: one of them is enough.
    pub has_ports: bool,
    /// The bond or bridge that it is a port of.
    pub master: Option<IfName>,
    /// Whether it is a port of that now.
    pub is_attached: bool,
}

/// A running pod that has a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct PodSight {
    pub id: PodId,
    /// Its name, for people.
    #[serde(default)]
    pub title: String,
    /// The links of the host that its links are on.
    pub on: Vec<IfName>,
    /// Whether it has lost its network or a part of it.
    #[serde(default)]
    pub is_lost: bool,
    /// What it has lost first.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// Whether it could not be observed.
    #[serde(default)]
    pub is_unknown: bool,
    /// Whether its runtime has it no more, or is tearing it down.
    #[serde(default)]
    pub is_torn: bool,
    /// Whether a bridge under it has lost its uplink.
    #[serde(default)]
    pub has_no_uplink: bool,
    /// Devices of the host that were inside it.
    #[serde(default)]
    pub inside: InsideSight,
}

/// The devices of the host inside a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InsideSight {
    /// There are none, or the pod has them.
    #[default]
    None,
    /// It has lost one, and the host does not have it.
    Absent,
    /// It has lost one, which its driver gave to the host.
    Returned,
}

impl PodSight {
    /// Whether it has all of its own, and the host no longer carries its packets.
    pub(crate) fn is_cut_by_host(&self) -> bool {
        let loss = self.loss.as_ref();
        loss.is_some_and(|loss| loss.what.may_be_of_host())
    }

    /// Whether that is at the host's end of its pair, which no NIC takes along.
    pub(crate) fn is_cut_at_end(&self) -> bool {
        let loss = self.loss.as_ref();
        loss.is_some_and(|loss| {
            matches!(
                loss.what,
                LossCause::HostLinkDown
                    | LossCause::NoPort
                    | LossCause::NotInVlan
                    | LossCause::PortBlocked
                    | LossCause::Isolated
            )
        })
    }
}

impl Sight {
    /// A link of the host and all links below it.
    pub(crate) fn all_below(&self, name: &IfName) -> BTreeSet<IfName> {
        all_below(&self.links, name)
    }
}

/// The recorded links of the host.
pub(super) type LinkSights = BTreeMap<IfName, LinkSight>;

/// The names of the links below a link.
pub(super) fn below<'a>(links: &'a LinkSights, name: &IfName) -> &'a [IfName] {
    links.get(name).map_or(&[], |link| &link.below)
}

/// A link and all links below it.
pub(super) fn all_below(links: &LinkSights, name: &IfName) -> BTreeSet<IfName> {
    let below = below(links, name).iter();
    let below = below.flat_map(|one| all_below(links, one));
    below.chain([name.clone()]).collect()
}

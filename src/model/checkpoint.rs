//! The stored files: one checkpoint per pod, and the node's state.
//!
//! A checkpoint has the format of `i40e_net_fix` (a CNI result and a few keys) plus the key `netfix`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::escape;
use super::{
    AddressProxy, AnswerRecords, Bytes, ChainLink, Hardware, IfName, Mac, NetState, NetnsIdentity,
    NodeIdentity, PodId,
};
use crate::model::is_false;
use crate::model::net::link::Vlan;
use crate::model::net::link::is_switch;
use crate::model::pod::cni_result::{CniResult, cni_result, main_interface};
use crate::model::pod::empty::EmptyNetns;

/// The newest schema; netfix reads every older one and refuses newer ones. Schema 1 has names as they are, schema 2 escaped.
pub const SCHEMA: u32 = 2;

/// The oldest schema in which content means the same: an older netfix reads what has nothing to escape.
pub(crate) fn schema_of(content: &impl Serialize) -> u32 {
    let is_old = serde_json::to_string(content).is_ok_and(|text| !text.contains("\\\\"));
    if is_old { 1 } else { SCHEMA }
}

/// One pod, with all that a restore needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// A path that led to the namespace when the checkpoint was written.
    pub netns: Bytes,
    /// The pod's name; empty when unknown.
    #[serde(default)]
    pub podname: Bytes,
    /// The sandbox id; empty for a namespace without a sandbox.
    #[serde(default)]
    pub sandbox: String,
    /// The pod's main interface.
    pub ifname: IfName,
    /// What `i40e_net_fix` restores: the main interface only.
    pub result: CniResult,
    /// The rest; absent in a file of another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netfix: Option<Extension>,
}

/// netfix's part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Version of this format.
    pub schema: u32,
    /// When the state was read (RFC 3339, UTC).
    pub created: String,
    /// The same in milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_boottime: Option<u64>,
    /// The machine and boot.
    pub node: NodeIdentity,
    /// The namespace.
    pub identity: NetnsIdentity,
    /// The pod.
    pub pod: PodInfo,
    /// The host's links under the pod's, top first.
    pub stack: Vec<StackLink>,
    /// Those that carried its packets, each alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
    /// Whether the pod was cut off, and nobody said that this is right: then the record is not known to be a good one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut_off: bool,
    /// The namespace's whole state.
    pub state: NetState,
}

impl Extension {
    /// Whether it surely describes this namespace, of this machine and boot: by the namespace's identity, or because a
    /// runtime reports the same sandbox with the same inode.
    pub(crate) fn is_about(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        pod: &PodInfo,
    ) -> bool {
        let same_sandbox = self.identity.may_be(identity) && self.pod.is_surely(pod);
        self.node.is_same(node) && (self.identity.is_same(identity) || same_sandbox)
    }
}

/// The pod of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodInfo {
    /// Name of the checkpoint file.
    pub id: PodId,
    /// Kubernetes namespace, where a runtime reported it.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Name of the pod or container, or of the namespace's mount.
    #[serde(default)]
    pub name: Option<Bytes>,
    /// Pod uid, where a runtime reported it.
    #[serde(default)]
    pub uid: Option<String>,
    /// Full sandbox id.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// Attempt number of the sandbox.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Where this comes from: a runtime (`cri`, `docker`, `podman`), `cgroup`, `mount` or `proc`.
    pub source: String,
}

impl PodInfo {
    /// A pod of which only the id is known.
    pub(crate) fn nameless(id: &PodId) -> Self {
        Self {
            id: id.clone(),
            namespace: None,
            name: None,
            uid: None,
            sandbox: None,
            attempt: None,
            source: String::new(),
        }
    }

    /// Whether they cannot be the same pod: sandbox or uid are known of both and differ. Names do not count: a rebuilt pod
    /// has the same.
    pub(crate) fn contradicts(&self, other: &Self) -> bool {
        differ(self.sandbox.as_ref(), other.sandbox.as_ref())
            || differ(self.uid.as_ref(), other.uid.as_ref())
    }

    /// Whether they are surely the same pod: the sandbox, which is unique, is known of both.
    pub(crate) fn is_surely(&self, other: &Self) -> bool {
        self.sandbox.is_some() && self.sandbox == other.sandbox && !self.contradicts(other)
    }

    /// Fills in what was once known of the same pod; ignores another pod that was in the same namespace. A source that knows
    /// the sandbox or the Kubernetes namespace also knows the name, and the file is named after the sandbox; otherwise the
    /// pod keeps its earlier name and source.
    pub(crate) fn learn(&mut self, then: Self) {
        if self.contradicts(&then) {
            return;
        }
        let Self {
            id,
            namespace,
            name,
            uid,
            sandbox,
            attempt,
            source,
        } = self;
        let is_reported = sandbox.is_some() || namespace.is_some();
        *name = if is_reported {
            name.take().or(then.name)
        } else {
            then.name.or(name.take())
        };
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

    /// `NAMESPACE/NAME`, or the name, or else the id. Safe to print.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{}/{name}", escape(namespace)),
            (None, Some(name)) => name.to_string(),
            _ => self.id.to_string(),
        }
    }
}

fn differ(a: Option<&String>, b: Option<&String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// One link of the host below a pod's link, without its index, which a driver reload changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackLink {
    /// Its name.
    pub name: IfName,
    /// Its kind, as in `ip link`.
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
    /// The links below it: a VLAN's parent, a bond's ports, a bridge's ports that lead to other machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<IfName>,
}

impl StackLink {
    /// Whether packets from one port of it go to the others.
    pub(crate) fn is_switch(&self) -> bool {
        is_switch(&self.kind)
    }
}

/// The host's network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Version of this format.
    pub schema: u32,
    /// When the state was read (RFC 3339, UTC).
    pub created: String,
    /// The same in milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_boottime: Option<u64>,
    /// The machine and boot.
    pub node: NodeIdentity,
    /// The namespace, with process 1 as netfix saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<NetnsIdentity>,
    /// The namespace's whole state.
    pub state: NetState,
    /// Namespaces with a loopback device only, which have no checkpoint.
    #[serde(default)]
    pub empty: Vec<EmptyNetns>,
    /// When a snapshot last verified or wrote each pod's checkpoint (RFC 3339, UTC).
    #[serde(default)]
    pub seen: BTreeMap<PodId, String>,
    /// The same in milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen_boottime: BTreeMap<PodId, u64>,
    /// When the last snapshot of all pods found none degraded (RFC 3339, UTC).
    #[serde(default)]
    pub complete: Option<String>,
    /// The same in milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_boottime: Option<u64>,
    /// What of large checkpoints concerns other pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub large: BTreeMap<PodId, Large>,
    /// What answered for addresses of pods while they had them, at the last window's snapshot and in each `verify` since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<AddressProxy>,
    /// What has answered the pods and the host.
    #[serde(default, skip_serializing_if = "AnswerRecords::is_empty")]
    pub answers: AnswerRecords,
    /// The links that had these ifindexes before, as far as something of the host still names one of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former_indexes: BTreeMap<u32, IfName>,
}

/// The part of a large checkpoint that concerns other pods: they need not wait until the whole file is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Large {
    /// The checksum in the file that it is a part of, in hexadecimal.
    pub sha256: String,
    /// The checkpoint without its CNI result, and with the links and addresses of its state only.
    pub checkpoint: Checkpoint,
}

impl NodeState {
    /// What earlier snapshots know of a namespace that had no interface.
    pub(crate) fn empty(&self, identity: &NetnsIdentity) -> Option<&EmptyNetns> {
        let mut known = self.empty.iter();
        known.find(|known| known.identity.is_same(identity))
    }

    /// Whether both are equal apart from times.
    pub(crate) fn is_equal_but_for_times(&self, other: &Self) -> bool {
        let has_all = |of: &Self, in_other: &Self| {
            of.empty.iter().all(|netns| {
                in_other.empty.iter().any(|known| {
                    (known.identity == netns.identity || known.identity.is_same(&netns.identity))
                        && known.accepted == netns.accepted
                })
            })
        };
        self.node == other.node
            && self.state.clone().timeless() == other.state.clone().timeless()
            && self.former_indexes == other.former_indexes
            && has_all(self, other)
            && has_all(other, self)
    }
}

impl Checkpoint {
    /// A checkpoint whose keys for `i40e_net_fix` come from `extension`.
    ///
    /// `None` when the state has no interface but the loopback device.
    #[must_use]
    pub fn new(netns: Bytes, extension: Extension) -> Option<Self> {
        let ifname = main_interface(&extension.state)?;
        let result = cni_result(&extension.state, &ifname, &netns.escaped());
        Some(Self {
            netns,
            podname: extension.pod.name.clone().unwrap_or_default(),
            sandbox: extension.pod.sandbox.clone().unwrap_or_default(),
            ifname,
            result,
            netfix: Some(extension),
        })
    }

    /// The same in the oldest schema that can hold it.
    pub(crate) fn in_oldest_schema(mut self) -> Self {
        let schema = schema_of(&self);
        if let Some(extension) = &mut self.netfix {
            extension.schema = schema;
        }
        self
    }

    /// The part that concerns other pods, of a checkpoint of netfix.
    pub(crate) fn part_for_others(&self) -> Self {
        let mut part = Self {
            result: CniResult::default(),
            ..self.clone()
        };
        if let Some(own) = &mut part.netfix {
            let NetState {
                links, addresses, ..
            } = std::mem::take(&mut own.state);
            own.state = NetState {
                links,
                addresses,
                ..NetState::default()
            };
        }
        part
    }

    /// Whether both are netfix's and equal apart from times and the remaining lifetimes of addresses.
    pub(crate) fn is_equal_but_for_times(&self, other: &Self) -> bool {
        let timeless = |checkpoint: &Self| {
            let mut checkpoint = checkpoint.clone();
            let extension = checkpoint.netfix.as_mut()?;
            extension.created.clear();
            extension.created_boottime = None;
            extension.state = std::mem::take(&mut extension.state).timeless();
            Some(checkpoint)
        };
        timeless(self).is_some_and(|mine| timeless(other) == Some(mine))
    }

    /// The pod that it is about; `id` is the name of its file.
    #[must_use]
    pub fn pod(&self, id: &PodId) -> PodInfo {
        let name = Some(&self.podname).filter(|name| !name.is_empty());
        let info = match &self.netfix {
            Some(extension) => extension.pod.clone(),
            None => PodInfo {
                name: name.cloned(),
                sandbox: Some(self.sandbox.clone()).filter(|text| !text.is_empty()),
                source: "origin".to_owned(),
                ..PodInfo::nameless(id)
            },
        };
        PodInfo {
            id: id.clone(),
            ..info
        }
    }
}

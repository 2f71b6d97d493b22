//! What a plan is made from besides the stored state: the observation of a namespace, and the host's links as parents.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;

use crate::model::net::link::nic::NicState;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::problem::KeptIndex;
use crate::model::{Hardware, IfName, Indexed, Link, Mac, NetState, Parent};

/// The observation of one namespace.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Its state.
    pub state: &'a NetState,
    /// The initial settings of a new link in this namespace, where they were read.
    pub new_link: Option<&'a Sysctls>,
    /// Seconds since the checkpoint was written, by which lifetimes are shorter.
    pub age: u32,
    /// What becomes of what daemons own and the namespace lacks.
    pub daemons: DaemonState,
    /// How settings of NICs are compared.
    pub nic: NicRules,
    /// Links that this run made or moved here.
    pub made: &'a [IfName],
    /// The recorded ifindexes that devices of the host do not get back, and why.
    pub kept_indexes: Option<&'a BTreeMap<u32, KeptIndex>>,
}

/// What becomes of the ifindex of a NIC that its driver has made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum IndexMode {
    /// Give the NIC its former ifindex back, where the kernel can
    #[default]
    Restore,
    /// Leave it, and report it
    Keep,
}

/// How settings of NICs are compared with those of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicRules {
    /// What becomes of a difference.
    pub mode: NicMode,
    /// Whether irqbalance runs, which decides about the processors of interrupts.
    pub irqs_are_balanced: bool,
    /// Whether lldpad runs, which configures data center bridging.
    pub dcb_is_managed: bool,
}

/// What becomes of the settings of a NIC that its driver has made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum NicMode {
    /// Set them as they were
    #[default]
    Restore,
    /// Report what differs, and set nothing
    Report,
    /// Do not compare them
    Ignore,
}

/// What becomes of the missing objects of daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DaemonState {
    /// They stay away, with a note: their daemon adds them again, or has withdrawn them.
    #[default]
    Leave,
    /// No program in the namespace could add what has a daemon's protocol: that is restored. Service addresses on the loopback
    /// device stay away, as with `Leave`.
    Absent,
    /// They are restored: the record is that of the open window, or a person asks for it.
    Restore,
}

/// The host's links after its plan, as parents for the pods' links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLinks {
    /// Links that exist, or will after the host's plan, by their name in the checkpoint.
    pub present: BTreeSet<IfName>,
    /// Devices that have another name now.
    pub renamed: BTreeMap<IfName, IfName>,
    /// The MTU that each link in `present` has, or will have, in bytes.
    pub mtus: BTreeMap<IfName, u32>,
    /// The MAC of each, which VLANs on it have unless they were given another.
    pub macs: BTreeMap<IfName, Mac>,
    /// The host's devices, among which those are that a driver gave back to it while they belonged to a pod.
    pub devices: Vec<HostDevice>,
    /// The virtual functions whose devices the host's plan makes.
    pub functions: Vec<Hardware>,
}

/// A device in the host's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDevice {
    /// Its name.
    pub name: IfName,
    /// Its identity.
    pub hardware: Hardware,
    /// What it is to the host: a port, the parent of a link, or a link with an address.
    pub in_use: Option<String>,
    /// What is set on it, where that was read.
    pub nic: Option<Box<NicState>>,
}

impl HostDevice {
    /// The devices of the host that can be recognised.
    pub(super) fn all(state: &NetState) -> Vec<Self> {
        let index = Indexed::new(state);
        state
            .links
            .iter()
            .filter_map(|link| {
                let hardware = link.hardware.clone()?;
                hardware.is_known().then(|| Self {
                    name: link.name.clone(),
                    hardware,
                    in_use: role(link, &index),
                    nic: link.nic.clone(),
                })
            })
            .collect()
    }
}

/// What a device is to the host, if anything.
fn role(device: &Link, state: &Indexed<'_>) -> Option<String> {
    if let Some(master) = &device.master {
        return Some(format!("a port of {master}"));
    }
    let as_parent = Parent::Own(device.name.clone());
    let mut links = state.state.links.iter();
    if let Some(upper) = links.find(|upper| upper.parent.as_ref() == Some(&as_parent)) {
        return Some(format!("the parent of {}", upper.name));
    }
    let mut addresses = state.addresses_of(&device.name).iter();
    let address = addresses.find(|address| !address.comes_by_itself())?;
    Some(format!("a link with the address {}", address.local))
}

impl HostLinks {
    /// Removes the links that `state`, a new observation of the host, lacks.
    pub fn confirm(&mut self, state: &NetState) {
        let Self {
            present,
            renamed,
            mtus,
            macs,
            devices,
            functions,
        } = self;
        let now = |then: &IfName| state.link(renamed.get(then).unwrap_or(then));
        present.retain(|then| now(then).is_some());
        *mtus = present
            .iter()
            .filter_map(|then| Some((then.clone(), now(then)?.mtu)))
            .collect();
        *macs = present
            .iter()
            .filter_map(|then| Some((then.clone(), now(then)?.mac?)))
            .collect();
        *devices = HostDevice::all(state);
        functions.clear();
    }

    /// The present name of a link of the checkpoint.
    #[must_use]
    pub fn name_now(&self, then: &IfName) -> IfName {
        self.renamed.get(then).unwrap_or(then).clone()
    }
}

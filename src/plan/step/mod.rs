//! The steps of a plan, each one change of one object, by what carries it out: netlink messages, a file, or an ioctl.

mod netlink;
mod nic;
mod sriov;
mod text;

use crate::model::net::link::sysctl::{Folder, SysctlKey, Sysctls};
use crate::model::net::link::sysfs::{SysfsKey, SysfsValue};
use crate::model::problem::Object;
use crate::model::{Address, IfName, Link, Mac};

pub use sriov::{SriovChange, SriovStep};

pub use netlink::{Change, NetlinkStep, OrderedObject, Rewrite};
pub use nic::NicStep;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// Creates a link, down and with the settings of a new one. Its index is known only then.
    AddLink(Box<Link>),
    /// Changes an object by netlink alone.
    Netlink(NetlinkStep),
    /// Writes a per-interface sysctl.
    Sysctl {
        /// The interface.
        dev: IfName,
        /// In which folder of `/proc/sys/net`.
        folder: Folder,
        /// Which setting.
        key: SysctlKey,
        /// The value to write.
        value: String,
        /// The value that is there; empty where it is not known.
        now: String,
    },
    /// Writes a packet steering or NAPI setting in `/sys/class/net`.
    Sysfs {
        /// The interface.
        dev: IfName,
        /// Which setting.
        key: SysfsKey,
        /// The value to write.
        value: SysfsValue,
    },
    /// Makes virtual functions or binds their drivers, in `/sys/bus/pci`.
    Sriov(SriovStep),
    /// Joins link-layer groups, by ioctl.
    JoinGroups {
        /// The interface.
        dev: IfName,
        /// The groups.
        groups: Vec<Mac>,
    },
    /// Sets a setting of a NIC.
    Nic(NicStep),
    /// Gives a device its former ifindex back. It goes down by that, and loses its addresses.
    Index {
        /// The device.
        dev: IfName,
        /// The former one.
        index: u32,
        /// The present one.
        now: u32,
    },
}

impl Step {
    /// The step that creates a link. Its settings are steps of their own.
    pub(crate) fn add_link(link: Link) -> Self {
        let sysctls = Sysctls::default();
        Self::AddLink(Box::new(Link { sysctls, ..link }))
    }

    /// The step that changes an attribute whose present value needs no mention.
    #[must_use]
    pub fn set(dev: &IfName, change: Change) -> Self {
        let (dev, now) = (dev.clone(), None);
        NetlinkStep::SetLink { dev, change, now }.into()
    }

    /// The step, if it is one by netlink alone.
    pub(crate) fn netlink(&self) -> Option<&NetlinkStep> {
        match self {
            Self::Netlink(step) => Some(step),
            Self::AddLink(_)
            | Self::Sysctl { .. }
            | Self::Sysfs { .. }
            | Self::JoinGroups { .. }
            | Self::Sriov(_)
            | Self::Index { .. }
            | Self::Nic(_) => None,
        }
    }

    /// The setting of a NIC, if it is one.
    pub(crate) fn nic(&self) -> Option<&NicStep> {
        match self {
            Self::Nic(step) => Some(step),
            _ => None,
        }
    }

    /// The device that gets its former ifindex back, and that.
    pub(crate) fn renumbered(&self) -> Option<(&IfName, u32)> {
        match self {
            Self::Index { dev, index, now: _ } => Some((dev, *index)),
            _ => None,
        }
    }

    /// Whether it only adds an address or a route, or takes a link up.
    pub(crate) fn is_addition(&self) -> bool {
        use NetlinkStep::{AddAddress, AddRoute};
        self.netlink().is_some_and(|step| {
            matches!(step, AddAddress(_) | AddRoute { .. }) || step.takes_up().is_some()
        })
    }

    /// The addresses that it adds.
    pub(crate) fn added_addresses(&self) -> Vec<&Address> {
        match self {
            Self::Netlink(NetlinkStep::AddAddress(address)) => vec![address],
            Self::Netlink(NetlinkStep::Rewrite(rewrite)) => {
                let added = rewrite.added.iter();
                let addresses = added.filter_map(|object| match object {
                    OrderedObject::Address(address) => Some(address),
                    OrderedObject::Route(_) | OrderedObject::Rule(_) => None,
                });
                addresses.collect()
            }
            _ => Vec::new(),
        }
    }

    /// The interfaces whose objects it changes.
    pub(crate) fn devs(&self) -> Vec<&IfName> {
        match self {
            Self::AddLink(link) => vec![&link.name],
            Self::Netlink(step) => step.devs(),
            Self::Sriov(step) => vec![&step.dev],
            Self::Sysctl { dev, .. }
            | Self::Sysfs { dev, .. }
            | Self::Index { dev, .. }
            | Self::JoinGroups { dev, .. } => vec![dev],
            Self::Nic(step) => vec![&step.dev],
        }
    }
}

impl From<NetlinkStep> for Step {
    fn from(step: NetlinkStep) -> Self {
        Self::Netlink(step)
    }
}

impl From<NicStep> for Step {
    fn from(step: NicStep) -> Self {
        Self::Nic(step)
    }
}

impl From<SriovStep> for Step {
    fn from(step: SriovStep) -> Self {
        Self::Sriov(step)
    }
}

impl From<&Step> for Object {
    fn from(step: &Step) -> Self {
        Self::Text(step.to_string())
    }
}

//! The kernel's log in the record of a window: its lines about recorded devices, and the causes that drivers name there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::{IfName, Link};

/// So many lines are kept; others are counted.
pub const LINES: usize = 50;
/// So much of a line is kept, in characters.
const LENGTH: usize = 500;

/// The kernel's lines about devices of the record, in the order in which they came first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLog {
    /// The lines that are kept.
    #[serde(deserialize_with = "limits::at_most::<{ LINES }, _, _>")]
    pub lines: Vec<KernelLine>,
    /// How many others there were.
    #[serde(default)]
    pub left_out: u64,
    /// Why netfix could not read the log; absent where it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// A line of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLine {
    /// When netfix read it first, in milliseconds since the window's start.
    pub first: u64,
    /// When netfix read it last.
    pub last: u64,
    /// How often it came. Lines with the same cause and device count as one.
    pub times: u64,
    /// The device that it is about, by its recorded name; null where it names none.
    pub device: Option<IfName>,
    /// The line, without control characters.
    pub text: String,
    /// The cause that it names; null where netfix knows none.
    pub cause: Option<KernelCause>,
}

/// A cause that the kernel's log names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelCause {
    /// ice found no DDP package that fits: one queue, no virtual functions.
    SafeMode,
    /// The firmware of the device does not work.
    RecoveryMode,
    /// The filters of i40e are full: it receives all frames.
    PromiscuousForced,
    /// The filters of ice are full: frames for other MACs are lost.
    MacFilterLimit,
    /// mlx5 has more MACs than `max_macs`: frames for the others are lost.
    AddressesDropped,
    /// bnxt has no filter for a MAC: frames for it are lost.
    FilterFailure,
    /// ice does not change channels while RDMA uses the device.
    RdmaActive,
    /// The driver does not accept the transceiver.
    UnsupportedModule,
    /// A module does not fit the new driver.
    UnknownSymbol,
    /// A virtual machine has a virtual function.
    FunctionsAssigned,
    /// A part of the kernel does not release a link.
    ReferenceLeaked,
    /// The driver of a virtual function starts again and again: most often it finds no physical function.
    FunctionLoops,
}

/// A line that names a cause.
struct Pattern {
    /// The texts that show it, each of which is enough.
    texts: &'static [&'static str],
    /// The drivers whose lines are searched; none: all lines.
    drivers: &'static [&'static str],
    cause: KernelCause,
    /// Whether the line may name no device.
    is_of_all: bool,
    /// So often the line must come.
    least: u64,
}

const fn of(
    drivers: &'static [&'static str],
    texts: &'static [&'static str],
    cause: KernelCause,
) -> Pattern {
    Pattern {
        texts,
        drivers,
        cause,
        is_of_all: drivers.is_empty(),
        least: 1,
    }
}

const WAITING: &str = "unregister_netdevice: waiting for ";
const FREE: &str = " to become free";

const PATTERNS: [Pattern; 13] = [
    of(&["ice"], &["Safe Mode"], KernelCause::SafeMode),
    of(
        &["i40e", "ice", "ixgbe"],
        &["ecovery mode", "ecovery Mode"],
        KernelCause::RecoveryMode,
    ),
    of(
        &["i40e"],
        &["promiscuous mode forced on"],
        KernelCause::PromiscuousForced,
    ),
    of(
        &["ice"],
        &["Reached MAC filter limit"],
        KernelCause::MacFilterLimit,
    ),
    of(
        &["mlx5_core"],
        &["some addresses will be dropped"],
        KernelCause::AddressesDropped,
    ),
    of(
        &["bnxt_en"],
        &["HWRM vnic filter failure"],
        KernelCause::FilterFailure,
    ),
    of(&["ice"], &["when RDMA is active"], KernelCause::RdmaActive),
    of(
        &["i40e", "ixgbe"],
        &["unsupported SFP"],
        KernelCause::UnsupportedModule,
    ),
    of(
        &["i40e", "ice", "ixgbe"],
        &["VFs are assigned", "assigned to VMs"],
        KernelCause::FunctionsAssigned,
    ),
    of(
        &["iavf"],
        &["Failed to communicate with PF"],
        KernelCause::FunctionLoops,
    ),
    Pattern {
        // Two loads of the driver, and what a restore binds again, have fewer.
        least: 5,
        ..of(
            &["iavf", "igbvf", "ixgbevf"],
            // Of the kernel, and at each start of these drivers.
            &["enabling device (", "MAC address: ", " Virtual Function"],
            KernelCause::FunctionLoops,
        )
    },
    of(&[], &["Unknown symbol"], KernelCause::UnknownSymbol),
    of(&[], &[WAITING], KernelCause::ReferenceLeaked),
];

impl KernelCause {
    /// The cause that a line names, and whether it names it without a device.
    fn of(text: &str) -> Option<&'static Pattern> {
        let driver = text.split([' ', ':']).next().unwrap_or_default();
        PATTERNS.iter().find(|pattern| {
            let is_of_driver = pattern.is_of_all || pattern.drivers.contains(&driver);
            is_of_driver && pattern.texts.iter().any(|known| text.contains(known))
        })
    }

    /// Whether the device does not work as before, whatever was set on it. A former driver may help.
    #[must_use]
    pub fn is_fault(self) -> bool {
        matches!(self, Self::SafeMode | Self::RecoveryMode)
    }
}

/// The words by which the kernel's lines name the devices of a record: their names, and bus addresses, also of virtual functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelNames {
    words: BTreeMap<String, IfName>,
    /// The names of those with a bus address.
    on_bus: BTreeSet<String>,
}

impl KernelNames {
    /// The names of the devices among these links, and of other links `under_pods`.
    #[must_use]
    pub fn of<'a>(
        links: impl IntoIterator<Item = &'a Link>,
        under_pods: &BTreeSet<IfName>,
    ) -> Self {
        let (mut all, mut functions) = (Self::default(), BTreeMap::new());
        let is_named = |link: &&Link| link.is_device() || under_pods.contains(&link.name);
        for link in links.into_iter().filter(is_named) {
            let own = link.hardware.as_ref().and_then(|own| own.bus.clone());
            let name = link.name.as_str().map(str::to_owned);
            all.on_bus.extend(name.clone().filter(|_| own.is_some()));
            for word in name.into_iter().chain(own) {
                all.words.insert(word, link.name.clone());
            }
            let of_device = link.sriov().into_iter().flat_map(|sriov| &sriov.functions);
            let buses = of_device.filter_map(|function| function.bus.clone());
            functions.extend(buses.map(|bus| (bus, link.name.clone())));
        }
        // A function with a network device of its own is that.
        for (word, name) in functions {
            all.words.entry(word).or_insert(name);
        }
        all
    }

    /// The first device that a line names.
    fn find(&self, text: &str) -> Option<&IfName> {
        // A firewall that logs a packet has `IN=eth0`.
        let is_between = |c: char| c.is_whitespace() || "()[]{}<>,;\"'`".contains(c);
        // A device on a bus logs its driver and address first: a line without them is of a pod's link with the same name.
        let speaker = text.split_once(": ").map(|(speaker, _)| speaker);
        let text = match speaker.filter(|speaker| self.on_bus.contains(*speaker)) {
            Some(speaker) => &text[speaker.len()..],
            None => text,
        };
        let words = text.split(is_between);
        let mut words = words.map(|word| word.trim_matches([':', '.']));
        words.find_map(|word| self.words.get(word))
    }
}

impl KernelLog {
    /// Keeps a line if it is about a device of the record, or names a cause that needs none; returns one that is new, or has a cause now.
    pub fn take(&mut self, at: u64, text: &str, names: &KernelNames) -> Option<KernelLine> {
        let text = printable(text);
        let device = names.find(&text).cloned();
        let pattern = KernelCause::of(&text);
        let is_known = pattern.is_some_and(|pattern| pattern.is_of_all);
        if device.is_none() && !is_known {
            return None;
        }
        // The loopback device of a namespace is on no device.
        let pattern = pattern.filter(|_| waits_for(&text) != Some("lo"));
        let cause_after = |times| Some(pattern.filter(|one| one.least <= times)?.cause);
        let cause = cause_after(1);
        let is_same = |known: &&mut KernelLine| {
            let is_cause = cause.is_some() && (known.cause, &known.device) == (cause, &device);
            is_cause || known.text == text
        };
        if let Some(known) = self.lines.iter_mut().find(is_same) {
            (known.last, known.times) = (at, known.times + 1);
            let found = cause_after(known.times).filter(|_| known.cause.is_none());
            known.cause = known.cause.or(found);
            return found.map(|_| known.clone());
        }
        if self.lines.len() >= LINES {
            let other = self.lines.iter().rposition(|line| line.cause.is_none());
            let Some(other) = other.filter(|_| cause.is_some()) else {
                self.left_out += 1;
                return None;
            };
            self.left_out += self.lines.remove(other).times;
        }
        let line = KernelLine {
            first: at,
            last: at,
            times: 1,
            device,
            text,
            cause,
        };
        self.lines.push(line.clone());
        Some(line)
    }

    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.unread.is_none()
    }

    /// The causes that lines name at this moment of the window or later.
    pub fn causes(&self, since: u64) -> impl Iterator<Item = LoggedCause> {
        let lines = self.lines.iter().filter(move |line| line.last >= since);
        lines.filter_map(|line| {
            Some(LoggedCause {
                cause: line.cause?,
                device: line.device.clone(),
            })
        })
    }
}

/// The link that the kernel waits for, if it does.
fn waits_for(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(WAITING)?;
    Some(rest.split_once(FREE)?.0)
}

/// A bounded line without control characters.
fn printable(text: &str) -> String {
    let plain = text.chars().take(LENGTH);
    let plain = plain.map(|c| if c.is_control() { ' ' } else { c });
    plain.collect::<String>().trim().to_owned()
}

/// A cause that the kernel's log names, and the device that it names it of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LoggedCause {
    /// The cause.
    pub cause: KernelCause,
    /// The device, by its recorded name; null where the line names none.
    pub device: Option<IfName>,
}

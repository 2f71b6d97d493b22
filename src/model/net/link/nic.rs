//! What is set on a NIC and lost with its driver: the settings of ethtool(8), the affinity of its interrupts, the limits of its
//! queues, and its virtual functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::net::link::{NicDriver, OtherDriver, VlanProtocol};
use crate::model::text::{Invalid, join};
use crate::model::{Mac, is_false};

/// All that is set on a NIC. What the driver does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NicState {
    /// The settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: NicSettings,
    /// Features whose present state is not the one in `settings`, which is the requested one (`[requested on]`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unmet: BTreeSet<NicKey>,
    /// The largest values that the driver accepts, for messages: they are never compared. Of transmit queues (`Queues`) and interrupts
    /// (`Irqs`): how many there are, and each by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: NicSettings,
    /// Its driver, for messages; absent in records of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<NicDriver>,
    /// Single root I/O virtualization; absent for a device that cannot have virtual functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sriov: Option<Sriov>,
}

/// Settings by group and name.
pub type NicSettings = BTreeMap<NicGroup, BTreeMap<NicKey, NicValue>>;

/// What one request sets, in the order in which a restore sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NicGroup {
    /// Parameters that the whole device takes while it runs (`devlink dev param`, mode `runtime`).
    Devlink,
    /// Flags that only this driver has (`ethtool --set-priv-flags`).
    Private,
    /// Mode of the device's own bridge (`bridge link set hwmode`); i40e resets the device for another one.
    Bridge,
    /// Numbers of queues (`ethtool -L`): they decide about rings, interrupts and the spread of packets over queues.
    Channels,
    /// Lengths of the queues in descriptors (`ethtool -G`).
    Rings,
    /// When the device interrupts (`ethtool -C`), in microseconds and frames.
    Coalesce,
    /// Offloads as they are requested (`ethtool -K`).
    Features,
    /// Flow control (`ethtool -A`).
    Pause,
    /// Speeds, duplex and autonegotiation (`ethtool -s`).
    Link,
    /// Forward error correction (`ethtool --set-fec`).
    Fec,
    /// Energy-efficient Ethernet (`ethtool --set-eee`).
    Eee,
    /// Wake-on-LAN (`ethtool -s wol`).
    Wol,
    /// What the driver logs (`ethtool -s msglvl`).
    Msglvl,
    /// Tunables of device and PHY (`ethtool --set-tunable`, `--set-phy-tunable`).
    Tunables,
    /// Which queue gets a packet (`ethtool -X`): key, function, table. The driver forgets it when the device goes up.
    Rss,
    /// What of a packet decides about its queue (`ethtool -N rx-flow-hash`).
    FlowHash,
    /// Rules for single flows (`ethtool -N`), as bytes by their location.
    Rules,
    /// Processors of each interrupt, by the name of its vector (`/proc/irq/*/smp_affinity_list`).
    Irqs,
    /// Transmit queues (`/sys/class/net/*/queues/tx-*`): byte queue limits, rates in Mbit/s, and who uses each (XPS).
    Queues,
    /// Parameters that the driver takes when it starts (`devlink dev param`, mode `driverinit`): compared, and never set.
    DevlinkInit,
    /// Data center bridging (`dcb`, `lldptool`): compared, and never set.
    Dcb,
    /// Parameters of the driver's module (`/sys/module/*/parameters`), of all its devices: compared, and never set.
    Module,
}

impl NicGroup {
    /// Whether the device must be up, with carrier where it had it: the driver refuses or forgets it before.
    #[must_use]
    pub fn needs_carrier(self) -> bool {
        matches!(
            self,
            Self::Rss | Self::FlowHash | Self::Rules | Self::Irqs | Self::Queues
        )
    }

    /// Whether it belongs to the whole device: all its network devices report it.
    #[must_use]
    pub fn is_of_device(self) -> bool {
        matches!(self, Self::Devlink | Self::DevlinkInit | Self::Module)
    }

    /// Its word in messages, as in the checkpoint.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Devlink => "devlink",
            Self::Private => "private",
            Self::Bridge => "bridge",
            Self::Channels => "channels",
            Self::Rings => "rings",
            Self::Coalesce => "coalesce",
            Self::Features => "features",
            Self::Pause => "pause",
            Self::Link => "link",
            Self::Fec => "fec",
            Self::Eee => "eee",
            Self::Wol => "wol",
            Self::Msglvl => "msglvl",
            Self::Tunables => "tunables",
            Self::Rss => "rss",
            Self::FlowHash => "flow_hash",
            Self::Rules => "rules",
            Self::Irqs => "irqs",
            Self::Queues => "queues",
            Self::DevlinkInit => "devlink_init",
            Self::Dcb => "dcb",
            Self::Module => "module",
        }
    }
}

/// The name of a setting in its group, such as `rx` or `tx-tcp-segmentation`: printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct NicKey(String);

impl NicKey {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NicKey {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        const MOST: usize = 64;
        let is_printable = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if (1..=MOST).contains(&text.len()) && is_printable {
            Ok(Self(text))
        } else {
            Err(Invalid::new(&text, "the name of a setting of a NIC"))
        }
    }
}

impl fmt::Display for NicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NicValue {
    /// On or off.
    Flag(bool),
    /// A number, in the unit of ethtool(8).
    Number(u64),
    /// A word, a list of processors, or bytes in hexadecimal.
    Text(String),
    /// A set of words, which may be empty.
    Texts(
        #[serde(deserialize_with = "limits::at_most::<{ limits::RSS_TABLE }, _, _>")] Vec<String>,
    ),
    /// A table, which is not empty.
    Numbers(#[serde(deserialize_with = "limits::at_most::<{ limits::RSS_TABLE }, _, _>")] Vec<u64>),
}

impl NicValue {
    /// The value in a few words: of a long key only the begin, of a long table how often it has each number.
    #[must_use]
    pub fn short(&self) -> String {
        const ENTRIES: usize = 16;
        const DIGITS: usize = 40;
        match self {
            Self::Texts(words) if words.is_empty() => "none".to_owned(),
            Self::Numbers(numbers) if numbers.len() > ENTRIES => {
                let mut counts = BTreeMap::<u64, usize>::new();
                for number in numbers {
                    *counts.entry(*number).or_default() += 1;
                }
                let counts = counts.iter().take(ENTRIES);
                let counts = counts.map(|(number, count)| format!("{number}*{count}"));
                join(counts, " ")
            }
            Self::Text(text) if text.len() > 2 * DIGITS && text.is_ascii() => {
                format!("{}... ({} digits)", &text[..DIGITS], text.len())
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for NicValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("on"),
            Self::Flag(false) => f.write_str("off"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Texts(words) if words.is_empty() => f.write_str("none"),
            Self::Texts(words) => f.write_str(&words.join(" ")),
            Self::Numbers(numbers) => f.write_str(&join(numbers, " ")),
        }
    }
}

/// The present value of a setting, and the driver that has it, where that is not the recorded one.
pub(crate) fn present(now: Option<&NicValue>, driver: Option<&OtherDriver>) -> String {
    let now = now.map_or_else(|| "the default".to_owned(), NicValue::short);
    driver.map_or(now.clone(), |driver| format!("{now} with {driver}"))
}

/// The virtual functions of a device (`/sys/bus/pci/devices/*/sriov_*`, `ip link set vf`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sriov {
    /// How many there are (`sriov_numvfs`).
    pub vfs: u32,
    /// Whether a driver is bound to a new one at once (`sriov_drivers_autoprobe`).
    pub autoprobe: bool,
    /// Mode of the embedded switch (`devlink dev eswitch`), where the device has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eswitch: Option<String>,
    /// Each function, in ascending order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::FUNCTIONS }, _, _>"
    )]
    pub functions: Vec<VirtualFunction>,
}

impl Sriov {
    /// The function of this number.
    #[must_use]
    pub fn function(&self, index: u32) -> Option<&VirtualFunction> {
        self.functions.iter().find(|one| one.index == index)
    }
}

/// One virtual function as its physical function has it (`IFLA_VF_*`, `linux/if_link.h`). What the driver does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VirtualFunction {
    /// Its number.
    pub index: u32,
    /// Its bus address, such as `0000:01:10.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// The driver that is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The only driver that may be bound to it (`driver_override`).
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub driver_override: Option<String>,
    /// Whether it has a network device, in any namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub netdev: bool,
    /// The administrative MAC; all zero where none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// VLAN id; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Priority in the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<u8>,
    /// Protocol of the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<VlanProtocol>,
    /// Whether other source addresses than its MAC are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoofchk: Option<bool>,
    /// Whether it may change its MAC and be promiscuous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Whether it may query the key and table of RSS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_rss: Option<bool>,
    /// State of its link (`IFLA_VF_LINK_STATE_*`): 0 auto, 1 enable, 2 disable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<u32>,
    /// Least rate of transmission in Mbit/s; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<u32>,
    /// Largest rate of transmission in Mbit/s; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<u32>,
    /// InfiniBand GUIDs of node and port; absent where none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guids: Option<(u64, u64)>,
}

/// Which function of which device a virtual function is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FunctionOf {
    /// Bus address of the physical function (`/sys/bus/pci/devices/*/physfn`).
    pub of: String,
    /// Its number.
    pub index: u32,
}

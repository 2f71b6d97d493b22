//! The settings of a virtual function that its physical function has (`ip link set DEV vf N`).

use std::fmt;

use crate::model::Mac;
use crate::model::net::link::VlanProtocol;
use crate::model::net::link::nic::VirtualFunction;

/// One setting of a virtual function: what one request sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionSetting {
    /// The administrative MAC.
    Mac(Mac),
    /// VLAN id (0: none), priority, and protocol where the driver reports it.
    Vlan(u16, u8, Option<VlanProtocol>),
    /// Whether other source addresses are dropped.
    Spoofchk(bool),
    /// Whether it may change its MAC and be promiscuous.
    Trust(bool),
    /// Whether it may query the key and table of RSS.
    QueryRss(bool),
    /// State of its link: 0 auto, 1 enable, 2 disable.
    State(u32),
    /// InfiniBand GUID of the node.
    NodeGuid(u64),
    /// InfiniBand GUID of the port.
    PortGuid(u64),
    /// Least and largest rate of transmission in Mbit/s; 0: none.
    Rates(u32, u32),
}

impl FunctionSetting {
    /// Whether a driver accepts it only once the physical function has a link (`igb_ndo_set_vf_bw`).
    #[must_use]
    pub fn needs_carrier(self) -> bool {
        matches!(self, Self::Rates(..))
    }
}

impl fmt::Display for FunctionSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        match *self {
            Self::Mac(mac) => write!(f, "mac {mac}"),
            Self::Vlan(id, qos, protocol) => {
                write!(f, "vlan {id} qos {qos}")?;
                protocol.map_or(Ok(()), |protocol| write!(f, " proto {protocol}"))
            }
            Self::Spoofchk(is_on) => write!(f, "spoofchk {}", on(is_on)),
            Self::Trust(is_on) => write!(f, "trust {}", on(is_on)),
            Self::QueryRss(is_on) => write!(f, "query_rss {}", on(is_on)),
            Self::State(0) => f.write_str("state auto"),
            Self::State(1) => f.write_str("state enable"),
            Self::State(2) => f.write_str("state disable"),
            Self::State(other) => write!(f, "state {other}"),
            Self::NodeGuid(guid) => write!(f, "node_guid {guid:016x}"),
            Self::PortGuid(guid) => write!(f, "port_guid {guid:016x}"),
            Self::Rates(least, most) => write!(f, "min_tx_rate {least} max_tx_rate {most}"),
        }
    }
}

impl VirtualFunction {
    /// A new one of this number, as drivers make it. What is different is read back.
    #[must_use]
    pub fn fresh(index: u32) -> Self {
        Self {
            index,
            vlan: Some(0),
            qos: Some(0),
            protocol: Some(VlanProtocol::Dot1Q),
            spoofchk: Some(true),
            trust: Some(false),
            query_rss: Some(false),
            state: Some(0),
            min_rate: Some(0),
            max_rate: Some(0),
            ..Self::default()
        }
    }

    /// Its settings, in the order in which a restore sends them. A MAC or GUID that was never set is no setting.
    pub fn settings(&self) -> impl Iterator<Item = FunctionSetting> {
        use FunctionSetting::{
            Mac, NodeGuid, PortGuid, QueryRss, Rates, Spoofchk, State, Trust, Vlan,
        };
        let guid = |guid: u64| Some(guid).filter(|guid| *guid != 0);
        let (node, port) = self.guids.unwrap_or_default();
        let all = [
            self.mac.filter(|mac| mac.0 != [0; 6]).map(Mac),
            guid(node).map(NodeGuid),
            guid(port).map(PortGuid),
            self.vlan
                .map(|id| Vlan(id, self.qos.unwrap_or_default(), self.protocol)),
            self.spoofchk.map(Spoofchk),
            self.trust.map(Trust),
            self.query_rss.map(QueryRss),
            self.state.map(State),
            self.max_rate
                .map(|most| Rates(self.min_rate.unwrap_or_default(), most)),
        ];
        all.into_iter().flatten()
    }

    /// What is set here of the same sort as `setting`.
    #[must_use]
    pub fn alike(&self, setting: FunctionSetting) -> Option<FunctionSetting> {
        let sort = std::mem::discriminant(&setting);
        self.settings()
            .find(|own| std::mem::discriminant(own) == sort)
    }

    /// Whether its driver gives it to a program instead of making a network device.
    #[must_use]
    pub fn is_passed_on(&self) -> bool {
        self.driver.as_deref().is_some_and(passes_on)
    }
}

/// Whether a driver makes no network device: it gives a device to a program, or keeps it for one.
fn passes_on(driver: &str) -> bool {
    driver.contains("vfio") || driver.contains("uio") || driver == "pci-stub"
}

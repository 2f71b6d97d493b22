//! Policy routing rules (`ip rule`).

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, IfName};

/// One rule, with the fields of `struct fib_rule_hdr` and its attributes (`linux/fib_rules.h`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// IPv6 rather than IPv4.
    pub ipv6: bool,
    /// Priority; the kernel evaluates lower values first.
    pub priority: u32,
    /// `from` prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<(IpAddr, u8)>,
    /// `to` prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<(IpAddr, u8)>,
    /// Incoming interface, by name: it need not exist.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limits::rule_dev"
    )]
    pub iif: Option<Bytes>,
    /// Outgoing interface, by name: it need not exist.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limits::rule_dev"
    )]
    pub oif: Option<Bytes>,
    /// `tos`.
    pub tos: u8,
    /// `not`.
    pub invert: bool,
    /// Firewall mark and its mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fwmark: Option<u32>,
    /// Mask of the firewall mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fwmask: Option<u32>,
    /// What happens (`FR_ACT_*`): 1 look up a table, 2 goto, 6 blackhole, 7 unreachable, 8 prohibit.
    pub action: u8,
    /// The table for the lookup.
    pub table: u32,
    /// Priority of the rule that `goto` goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goto: Option<u32>,
    /// `suppress_prefixlength`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_prefix_len: Option<u32>,
    /// `suppress_ifgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_group: Option<u32>,
    /// `ipproto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_proto: Option<u8>,
    /// `sport` range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sport: Option<(u16, u16)>,
    /// `dport` range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dport: Option<(u16, u16)>,
    /// `uidrange`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid_range: Option<(u32, u32)>,
    /// `l3mdev`.
    pub l3mdev: bool,
    /// `tun_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tun_id: Option<u64>,
    /// Realms: source and destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realms: Option<(u16, u16)>,
    /// Its origin (`RTPROT_*`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Attributes of newer kernels, such as the masks of ports (`FRA_DPORT_MASK`, Linux 6.15).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<RawAttribute>,
}

/// `RTPROT_KERNEL` (linux/rtnetlink.h).
const PROTOCOL_KERNEL: u8 = 2;
/// `FR_ACT_TO_TBL` (linux/fib_rules.h).
const LOOKUP: u8 = 1;

impl Rule {
    /// Whether it is one of the rules that the kernel creates in every namespace.
    pub(crate) fn is_made_by_kernel(&self) -> bool {
        self.protocol == Some(PROTOCOL_KERNEL)
    }

    /// Whether the kernel follows it to look for a gateway on a link: such a lookup has no source, mark, protocol or port.
    pub(crate) fn leads_to(&self, gateway: IpAddr, dev: &IfName) -> bool {
        let is_to =
            |(ip, len): (IpAddr, u8)| IpNet::new(ip, len).is_ok_and(|to| to.contains(&gateway));
        let is_for_all = self.from.is_none()
            && self.fwmark.is_none_or(|mark| mark == 0)
            && self.tos == 0
            && (self.ip_proto, self.sport, self.dport, self.tun_id) == (None, None, None, None)
            && self.uid_range.is_none_or(|(first, _)| first == 0)
            && self.extra.is_empty();
        let matches = is_for_all
            && self.to.is_none_or(is_to)
            && self
                .oif
                .as_ref()
                .is_none_or(|oif| oif.as_slice() == dev.as_bytes())
            && self.iif.as_ref().is_none_or(|iif| iif.as_slice() == b"lo");
        self.action == LOOKUP && self.ipv6 == gateway.is_ipv6() && matches != self.invert
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}",
            self.priority,
            if self.invert { " not" } else { "" }
        )?;
        match self.from {
            Some((ip, len)) => write!(f, " from {ip}/{len}")?,
            None => write!(f, " from all")?,
        }
        if let Some((ip, len)) = self.to {
            write!(f, " to {ip}/{len}")?;
        }
        for (word, name) in [("iif", &self.iif), ("oif", &self.oif)] {
            if let Some(name) = name {
                write!(f, " {word} {name}")?;
            }
        }
        if let Some(mark) = self.fwmark {
            write!(f, " fwmark {mark:#x}")?;
        }
        match self.action {
            1 => write!(f, " lookup {}", self.table),
            2 => write!(f, " goto {}", self.goto.unwrap_or_default()),
            other => write!(f, " action {other}"),
        }
    }
}

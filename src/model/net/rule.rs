//! Policy routing rules (`ip rule`).

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::fidelity::attribute::Treatment::{Restored, SentBack};
use crate::model::fidelity::attribute::TwinComparison::Never;
use crate::model::fidelity::attribute::row;
use crate::model::fidelity::form::{
    BE64, ON, PAIR_OF_U16, PAIR_OF_U32, PREFIX, REALMS, TEXT, U8, U32, U32_BUT_0, attributes,
};
use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, IfName};

attributes! {
    /// One rule, with the fields of `struct fib_rule_hdr` and its attributes (`linux/fib_rules.h`).
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Rule {
        /// IPv6 rather than IPv4.
        pub ipv6: bool;
        /// Priority; the kernel evaluates lower values first.
        pub priority: u32 = U32, row(6, "FRA_PRIORITY", Restored, "fidelity/rules");
        /// `from` prefix.
        pub from?: (IpAddr, u8) = PREFIX, row(2, "FRA_SRC", Restored, "fidelity/rules");
        /// `to` prefix.
        pub to?: (IpAddr, u8) = PREFIX, row(1, "FRA_DST", Restored, "fidelity/rules");
        /// Incoming interface, by name: it need not exist.
        #[serde(deserialize_with = "limits::rule_dev")]
        pub iif?: Bytes = TEXT, row(3, "FRA_IIFNAME", Restored, "fidelity/rules, bytes");
        /// Outgoing interface, by name: it need not exist.
        #[serde(deserialize_with = "limits::rule_dev")]
        pub oif?: Bytes = TEXT, row(17, "FRA_OIFNAME", Restored, "fidelity/rules, bytes");
        /// `tos`.
        pub tos: u8;
        /// `not`.
        pub invert: bool;
        /// Firewall mark and its mask.
        pub fwmark?: u32 = U32, row(10, "FRA_FWMARK", Restored, "fidelity/rules");
        /// Mask of the firewall mark.
        pub fwmask?: u32 = U32, row(16, "FRA_FWMASK", Restored, "fidelity/rules");
        /// What happens (`FR_ACT_*`): 1 look up a table, 2 goto, 6 blackhole, 7 unreachable, 8 prohibit.
        pub action: u8;
        /// The table for the lookup.
        pub table: u32 = U32_BUT_0, row(15, "FRA_TABLE", Restored, "fidelity/rules");
        /// Priority of the rule that `goto` goes to.
        pub goto?: u32 = U32, row(4, "FRA_GOTO", Restored, "fidelity/rules");
        /// `suppress_prefixlength`.
        pub suppress_prefix_len?: u32 = U32, row(14, "FRA_SUPPRESS_PREFIXLEN", Restored, "fidelity/rules");
        /// `suppress_ifgroup`.
        pub suppress_group?: u32 = U32, row(13, "FRA_SUPPRESS_IFGROUP", Restored, "fidelity/rules");
        /// `ipproto`.
        pub ip_proto?: u8 = U8, row(22, "FRA_IP_PROTO", Restored, "fidelity/rules");
        /// `sport` range.
        pub sport?: (u16, u16) = PAIR_OF_U16, row(23, "FRA_SPORT_RANGE", Restored, "fidelity/rules");
        /// `dport` range.
        pub dport?: (u16, u16) = PAIR_OF_U16, row(24, "FRA_DPORT_RANGE", Restored, "fidelity/rules");
        /// `uidrange`.
        pub uid_range?: (u32, u32) = PAIR_OF_U32, row(20, "FRA_UID_RANGE", Restored, "fidelity/rules");
        /// `l3mdev`.
        pub l3mdev: bool = ON, row(19, "FRA_L3MDEV", Restored, "fidelity/rules");
        /// `tun_id`.
        pub tun_id?: u64 = BE64, row(12, "FRA_TUN_ID", Restored, "fidelity/rules");
        /// Realms: source and destination.
        pub realms?: (u16, u16) = REALMS, row(11, "FRA_FLOW", Restored, "fidelity/rules");
        /// Its origin (`RTPROT_*`).
        pub protocol?: u8 = U8, row(21, "FRA_PROTOCOL", Restored, "fidelity/rules");
        /// Attributes of newer kernels, such as the masks of ports (`FRA_DPORT_MASK`, Linux 6.15).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub extra: Vec<RawAttribute>;
    }

    /// `FRA_*`.
    pub const RULE = "Rules",
        "`FRA_*` of `RTM_NEWRULE` (`linux/fib_rules.h`). Attributes that are not listed are stored as bytes and sent back",
        Never("the loss of a NIC takes no rule");
    others:
        row(25, "FRA_DSCP", SentBack, "fidelity/rules").since("6.13"),
        row(26, "FRA_FLOWLABEL", SentBack, "fidelity/rules").since("6.14"),
        row(27, "FRA_FLOWLABEL_MASK", SentBack, "fidelity/rules").since("6.14"),
        row(28, "FRA_SPORT_MASK", SentBack, "fidelity/rules").since("6.15"),
        row(29, "FRA_DPORT_MASK", SentBack, "fidelity/rules").since("6.15"),
        row(30, "FRA_DSCP_MASK", SentBack, "fidelity/rules").since("6.15"),
}

/// `RTPROT_KERNEL` (linux/rtnetlink.h).
const PROTOCOL_KERNEL: u8 = 2;
/// `FR_ACT_TO_TBL` (`linux/fib_rules.h`).
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

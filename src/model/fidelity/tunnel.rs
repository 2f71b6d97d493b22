//! Kinds of links that name their lower device in their data.

use super::attribute::Treatment::{Named, Restored, SentBack, State};
use super::attribute::TwinComparison::{Never, Reported};
use super::attribute::{AttributeTable, row};

const TEST: &str = "fidelity/tunnels";

/// `IFLA_VXLAN_*`.
pub const VXLAN: AttributeTable = AttributeTable {
    title: "VXLAN on a device",
    source: "`IFLA_VXLAN_*` in `IFLA_INFO_DATA`. The kernel deletes a vxlan with its lower device; one without a lower device \
             survives. Its forwarding entries are restored, but not its multicast database",
    twin: Reported,
    rows: &[
        row(1, "IFLA_VXLAN_ID", SentBack, TEST),
        row(2, "IFLA_VXLAN_GROUP", SentBack, TEST),
        row(3, "IFLA_VXLAN_LINK", Restored, TEST),
        row(4, "IFLA_VXLAN_LOCAL", SentBack, TEST),
        row(5, "IFLA_VXLAN_TTL", SentBack, TEST),
        row(6, "IFLA_VXLAN_TOS", SentBack, TEST),
        row(7, "IFLA_VXLAN_LEARNING", SentBack, TEST),
        row(8, "IFLA_VXLAN_AGEING", SentBack, TEST),
        row(9, "IFLA_VXLAN_LIMIT", SentBack, TEST),
        row(10, "IFLA_VXLAN_PORT_RANGE", SentBack, TEST),
        row(11, "IFLA_VXLAN_PROXY", SentBack, TEST),
        row(12, "IFLA_VXLAN_RSC", SentBack, TEST),
        row(13, "IFLA_VXLAN_L2MISS", SentBack, TEST),
        row(14, "IFLA_VXLAN_L3MISS", SentBack, TEST),
        row(15, "IFLA_VXLAN_PORT", SentBack, TEST),
        row(16, "IFLA_VXLAN_GROUP6", SentBack, TEST),
        row(17, "IFLA_VXLAN_LOCAL6", SentBack, TEST),
        row(18, "IFLA_VXLAN_UDP_CSUM", SentBack, TEST),
        row(19, "IFLA_VXLAN_UDP_ZERO_CSUM6_TX", SentBack, TEST),
        row(20, "IFLA_VXLAN_UDP_ZERO_CSUM6_RX", SentBack, TEST),
        row(21, "IFLA_VXLAN_REMCSUM_TX", SentBack, TEST),
        row(22, "IFLA_VXLAN_REMCSUM_RX", SentBack, TEST),
        row(23, "IFLA_VXLAN_GBP", SentBack, TEST),
        row(24, "IFLA_VXLAN_REMCSUM_NOPARTIAL", SentBack, TEST),
        row(25, "IFLA_VXLAN_COLLECT_METADATA", SentBack, TEST),
        row(26, "IFLA_VXLAN_LABEL", SentBack, TEST),
        row(27, "IFLA_VXLAN_GPE", SentBack, TEST),
        row(28, "IFLA_VXLAN_TTL_INHERIT", SentBack, TEST).since("4.18"),
        row(29, "IFLA_VXLAN_DF", SentBack, TEST).since("5.0"),
        row(30, "IFLA_VXLAN_VNIFILTER", Named, "unsupported").since("5.18"),
        row(31, "IFLA_VXLAN_LOCALBYPASS", SentBack, TEST).since("6.5"),
        row(32, "IFLA_VXLAN_LABEL_POLICY", SentBack, TEST).since("6.7"),
        row(33, "IFLA_VXLAN_RESERVED_BITS", SentBack, TEST).since("6.14"),
        row(34, "IFLA_VXLAN_MC_ROUTE", SentBack, TEST).since("6.17"),
    ],
};

/// The attribute with the lower device of a tunnel: `IFLA_GRE_LINK`, `IFLA_IPTUN_LINK`, `IFLA_VTI_LINK`.
pub const TUNNEL: AttributeTable = AttributeTable {
    title: "Tunnels on a device",
    source: "`IFLA_GRE_LINK`, `IFLA_IPTUN_LINK` and `IFLA_VTI_LINK` in `IFLA_INFO_DATA` of gre, gretap, erspan, ip6gre, ip6gretap, \
             ip6erspan, ipip, sit, ip6tnl, vti and vti6. Such a tunnel stays without its lower device, with all else that it has, \
             and gets the new one. An xfrm cannot have another one: it is named at the snapshot, as macsec and hsr are",
    twin: Never("a twin cannot have such a link on a stand-in"),
    rows: &[
        row(1, "IFLA_*_LINK", Restored, "tunnels"),
        row(2, "all others", State, ""),
    ],
};

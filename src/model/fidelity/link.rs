//! Links.

use super::attribute::Treatment::{Named, NotRead, Restored, SentBack, State, Used};
use super::attribute::TwinComparison::{Never, Reported};
use super::attribute::{AttributeTable, row};
use super::nic::OF_DEVICES;

const PORT_PROFILES: &str =
    "a profile of a switch (802.1Qbg): its daemon associates the port again";

/// `IFLA_*`.
pub const LINK: AttributeTable = AttributeTable {
    title: "Links",
    source: "`IFLA_*` of `RTM_NEWLINK` (`linux/if_link.h`)",
    twin: Reported,
    rows: &[
        row(1, "IFLA_ADDRESS", Restored, "links"),
        row(2, "IFLA_BROADCAST", Restored, "fidelity/links"),
        row(3, "IFLA_IFNAME", Restored, "links, bytes"),
        row(4, "IFLA_MTU", Restored, "links, fidelity/half_lost"),
        row(5, "IFLA_LINK", Restored, "links"),
        row(6, "IFLA_QDISC", Restored, "fidelity/qdiscs"),
        row(7, "IFLA_STATS", State, ""),
        row(8, "IFLA_COST", State, ""),
        row(9, "IFLA_PRIORITY", State, ""),
        row(10, "IFLA_MASTER", Restored, "fidelity/ports, pod-kinds"),
        row(13, "IFLA_TXQLEN", Restored, "links"),
        row(14, "IFLA_MAP", State, ""),
        row(16, "IFLA_OPERSTATE", State, ""),
        row(17, "IFLA_LINKMODE", Restored, "fidelity/links"),
        row(18, "IFLA_LINKINFO", Restored, "links"),
        row(20, "IFLA_IFALIAS", Restored, "links, bytes"),
        row(21, "IFLA_NUM_VF", State, ""),
        row(22, "IFLA_VFINFO_LIST", Restored, "sriov").in_twin(Never(OF_DEVICES)),
        row(23, "IFLA_STATS64", State, ""),
        row(24, "IFLA_VF_PORTS", NotRead(PORT_PROFILES), ""),
        row(25, "IFLA_PORT_SELF", NotRead(PORT_PROFILES), ""),
        row(26, "IFLA_AF_SPEC", Restored, "sysctls"),
        row(27, "IFLA_GROUP", Restored, "links"),
        row(30, "IFLA_PROMISCUITY", State, ""),
        row(31, "IFLA_NUM_TX_QUEUES", Restored, "links"),
        row(32, "IFLA_NUM_RX_QUEUES", Restored, "links"),
        row(33, "IFLA_CARRIER", State, ""),
        row(34, "IFLA_PHYS_PORT_ID", State, ""),
        row(35, "IFLA_CARRIER_CHANGES", State, ""),
        row(36, "IFLA_PHYS_SWITCH_ID", State, ""),
        row(37, "IFLA_LINK_NETNSID", Used, ""),
        row(38, "IFLA_PHYS_PORT_NAME", State, ""),
        row(39, "IFLA_PROTO_DOWN", Restored, "fidelity/links"),
        row(40, "IFLA_GSO_MAX_SEGS", Restored, "fidelity/links"),
        row(41, "IFLA_GSO_MAX_SIZE", Restored, "fidelity/links"),
        row(43, "IFLA_XDP", Named, "unsupported"),
        row(47, "IFLA_CARRIER_UP_COUNT", State, ""),
        row(48, "IFLA_CARRIER_DOWN_COUNT", State, ""),
        row(50, "IFLA_MIN_MTU", State, "").since("4.20"),
        row(51, "IFLA_MAX_MTU", State, "").since("4.20"),
        row(52, "IFLA_PROP_LIST", Restored, "links, bytes").since("5.5"),
        row(54, "IFLA_PERM_ADDRESS", Used, "").since("5.6"),
        row(
            55,
            "IFLA_PROTO_DOWN_REASON",
            NotRead("it belongs to the daemons that hold a link down"),
            "",
        )
        .since("5.9"),
        row(56, "IFLA_PARENT_DEV_NAME", State, "").since("5.14"),
        row(57, "IFLA_PARENT_DEV_BUS_NAME", State, "").since("5.14"),
        row(58, "IFLA_GRO_MAX_SIZE", Restored, "fidelity/links").since("5.19"),
        row(59, "IFLA_TSO_MAX_SIZE", State, "").since("5.19"),
        row(60, "IFLA_TSO_MAX_SEGS", State, "").since("5.19"),
        row(61, "IFLA_ALLMULTI", State, "").since("6.0"),
        row(62, "IFLA_DEVLINK_PORT", State, "").since("6.2"),
        row(63, "IFLA_GSO_IPV4_MAX_SIZE", Restored, "fidelity/links").since("6.3"),
        row(64, "IFLA_GRO_IPV4_MAX_SIZE", Restored, "fidelity/links").since("6.3"),
        row(65, "IFLA_DPLL_PIN", State, "").since("6.7"),
        row(66, "IFLA_MAX_PACING_OFFLOAD_HORIZON", State, "").since("6.13"),
        row(67, "IFLA_NETNS_IMMUTABLE", State, "").since("6.15"),
        row(68, "IFLA_HEADROOM", State, "").since("6.18"),
        row(69, "IFLA_TAILROOM", State, "").since("6.18"),
    ],
};

/// `IFLA_INFO_*`.
pub const LINK_INFO: AttributeTable = AttributeTable {
    title: "Kinds of links",
    source: "`IFLA_INFO_*` in `IFLA_LINKINFO`. Links of other kinds than those below survive the loss of a NIC, or are named at \
             the snapshot",
    twin: Reported,
    rows: &[
        row(
            1,
            "IFLA_INFO_KIND",
            Restored,
            "links, fidelity/kinds, pod-kinds",
        ),
        row(
            2,
            "IFLA_INFO_DATA",
            Restored,
            "links, fidelity/kinds, pod-kinds",
        ),
        row(3, "IFLA_INFO_XSTATS", State, ""),
        row(4, "IFLA_INFO_SLAVE_KIND", Used, ""),
        row(5, "IFLA_INFO_SLAVE_DATA", Restored, "fidelity/ports"),
    ],
};

/// `IFLA_MACVLAN_*`.
pub const MACVLAN: AttributeTable = AttributeTable {
    title: "macvlan and macvtap",
    source: "`IFLA_MACVLAN_*` in `IFLA_INFO_DATA`",
    twin: Reported,
    rows: &[
        row(1, "IFLA_MACVLAN_MODE", Restored, "links, fidelity/kinds"),
        row(2, "IFLA_MACVLAN_FLAGS", Restored, "links"),
        row(5, "IFLA_MACVLAN_MACADDR_DATA", Restored, "links"),
        row(6, "IFLA_MACVLAN_MACADDR_COUNT", Used, ""),
        row(7, "IFLA_MACVLAN_BC_QUEUE_LEN", Restored, "links").since("5.11"),
        row(8, "IFLA_MACVLAN_BC_QUEUE_LEN_USED", State, "").since("5.11"),
        row(9, "IFLA_MACVLAN_BC_CUTOFF", Restored, "links").since("6.4"),
    ],
};

/// `IFLA_IPVLAN_*`.
pub const IPVLAN: AttributeTable = AttributeTable {
    title: "ipvlan and ipvtap",
    source: "`IFLA_IPVLAN_*` in `IFLA_INFO_DATA`. The kernel does not report the namespace of the parent of an ipvtap: one in a \
             pod is named at the snapshot",
    twin: Reported,
    rows: &[
        row(1, "IFLA_IPVLAN_MODE", Restored, "pod-kinds"),
        row(2, "IFLA_IPVLAN_FLAGS", Restored, "pod-kinds"),
    ],
};

/// `IFLA_VLAN_*`.
pub const VLAN: AttributeTable = AttributeTable {
    title: "VLAN",
    source: "`IFLA_VLAN_*` in `IFLA_INFO_DATA`",
    twin: Reported,
    rows: &[
        row(1, "IFLA_VLAN_ID", Restored, "vlan-kinds, pod-kinds"),
        row(2, "IFLA_VLAN_FLAGS", Restored, "vlan-kinds"),
        row(3, "IFLA_VLAN_EGRESS_QOS", Restored, "vlan-kinds, pod-kinds"),
        row(4, "IFLA_VLAN_INGRESS_QOS", Restored, "vlan-kinds"),
        row(5, "IFLA_VLAN_PROTOCOL", Restored, "vlan-kinds"),
    ],
};

/// `IFLA_BOND_*`.
pub const BOND: AttributeTable = AttributeTable {
    title: "Bonds of the host",
    source: "`IFLA_BOND_*` in `IFLA_INFO_DATA`",
    twin: Reported,
    rows: &[
        row(1, "IFLA_BOND_MODE", Restored, "bond-gone"),
        row(2, "IFLA_BOND_ACTIVE_SLAVE", State, ""),
        row(3, "IFLA_BOND_MIIMON", Restored, "bond-gone"),
        row(4, "IFLA_BOND_UPDELAY", Restored, "bond-gone"),
        row(5, "IFLA_BOND_DOWNDELAY", Restored, "bond-gone"),
        row(6, "IFLA_BOND_USE_CARRIER", Restored, "bond-gone"),
        row(7, "IFLA_BOND_ARP_INTERVAL", Restored, "bond-gone"),
        row(8, "IFLA_BOND_ARP_IP_TARGET", Restored, "bond-gone"),
        row(9, "IFLA_BOND_ARP_VALIDATE", Restored, "bond-gone"),
        row(10, "IFLA_BOND_ARP_ALL_TARGETS", Restored, "bond-gone"),
        row(11, "IFLA_BOND_PRIMARY", Restored, "bond-gone"),
        row(12, "IFLA_BOND_PRIMARY_RESELECT", Restored, "bond-gone"),
        row(13, "IFLA_BOND_FAIL_OVER_MAC", Restored, "bond-gone"),
        row(14, "IFLA_BOND_XMIT_HASH_POLICY", Restored, "bond-gone"),
        row(15, "IFLA_BOND_RESEND_IGMP", Restored, "bond-gone"),
        row(16, "IFLA_BOND_NUM_PEER_NOTIF", Restored, "bond-gone"),
        row(17, "IFLA_BOND_ALL_SLAVES_ACTIVE", Restored, "bond-gone"),
        row(18, "IFLA_BOND_MIN_LINKS", Restored, "bond-gone"),
        row(19, "IFLA_BOND_LP_INTERVAL", Restored, "bond-gone"),
        row(20, "IFLA_BOND_PACKETS_PER_SLAVE", Restored, "bond-gone"),
        row(21, "IFLA_BOND_AD_LACP_RATE", Restored, "bond-gone"),
        row(22, "IFLA_BOND_AD_SELECT", Restored, "bond-gone"),
        row(23, "IFLA_BOND_AD_INFO", State, ""),
        row(24, "IFLA_BOND_AD_ACTOR_SYS_PRIO", Restored, "bond-gone"),
        row(25, "IFLA_BOND_AD_USER_PORT_KEY", Restored, "bond-gone"),
        row(26, "IFLA_BOND_AD_ACTOR_SYSTEM", Restored, "bond-gone"),
        row(27, "IFLA_BOND_TLB_DYNAMIC_LB", Restored, "bond-gone"),
        row(28, "IFLA_BOND_PEER_NOTIF_DELAY", Restored, "bond-gone").since("5.3"),
        row(29, "IFLA_BOND_AD_LACP_ACTIVE", Restored, "bond-gone").since("5.15"),
        row(30, "IFLA_BOND_MISSED_MAX", Restored, "bond-gone").since("5.17"),
        row(31, "IFLA_BOND_NS_IP6_TARGET", Restored, "bond-gone").since("5.18"),
        row(32, "IFLA_BOND_COUPLED_CONTROL", Restored, "bond-gone").since("6.9"),
        row(
            33,
            "IFLA_BOND_BROADCAST_NEIGH",
            NotRead("netlink-packet-route does not decode it yet"),
            "",
        )
        .since("6.17"),
    ],
};

/// `IFLA_BOND_SLAVE_*`. What is sent back has its word in ip-link(8).
pub const BOND_PORT: AttributeTable = AttributeTable {
    title: "Ports of bonds",
    source: "`IFLA_BOND_SLAVE_*` in `IFLA_INFO_SLAVE_DATA`; settings have the words of ip-link(8)",
    twin: Reported,
    rows: &[
        row(1, "IFLA_BOND_SLAVE_STATE", State, ""),
        row(2, "IFLA_BOND_SLAVE_MII_STATUS", State, ""),
        row(3, "IFLA_BOND_SLAVE_LINK_FAILURE_COUNT", State, ""),
        row(4, "IFLA_BOND_SLAVE_PERM_HWADDR", State, ""),
        row(5, "queue_id", SentBack, "bond-port-lost"),
        row(6, "IFLA_BOND_SLAVE_AD_AGGREGATOR_ID", State, ""),
        row(7, "IFLA_BOND_SLAVE_AD_ACTOR_OPER_PORT_STATE", State, ""),
        row(8, "IFLA_BOND_SLAVE_AD_PARTNER_OPER_PORT_STATE", State, ""),
        row(9, "prio", SentBack, "bond-port-lost").since("6.0"),
        row(10, "actor_port_prio", SentBack, "bond-port-lost").since("6.18"),
        row(11, "IFLA_BOND_SLAVE_AD_CHURN_ACTOR_STATE", State, "").since("7.0"),
        row(12, "IFLA_BOND_SLAVE_AD_CHURN_PARTNER_STATE", State, "").since("7.0"),
    ],
};

/// `IFLA_BRPORT_*`. What is sent back has its word in bridge(8).
pub const BRIDGE_PORT: AttributeTable = AttributeTable {
    title: "Ports of bridges",
    source: "`IFLA_BRPORT_*` in `IFLA_INFO_SLAVE_DATA`; settings have the words of bridge(8). Its VLANs (`IFLA_BRIDGE_VLAN_INFO`, \
             `bridge vlan`), forwarding entries (`bridge fdb`) and multicast groups (`MDBA_MDB_ENTRY`, `bridge mdb`) are restored \
             with it; VLANs of tunnels (`IFLA_BRIDGE_VLAN_TUNNEL_INFO`) and groups with a list of sources are named at the snapshot",
    twin: Reported,
    rows: &[
        row(1, "state", Used, ""),
        row(2, "priority", SentBack, "fidelity/ports"),
        row(3, "cost", SentBack, "fidelity/ports"),
        row(4, "hairpin", SentBack, "fidelity/ports"),
        row(5, "guard", SentBack, "fidelity/ports"),
        row(6, "root_block", SentBack, "fidelity/ports"),
        row(7, "fastleave", SentBack, "fidelity/ports"),
        row(8, "learning", SentBack, "fidelity/ports"),
        row(9, "flood", SentBack, "fidelity/ports"),
        row(10, "proxy_arp", SentBack, "fidelity/ports"),
        row(11, "IFLA_BRPORT_LEARNING_SYNC", State, ""),
        row(12, "proxy_arp_wifi", SentBack, "fidelity/ports"),
        row(13, "IFLA_BRPORT_ROOT_ID", State, ""),
        row(14, "IFLA_BRPORT_BRIDGE_ID", State, ""),
        row(15, "IFLA_BRPORT_DESIGNATED_PORT", State, ""),
        row(16, "IFLA_BRPORT_DESIGNATED_COST", State, ""),
        row(17, "IFLA_BRPORT_ID", State, ""),
        row(18, "IFLA_BRPORT_NO", State, ""),
        row(19, "IFLA_BRPORT_TOPOLOGY_CHANGE_ACK", State, ""),
        row(20, "IFLA_BRPORT_CONFIG_PENDING", State, ""),
        row(21, "IFLA_BRPORT_MESSAGE_AGE_TIMER", State, ""),
        row(22, "IFLA_BRPORT_FORWARD_DELAY_TIMER", State, ""),
        row(23, "IFLA_BRPORT_HOLD_TIMER", State, ""),
        row(25, "mcast_router", SentBack, "fidelity/ports"),
        row(27, "mcast_flood", SentBack, "fidelity/ports"),
        row(28, "mcast_to_unicast", SentBack, "fidelity/ports"),
        row(29, "vlan_tunnel", SentBack, "fidelity/ports"),
        row(30, "bcast_flood", SentBack, "fidelity/ports"),
        row(31, "group_fwd_mask", SentBack, "fidelity/ports"),
        row(32, "neigh_suppress", SentBack, "fidelity/ports"),
        row(33, "isolated", SentBack, "fidelity/ports"),
        row(34, "backup_port", Restored, "fidelity/ports"),
        row(35, "IFLA_BRPORT_MRP_RING_OPEN", State, ""),
        row(36, "IFLA_BRPORT_MRP_IN_OPEN", State, ""),
        row(37, "mcast_eht_hosts_limit", SentBack, "fidelity/ports"),
        row(38, "IFLA_BRPORT_MCAST_EHT_HOSTS_CNT", State, ""),
        row(39, "locked", SentBack, "fidelity/ports"),
        row(40, "mab", SentBack, "fidelity/ports"),
        row(41, "IFLA_BRPORT_MCAST_N_GROUPS", State, ""),
        row(42, "mcast_max_groups", SentBack, "fidelity/ports"),
        row(43, "neigh_vlan_suppress", SentBack, "fidelity/ports"),
        row(44, "backup_nhid", SentBack, "fidelity/ports"),
    ],
};

/// `IFLA_INET6_*`.
pub const INET6: AttributeTable = AttributeTable {
    title: "IPv6 of a link",
    source: "`IFLA_INET6_*` in `IFLA_AF_SPEC`; for IPv4 there is `IFLA_INET_CONF` alone, which is restored (sysctls)",
    twin: Reported,
    rows: &[
        row(1, "IFLA_INET6_FLAGS", State, ""),
        row(2, "IFLA_INET6_CONF", Restored, "sysctls"),
        row(3, "IFLA_INET6_STATS", State, ""),
        row(4, "IFLA_INET6_MCAST", State, ""),
        row(5, "IFLA_INET6_CACHEINFO", State, ""),
        row(6, "IFLA_INET6_ICMP6STATS", State, ""),
        row(7, "IFLA_INET6_TOKEN", Restored, "fidelity/links"),
        row(
            8,
            "IFLA_INET6_ADDR_GEN_MODE",
            Restored,
            "sysctls, fidelity/link_local",
        ),
        row(9, "IFLA_INET6_RA_MTU", State, "").since("5.15"),
    ],
};

//! Routes.

use super::attribute::Treatment::{NotRead, Restored, SentBack, State, Used};
use super::attribute::TwinComparison::Reported;
use super::attribute::{AttributeTable, row};

/// `RTA_*`.
pub const ROUTE: AttributeTable = AttributeTable {
    title: "Routes",
    source: "`RTA_*` of `RTM_NEWROUTE`. Routes that come with an address or a link are not stored",
    twin: Reported,
    rows: &[
        row(1, "RTA_DST", Restored, "routes"),
        row(2, "RTA_SRC", Restored, "routes"),
        row(3, "RTA_IIF", State, ""),
        row(4, "RTA_OIF", Restored, "routes"),
        row(5, "RTA_GATEWAY", Restored, "routes"),
        row(6, "RTA_PRIORITY", Restored, "routes"),
        row(7, "RTA_PREFSRC", Restored, "routes"),
        row(8, "RTA_METRICS", Restored, "routes"),
        row(9, "RTA_MULTIPATH", Restored, "routes, fidelity/half_lost"),
        row(11, "RTA_FLOW", SentBack, "fidelity/routes"),
        row(12, "RTA_CACHEINFO", Restored, "fidelity/routes"),
        row(15, "RTA_TABLE", Restored, "routes"),
        row(16, "RTA_MARK", State, ""),
        row(17, "RTA_MFC_STATS", State, ""),
        row(18, "RTA_VIA", Restored, "fidelity/routes").since("5.2"),
        row(19, "RTA_NEWDST", State, ""),
        row(20, "RTA_PREF", Restored, "routes"),
        row(21, "RTA_ENCAP_TYPE", SentBack, "fidelity/routes"),
        row(22, "RTA_ENCAP", SentBack, "fidelity/routes"),
        row(23, "RTA_EXPIRES", Used, ""),
        row(25, "RTA_UID", State, ""),
        row(
            26,
            "RTA_TTL_PROPAGATE",
            NotRead("only routes of MPLS have it, which is no family of pods"),
            "",
        ),
        row(30, "RTA_NH_ID", Restored, "fidelity/nexthops").since("5.3"),
        row(31, "RTA_FLOWLABEL", State, "").since("6.14"),
    ],
};

/// `RTA_*` in the hops of `RTA_MULTIPATH`.
pub const HOP: AttributeTable = AttributeTable {
    title: "Hops of multipath routes",
    source: "`RTA_*` behind `struct rtnexthop` in `RTA_MULTIPATH`",
    twin: Reported,
    rows: &[
        row(5, "RTA_GATEWAY", Restored, "routes"),
        row(11, "RTA_FLOW", SentBack, "fidelity/routes"),
        row(18, "RTA_VIA", Restored, "fidelity/routes").since("5.2"),
        row(21, "RTA_ENCAP_TYPE", SentBack, "fidelity/routes"),
        row(22, "RTA_ENCAP", SentBack, "fidelity/routes"),
    ],
};

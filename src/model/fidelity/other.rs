//! Resilient groups of nexthops, and traffic control.

use super::attribute::Treatment::{Named, NotRead, Restored, SentBack, State};
use super::attribute::TwinComparison::{Part, Reported};
use super::attribute::{AttributeTable, row};

/// `NHA_RES_GROUP_*`.
pub const RESILIENT: AttributeTable = AttributeTable {
    title: "Resilient groups of nexthops",
    source: "`NHA_RES_GROUP_*` in `NHA_RES_GROUP`",
    twin: Reported,
    rows: &[
        row(1, "NHA_RES_GROUP_BUCKETS", SentBack, "fidelity/nexthops"),
        row(2, "NHA_RES_GROUP_IDLE_TIMER", SentBack, "fidelity/nexthops"),
        row(
            3,
            "NHA_RES_GROUP_UNBALANCED_TIMER",
            SentBack,
            "fidelity/nexthops",
        ),
        row(4, "NHA_RES_GROUP_UNBALANCED_TIME", State, ""),
    ],
};

/// `TCA_*`.
pub const TRAFFIC: AttributeTable = AttributeTable {
    title: "Qdiscs, classes and filters",
    source: "`TCA_*` of `RTM_NEWQDISC`, `RTM_NEWTCLASS` and `RTM_NEWTFILTER`. [checkpoint-format.md](checkpoint-format.md#traffic) has \
             the kinds whose options can be sent back; others are named at the snapshot",
    twin: Part("qdiscs, classes and filters"),
    rows: &[
        row(1, "TCA_KIND", Restored, "fidelity/qdiscs, qdiscs"),
        row(2, "TCA_OPTIONS", SentBack, "fidelity/qdiscs, qdiscs"),
        row(3, "TCA_STATS", State, ""),
        row(4, "TCA_XSTATS", State, ""),
        row(
            5,
            "TCA_RATE",
            NotRead("a rate estimator counts, and delays no packet"),
            "",
        ),
        row(6, "TCA_FCNT", State, ""),
        row(7, "TCA_STATS2", State, ""),
        row(8, "TCA_STAB", Named, "fidelity/qdiscs"),
        row(10, "TCA_DUMP_INVISIBLE", State, ""),
        row(11, "TCA_CHAIN", Restored, "fidelity/qdiscs"),
        row(12, "TCA_HW_OFFLOAD", State, ""),
        row(13, "TCA_INGRESS_BLOCK", Named, "fidelity/qdiscs").since("4.16"),
        row(14, "TCA_EGRESS_BLOCK", Named, "fidelity/qdiscs").since("4.16"),
        row(15, "TCA_DUMP_FLAGS", State, ""),
        row(16, "TCA_EXT_WARN_MSG", State, "").since("6.3"),
    ],
};

//! The metrics of routes, each a row of one table.

use serde::{Deserialize, Serialize};

use crate::model::fidelity::attribute::Treatment::Restored;
use crate::model::fidelity::attribute::TwinComparison::Reported;
use crate::model::fidelity::attribute::{AttributeTable, row};

macro_rules! metrics {
    ($($metric:ident = $number:literal $kernel:literal),+ $(,)?) => {
        /// A route metric (`RTAX_*`, linux/rtnetlink.h), a number; its number among them is its value here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // each is documented in ip-route(8)
        #[repr(u8)]
        pub enum Metric {
            $($metric = $number,)+
        }

        impl Metric {
            /// The metric with this number.
            pub(crate) fn of(number: u16) -> Option<Self> {
                [$(Self::$metric),+].into_iter().find(|one| *one as u16 == number)
            }
        }

        /// `RTAX_*`.
        pub const METRIC: AttributeTable = AttributeTable {
            title: "Metrics of routes",
            source: "`RTAX_*` in `RTA_METRICS`",
            twin: Reported,
            rows: &[
                $(row($number, $kernel, Restored, "routes"),)+
                // A text: `congctl`.
                row(16, "RTAX_CC_ALGO", Restored, "fidelity/routes"),
            ],
        };
    };
}

metrics! {
    Lock = 1 "RTAX_LOCK",
    Mtu = 2 "RTAX_MTU",
    Window = 3 "RTAX_WINDOW",
    Rtt = 4 "RTAX_RTT",
    Rttvar = 5 "RTAX_RTTVAR",
    Ssthresh = 6 "RTAX_SSTHRESH",
    Cwnd = 7 "RTAX_CWND",
    Advmss = 8 "RTAX_ADVMSS",
    Reordering = 9 "RTAX_REORDERING",
    Hoplimit = 10 "RTAX_HOPLIMIT",
    Initcwnd = 11 "RTAX_INITCWND",
    Features = 12 "RTAX_FEATURES",
    RtoMin = 13 "RTAX_RTO_MIN",
    Initrwnd = 14 "RTAX_INITRWND",
    Quickack = 15 "RTAX_QUICKACK",
    FastopenNoCookie = 17 "RTAX_FASTOPEN_NO_COOKIE",
}

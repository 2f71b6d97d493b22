//! What gateways and targets answered.

use crate::model::{GatewayAnswer, IfName, Mac, TargetAnswer};
use crate::report::text::round_trip;

/// A gateway or a target of a pod, with its answer.
pub(super) struct Answered<'a> {
    /// The gateway's address, or the target.
    pub object: String,
    pub dev: Option<&'a IfName>,
    pub reachable: Option<bool>,
    pub has_never: bool,
    pub rtt_us: Option<u64>,
    pub lladdr: Option<Mac>,
}

/// The answers of a pod's gateways, then of its targets.
pub(super) fn answers<'a>(
    gateways: &'a [GatewayAnswer],
    targets: &'a [TargetAnswer],
) -> impl Iterator<Item = Answered<'a>> {
    let gateways = gateways.iter().map(|one| Answered {
        object: one.address.to_string(),
        dev: Some(&one.dev),
        reachable: one.reachable,
        has_never: one.never_answered,
        rtt_us: one.rtt_us,
        lladdr: one.lladdr,
    });
    let targets = targets.iter().map(|one| Answered {
        object: format!("{} {}", one.kind, one.target),
        dev: None,
        reachable: Some(one.reachable),
        has_never: false,
        rtt_us: one.rtt_us,
        lladdr: None,
    });
    gateways.chain(targets)
}

impl Answered<'_> {
    /// The answer in words.
    pub(super) fn words(&self) -> String {
        match (self.reachable, self.rtt_us) {
            (Some(true), Some(us)) => round_trip(us),
            (Some(true), None) => "answers".to_owned(),
            (Some(false), _) if self.has_never => "never answered".to_owned(),
            (Some(false), _) => "unreachable".to_owned(),
            (None, _) => "not probed".to_owned(),
        }
    }
}

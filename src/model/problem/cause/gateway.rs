use std::time::Duration;

use super::causes;

causes! {
    /// Causes found in probing gateways.
    GatewayCause {
        /// The gateway does not answer.
        NoAnswer { timeout: Duration } => GatewayUnreachable,
        /// The gateway's hardware address is set by hand.
        PermanentNeighbour => GatewayUnreachable,
        /// The kernel refused to probe.
        CannotProbe { error: String } => GatewayUnreachable,
        /// The pod does not have the interface.
        InterfaceMissing => GatewayUnreachable,
        /// No gateway could be probed.
        ProbeFailed { error: String } => Failed,
    }
}

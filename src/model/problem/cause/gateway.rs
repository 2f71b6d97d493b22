use std::time::Duration;

use super::causes;

causes! {
    /// Causes found in probing gateways.
    GatewayCause {
        NoAnswer { timeout: Duration } => GatewayUnreachable,
        PermanentNeighbour => GatewayUnreachable,
        CannotProbe { error: String } => GatewayUnreachable,
        InterfaceMissing => GatewayUnreachable,
        ProbeFailed { error: String } => Failed,
    }
}

//! Sentences about probing gateways.

use crate::model::problem::GatewayCause;
use crate::model::text::duration;

sentences! {
    GatewayCause {
        NoAnswer { timeout } => "no answer within {timeout}" (timeout = duration(*timeout)),
        PermanentNeighbour => "is a permanent neighbour: the kernel does not probe it",
        CannotProbe { error } => "cannot be probed: {error}",
        InterfaceMissing => "cannot be probed: the interface is missing",
        ProbeFailed { error } => "cannot probe gateways: {error}",
    }
}

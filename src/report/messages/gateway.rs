//! Sentences about probing gateways.

use std::fmt;

use crate::model::problem::GatewayCause;

impl fmt::Display for GatewayCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { timeout } => {
                let timeout = humantime::format_duration(*timeout);
                write!(f, "no answer within {timeout}")
            }
            Self::PermanentNeighbour => {
                f.write_str("is a permanent neighbour: the kernel does not probe it")
            }
            Self::CannotProbe { error } => write!(f, "cannot be probed: {error}"),
            Self::InterfaceMissing => f.write_str("cannot be probed: the interface is missing"),
            Self::ProbeFailed { error } => write!(f, "cannot probe gateways: {error}"),
        }
    }
}

//! Why a pod reaches nothing, by its present state alone.

use serde::Serialize;

use crate::model::problem::MatchingCause;
use crate::model::{IfName, Link, Problem};

/// A pod that reaches no other machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    /// The first link that should carry its packets, with its kind, as messages name it.
    pub link: String,
    /// What stops them.
    pub why: CutOffCause,
}

impl CutOff {
    /// The problem of such a pod.
    pub(crate) fn problem(&self) -> Problem {
        let why = self.why.clone();
        MatchingCause::CutOff { why }.warning(&self.link)
    }
}

/// What stops the packets of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutOffCause {
    /// The link itself.
    Link(LinkFault),
    /// A link of the host below it.
    Below {
        /// That one.
        link: IfName,
        /// What is wrong with it.
        fault: LinkFault,
    },
    /// The link's other end on the host is no port, and the host has no route to it.
    Loose(IfName),
    /// The pod has no address.
    NoAddress,
    /// The pod has no route that leads out.
    NoRoute,
}

/// What is wrong with a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkFault {
    /// It does not exist.
    Missing,
    /// It is down.
    Down,
    /// It is up and has no carrier.
    NoCarrier,
}

impl LinkFault {
    /// What is wrong with a link by its own flags; `None` is a link that does not exist.
    pub(crate) fn of(link: Option<&Link>) -> Option<Self> {
        match link.map(|link| link.flags) {
            None => Some(Self::Missing),
            Some(flags) if !flags.up => Some(Self::Down),
            Some(flags) if !flags.carrier => Some(Self::NoCarrier),
            Some(_) => None,
        }
    }
}

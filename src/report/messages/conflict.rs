//! Sentences about objects that have the place, the name or the address of another.

use std::fmt;

use super::and;
use crate::model::IfName;
use crate::model::problem::{ConflictCause, Holder};

impl fmt::Display for ConflictCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKind { now, then } => {
                write!(f, "is a {now} now, a {then} in the checkpoint")
            }
            Self::OtherVlan { now, then } => {
                write!(f, "is VLAN {now} now, {then} in the checkpoint")
            }
            Self::VlanIdTaken { by } => write!(
                f,
                "cannot be recreated: {by} has the same VLAN id on the same parent. Rename or remove {by} first"
            ),
            Self::OtherParent { now, then } => {
                write!(
                    f,
                    "is on {} now, on {} in the checkpoint",
                    name(now.as_ref()),
                    name(then.as_ref())
                )
            }
            Self::OtherBondMode { now, then } => write!(
                f,
                "has mode {now} now, {then} in the checkpoint; netfix never changes the mode of an existing bond"
            ),
            Self::OtherBond { now, then } => {
                write!(f, "is a port of {now} now, of {then} in the checkpoint")
            }
            Self::MacClaimed { others } | Self::AddressClaimed { others } => {
                write!(
                    f,
                    "{} has it as well; netfix does not choose between them",
                    and(others)
                )
            }
        }
    }
}

fn name(parent: Option<&IfName>) -> String {
    parent.map_or_else(
        || "a link of another namespace".to_owned(),
        ToString::to_string,
    )
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = &self.link {
            write!(f, "link {link} of ")?;
        }
        match &self.pod {
            Some(pod) => write!(f, "pod {pod} ({})", self.netns.escape_debug()),
            None => f.write_str("the host"),
        }
    }
}

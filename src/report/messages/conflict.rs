//! Sentences about objects that have the place, the name or the address of another.

use std::fmt;

use super::and;
use crate::model::IfName;
use crate::model::problem::{ConflictCause, Holder};
use crate::model::text::escape;

sentences! {
    ConflictCause {
        OtherKind { now, then } => "is a {now} now, a {then} in the checkpoint",
        OtherVlan { now, then } => "is VLAN {now} now, {then} in the checkpoint",
        VlanIdTaken { by } => "cannot be recreated: {by} has the same VLAN id on the same parent. Rename or remove {by} \
            first",
        OtherParent { now, then } => "is on {now} now, on {then} in the checkpoint"
            (now = name(now.as_ref()), then = name(then.as_ref())),
        OtherBondMode { now, then } => "has mode {now} now, {then} in the checkpoint; netfix never changes the mode of \
            an existing bond",
        OtherBond { now, then } => "is a port of {now} now, of {then} in the checkpoint",
        MacClaimed { others } => "{others} has it as well; netfix does not choose between them" (others = and(others)),
        AddressClaimed { others } => "{others} has it as well; netfix does not choose between them"
            (others = and(others)),
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
            Some(pod) => write!(f, "pod {pod} ({})", escape(&self.netns)),
            None => f.write_str("the host"),
        }
    }
}

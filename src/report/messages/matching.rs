//! Sentences about matching stored state with namespaces.

use std::fmt;

use super::{and, described, numbers};
use crate::model::problem::MatchingCause;

impl fmt::Display for MatchingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherMachine => {
                "the checkpoint was written on another machine and is not used. Run `netfix snapshot` here"
            }
            Self::OtherBoot => {
                "the checkpoint was written before this machine's last boot and is not used: its namespace is gone"
            }
            Self::NetnsGone => {
                "the network namespace is gone, and with it the pod. The next `netfix snapshot` removes the checkpoint"
            }
            Self::NoPodAtPath => "no running pod has a network namespace at this path",
            Self::NetnsReplaced => {
                "another network namespace is at this path now: the pod was replaced and its checkpoint is not used"
            }
            Self::NetnsUnproven => {
                "a namespace with the same inode exists, but this kernel has no namespace cookies, and no process, \
                 mount or runtime proves that it is the same one: the checkpoint is not used"
            }
            Self::BareWithoutCheckpoint => {
                "has no interface and no checkpoint: what it lost is unknown"
            }
            Self::WithoutCheckpoint => "has no checkpoint: its interfaces are left unchanged",
            Self::NoCheckpoints => {
                "no checkpoint is stored for this selection. Run `netfix snapshot` while the network works"
            }
            Self::NodeOfOtherMachine => {
                "was written on another machine and is not used. Each machine needs a state folder of its own: was \
                 this one copied or shared?"
            }
            Self::NodeOfOtherBoot => "was written before this machine's last boot and is not used",
            Self::UnknownParent => {
                "--parent names no link of the host, no link of the stored node state, and no VLAN of one"
            }
            Self::PodReplaced { now, then } => {
                return write!(
                    f,
                    "another pod has this namespace now: {}. The checkpoint is for {} and is not used",
                    described(now),
                    numbers(then)
                );
            }
            Self::PodRecreated { now, then } => {
                return write!(
                    f,
                    "{} was deleted and recreated: it is {} now. The checkpoint is for {} and is not used. Run `netfix \
                     snapshot`",
                    then.title(),
                    numbers(now),
                    numbers(then)
                );
            }
            Self::AmbiguousCheckpoints { ids } => {
                return write!(
                    f,
                    "the paths of several checkpoints lead to this namespace, and no runtime reports its sandbox: none \
                     of {} is used",
                    and(ids)
                );
            }
            Self::Superseded { by } => {
                return write!(f, "superseded by {by} (same namespace, more complete)");
            }
            Self::SeveralPods { pods } => {
                return write!(f, "{pods} pods begin like this: give more of the id");
            }
        })
    }
}

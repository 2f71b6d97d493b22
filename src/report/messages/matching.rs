//! Sentences about matching stored state with namespaces.

use super::{and, described, numbers};
use crate::model::problem::MatchingCause;
use crate::model::text::count;

sentences! {
    MatchingCause {
        OtherMachine => "the checkpoint was written on another machine and is not used. Run `netfix snapshot` here",
        OtherBoot => "the checkpoint was written before this machine's last boot and is not used: its namespace is gone",
        NetnsGone => "the network namespace is gone, and with it the pod. The next `netfix snapshot` removes the \
            checkpoint",
        NoPodAtPath => "no running pod has a network namespace at this path",
        NetnsReplaced => "another network namespace is at this path now: the pod was replaced and its checkpoint is not \
            used",
        NetnsUnproven => "a namespace with the same inode exists, but this kernel has no namespace cookies, and no \
            process, mount or runtime proves that it is the same one: the checkpoint is not used",
        BareWithoutCheckpoint => "has no interface and no checkpoint: what it lost is unknown",
        WithoutCheckpoint => "has no checkpoint: its interfaces are left unchanged",
        NoCheckpoints => "no checkpoint is stored for this selection. Run `netfix snapshot` while the network works",
        NodeOfOtherMachine => "was written on another machine and is not used. Each machine needs a state folder of its \
            own: was this one copied or shared?",
        NodeOfOtherBoot => "was written before this machine's last boot and is not used",
        UnknownParent => "--parent names no link of the host, no link of the stored node state, and no VLAN of one",
        PodReplaced { now, then } => "another pod has this namespace now: {now}. The checkpoint is for {then} and is not \
            used" (now = described(now), then = numbers(then)),
        PodRecreated { now, then } => "{title} was deleted and recreated: it is {now} now. The checkpoint is for {then} \
            and is not used. Run `netfix snapshot`" (title = then.title(), now = numbers(now), then = numbers(then)),
        AmbiguousCheckpoints { ids } => "the paths of several checkpoints lead to this namespace, and no runtime reports \
            its sandbox: none of {ids} is used" (ids = and(ids)),
        Superseded { by } => "superseded by {by} (same namespace, more complete)",
        SeveralPods { pods } => "{pods} begin like this: give more of the id" (pods = count(*pods, "pod")),
    }
}

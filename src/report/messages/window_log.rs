//! The lines of a window's log.

use std::fmt;

use crate::maintenance::event::{Budget, Event, KubeletEvent};
use crate::model::window::command_line;
use crate::report::text::duration;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubelet(event) => event.fmt(f),
            Self::ResumingWindow => {
                f.write_str("resuming the interrupted window from its snapshot")
            }
            Self::Checking => f.write_str("checking that every pod can be restored"),
            Self::TakingSnapshot => f.write_str("taking a snapshot"),
            Self::SnapshotTaken { pods } => write!(f, "snapshot of {pods} pods is complete"),
            Self::SilentGateways { count } => {
                write!(
                    f,
                    "{count} gateways of pods do not answer before the upgrade"
                )
            }
            Self::Running { argv } => write!(f, "running {}", command_line(argv)),
            Self::CommandSucceeded { elapsed } => {
                write!(f, "COMMAND succeeded (exit 0, {})", duration(*elapsed))
            }
            Self::CommandFailed(problem) => write!(f, "{problem}; restoring the pods nevertheless"),
            Self::Restoring => f.write_str("waiting for the NIC, then restoring pods"),
            Self::RestoringAgain => f.write_str("the restore is incomplete: trying once more"),
            Self::Restored {
                restored,
                correct,
                failed,
            } => restore(f, *restored, *correct, *failed),
            Self::Unrestored { pods } => {
                write!(
                    f,
                    "{pods} pods are not restored, and kubelet is about to start:"
                )
            }
            Self::UnrestoredPod {
                title,
                state,
                is_bare,
            } => {
                let fate = if *is_bare {
                    "it has no address: a kubelet that checks its namespace (dockershim) rebuilds it at once, others \
                     leave it Running without network"
                } else {
                    "a kubelet that checks its namespace (dockershim) rebuilds it if it finds no address"
                };
                write!(f, "  pod {title}: {state}; {fate}")
            }
            Self::Verifying => f.write_str("probing gateways"),
            Self::Verified { reachable, pods } => {
                write!(f, "{reachable} of {pods} pods reach a gateway")
            }
            Self::Watching { settle } => write!(
                f,
                "watching for {} that no pod is rebuilt",
                duration(*settle)
            ),
            Self::RebuildChecked { same, pods } if same == pods => {
                write!(f, "no pod was rebuilt ({same} of {pods} checked)")
            }
            Self::RebuildChecked { same, pods } => {
                write!(f, "{same} of {pods} pods were not rebuilt")
            }
            Self::PhaseEnded { name, ok: true } => write!(f, "{name}: complete"),
            Self::PhaseEnded { name, ok: false } => write!(f, "{name}: incomplete"),
            Self::NotSaved(problem) => {
                write!(
                    f,
                    "{problem}; the window continues and tries to save it again"
                )
            }
            Self::Failed(problem) => problem.fmt(f),
        }
    }
}

impl fmt::Display for KubeletEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
        Self::Pausing { unit } => write!(f, "pausing {unit}"),
        Self::Paused {
            unit,
            timer,
            deadline,
        } => write!(
            f,
            "{unit} is stopped and masked; {timer} starts it again after {} at the latest",
            duration(*deadline)
        ),
        Self::StillPaused => f.write_str("kubelet is still paused by the interrupted window"),
        Self::NothingToPause => f.write_str("no kubelet runs: nothing to pause"),
        Self::PausedFor { seconds, budget } => {
            let is_now = *seconds >= budget.limit();
            write!(f, "kubelet is paused for {seconds} s: ")?;
            match budget {
                Budget::NotReady(_) if is_now => {
                    f.write_str("the node is marked NotReady about now; its pods keep running")
                }
                Budget::NotReady(limit) => {
                    write!(f, "after {limit} s the node is marked NotReady")
                }
                Budget::Eviction(_) if is_now => f.write_str(
                    "the pods are marked for eviction about now, and are killed when kubelet is back",
                ),
                Budget::Eviction(limit) => {
                    write!(f, "after {limit} s the pods are marked for eviction")
                }
                Budget::Deadline(_) if is_now => f.write_str("the deadline starts it now"),
                Budget::Deadline(limit) => write!(f, "the deadline starts it after {limit} s"),
            }
        }
        Self::HeldForRepair => f.write_str(
            "kubelet stays paused for a repair: repair the pods, run `netfix restore`, then `netfix resume`",
        ),
        Self::Resuming { unit } => write!(f, "resuming {unit}"),
        Self::Resumed { unit } => write!(f, "{unit} runs again"),
    }
    }
}

fn restore(
    f: &mut fmt::Formatter<'_>,
    restored: usize,
    correct: usize,
    failed: usize,
) -> fmt::Result {
    match (restored, failed) {
        (0, 0) => write!(f, "{correct} pods already correct; nothing to do"),
        (_, 0) => write!(f, "{restored} pods restored, {correct} already correct"),
        _ => write!(
            f,
            "{restored} pods restored, {correct} already correct, {failed} not restored"
        ),
    }
}

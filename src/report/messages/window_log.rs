//! The lines of a window's log.

use crate::model::text::{count, duration, escape};
use crate::model::window::command_line;
use crate::report::messages::maintenance::repaired;
use crate::report::verb::verify::gateways;
use crate::report::window::words::reason;
use crate::window::event::{Budget, Event};

sentences! {
    Event {
        ResumingWindow => "resuming the interrupted window from its snapshot",
        Checking => "checking that every pod can be restored",
        TakingSnapshot => "taking a snapshot",
        SnapshotTaken { pods } => "snapshot of {pods} is complete" (pods = count(*pods, "pod")),
        LateSnapshot { pods } => "{pods} got the network after the snapshot: saved too" (pods = count(*pods, "pod")),
        RestoresLost(lost) => "{lost}; the window restores {them}" (them = repaired(lost)),
        SilentGateways { count: silent } => "no answer from {gateways} before the upgrade"
            (gateways = count(*silent, "gateway")),
        Running { argv } => "running {argv}" (argv = command_line(argv)),
        RunningHook { command } => "running {command}" (command = escape(command)),
        CommandSucceeded { elapsed } => "COMMAND succeeded (exit 0, {elapsed})" (elapsed = duration(*elapsed)),
        CommandFailed(problem) => "{problem}; restoring the pods nevertheless",
        RollingBack(rollback) => "{why}: running the rollback {argv}" (
            why = reason(rollback), argv = command_line(&rollback.run.argv)
        ),
        RolledBack { elapsed } => "the rollback succeeded (exit 0, {elapsed})" (elapsed = duration(*elapsed)),
        Restoring => "waiting for the NIC, then restoring pods",
        RestoringAgain => "the restore is incomplete: trying once more",
        Restored { restored: 0, correct, failed: 0 } => "{correct} already correct; nothing to do"
            (correct = count(*correct, "pod")),
        Restored { restored, correct, failed: 0 } => "{restored} restored, {correct} already correct"
            (restored = count(*restored, "pod")),
        Restored { restored, correct, failed } => "{restored} restored, {correct} already correct, {failed} not restored"
            (restored = count(*restored, "pod")),
        Unrestored { pods } => "{pods} not restored, and kubelet is about to start:" (pods = count(*pods, "pod")),
        UnrestoredPod { title, state, is_bare: true } => "  pod {title}: {state}; it has no address: a kubelet that \
            checks its namespace (dockershim) rebuilds it at once, others leave it Running without network",
        UnrestoredPod { title, state, is_bare: false } => "  pod {title}: {state}; a kubelet that checks its namespace \
            (dockershim) rebuilds it if it finds no address",
        Verifying => "probing gateways",
        Verified(reached) => "{words}" (words = gateways(reached)),
        LookingAgain => "observing every pod, host link and gateway again",
        Watching { settle } => "watching for {settle} that nothing is lost again and no pod is rebuilt" (settle = duration(*settle)),
        RebuildChecked { same, pods } if same == pods => "no pod was rebuilt ({same} of {pods} checked)",
        RebuildChecked { same, pods } => "{same} of {pods} known not to be rebuilt" (pods = count(*pods, "pod")),
        PhaseEnded { name, ok: true } => "{name}: complete",
        PhaseEnded { name, ok: false } => "{name}: incomplete",
        NotSaved(problem) => "{problem}; the window continues and tries to save it again",
        Failed(problem) => "{problem}",
        Pausing { unit } => "pausing {unit}",
        Paused { unit, timer, deadline } => "{unit} is stopped and masked; {timer} starts it again after {deadline} at \
            the latest" (deadline = duration(*deadline)),
        StillPaused => "kubelet is still paused by the interrupted window",
        NothingToPause => "no unit is paused in this window",
        PausedFor { seconds, budget } if *seconds >= budget.limit() => "kubelet is paused for {seconds} s: {now}"
            (now = now(*budget)),
        PausedFor { seconds, budget } => "kubelet is paused for {seconds} s: {budget}",
        HeldForRepair => "kubelet stays paused for a repair: repair the pods, run `netfix restore`, then `netfix resume` \
            (--force if a pod stays broken)",
        Resuming { unit } => "resuming {unit}",
        Resumed { unit } => "{unit} runs again",
        LeftOut { bytes } => "{bytes} bytes left out here (--log-limit)",
    }
}

sentences! {
    Budget {
        NotReady(limit) => "after {limit} s the node is marked NotReady",
        Eviction(limit) => "after {limit} s the pods are marked for eviction",
        Deadline(limit) => "the deadline starts it after {limit} s",
    }
}

/// What happens when the limit is reached.
fn now(budget: Budget) -> &'static str {
    match budget {
        Budget::NotReady(_) => "the node is marked NotReady about now; its pods keep running",
        Budget::Eviction(_) => {
            "the pods are marked for eviction about now, and are killed when kubelet is back"
        }
        Budget::Deadline(_) => "the deadline starts it now",
    }
}

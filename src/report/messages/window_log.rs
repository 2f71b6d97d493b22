//! The lines of a window's log.

use std::fmt;

use crate::model::text::{count, duration, escape, join};
use crate::model::window::{PhaseName, command_line};
use crate::progress::Wait;
use crate::report::messages::maintenance::repaired;
use crate::report::messages::or_nothing;
use crate::report::text::{expected_outage, pod_noun, rehearsed};
use crate::report::verb::verify::gateways;
use crate::report::window::words::{others, reason};
use crate::window::event::{
    Budget, Event, PodCount, RebuildCheck, SignalEffect, UserCommand, WindowMoment,
};

fn not_restored(count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    format!(", {count} not")
}

/// A device inside a pod is no link of the host.
fn or_host(links: String) -> String {
    if links.is_empty() {
        "devices of pods".to_owned()
    } else {
        links
    }
}

sentences! {
    Event {
        Lost { links } => "{links}: lost, and back; restoring the pods" (links = or_host(join(links, ", "))),
        ResumingWindow => "resuming the interrupted window from its snapshot",
        Checking => "checking that every pod can be restored",
        TakingSnapshot => "taking a snapshot",
        SnapshotTaken { pods } => "snapshot of {pods} is complete",
        Rehearsed(figures) => "{rehearsed}; {expected}" (rehearsed = rehearsed(figures), expected = expected_outage(figures)),
        LateSnapshot { pods } => "{pods} got the network after the snapshot: saved too",
        RestoresLost(lost) => "{lost}; the window restores {them}" (them = repaired(lost)),
        SilentGateways { count: silent } => "no answer from {gateways} before the upgrade"
            (gateways = count(*silent, "gateway")),
        Running { argv, limit } => "running {argv} (for at most {limit})"
            (argv = command_line(argv), limit = duration(*limit)),
        RunningHook { command } => "running {command}" (command = escape(command)),
        CommandSucceeded { elapsed } => "COMMAND succeeded (exit 0, {elapsed})" (elapsed = duration(*elapsed)),
        CommandFailed(problem) => "{problem}; restoring the pods anyway",
        TimedOut { program, pid, limit, grace } => "{program} (pid {pid}) still runs after {limit}: sent SIGTERM to it and to all \
            that it started; SIGKILL follows after {grace}" (limit = duration(*limit), grace = duration(*grace)),
        KilledAtLimit { program, pid } => "{program} (pid {pid}) still runs after SIGTERM: sent SIGKILL",
        DoesNotEnd { program, pid } => "{program} (pid {pid}) does not end after SIGKILL: continuing without its end",
        Signal { signal, effect } => "{signal}{effect}",
        RollingBack { rollback, limit } => "{why}: running the rollback {argv} (for at most {limit})" (
            why = reason(rollback), argv = command_line(&rollback.run.argv), limit = duration(*limit)
        ),
        RolledBack { elapsed } => "the rollback succeeded (exit 0, {elapsed})" (elapsed = duration(*elapsed)),
        KernelLogged(line) if line.cause.is_none() => "kernel: {text}" (text = escape(&line.text)),
        KernelLogged(line) => "kernel: {text} ({cause})" (text = escape(&line.text), cause = or_nothing("", line.cause.as_ref())),
        Restoring => "waiting for the NIC, then restoring pods",
        ConnectionsRestored { restored, left } => "{restored} restored{left}" (
            restored = count(*restored, "masqueraded connection"), left = not_restored(*left)),
        RestoringAgain => "the restore is incomplete: trying once more",
        Restored { restored: 0, correct, failed: 0, is_selection } => "{correct} already correct; nothing to do"
            (correct = count(*correct, pod_noun(*is_selection))),
        Restored { restored, correct, failed: 0, is_selection } => "{restored} restored, {correct} already correct"
            (restored = count(*restored, pod_noun(*is_selection))),
        Restored { restored, correct, failed, is_selection } => "{restored} restored, {correct} already correct, {failed} not restored"
            (restored = count(*restored, pod_noun(*is_selection))),
        Unrestored { pods, unit: None } => "{pods} not restored:",
        Unrestored { pods, unit: Some(unit) } => "{pods} not restored, and {unit} is about to start. With dockershim it rebuilds a \
            pod without an address at once; otherwise the pod stays Running without network:",
        UnrestoredPod { title, state, is_bare: true } => "  pod {title}: {state}, no address",
        UnrestoredPod { title, state, is_bare: false } => "  pod {title}: {state}",
        MoreUnrestored { pods } => "  and {pods} more (`netfix report -v` lists all)",
        Verifying => "probing gateways",
        Verified(reached) => "{words}" (words = gateways(reached)),
        LookingAgain => "observing every pod, host link and gateway again",
        Watching { settle } => "watching {settle} for lost links and rebuilt pods" (settle = duration(*settle)),
        RebuildChecked { check, is_selection } => "{words}" (words = rebuild_check(check, *is_selection)),
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
        Resumed { unit } => "{unit} is running again",
        LeftOut { bytes } => "{bytes} bytes left out here (--log-limit)",
    }
}

impl fmt::Display for PodCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&count(self.pods, pod_noun(self.is_selection)))
    }
}

sentences! {
    UserCommand {
        Command => "COMMAND",
        Rollback => "the rollback",
        Before => "--before",
        After => "--after",
    }
}

sentences! {
    SignalEffect {
        Passed { program, pid } if program.is_before_restore() => " passed to {program} (pid {pid}); netfix restores the pods when \
            it ends; a third one kills it",
        Passed { program, pid } => " passed to {program} (pid {pid}); a third one kills it",
        Killed { program, pid } => ": {program} killed (pid {pid})",
        OnPhase(moment) => ": {does}" (does = on_phase(*moment)),
    }
}

/// What a signal does while no command of the user runs.
fn on_phase(moment: WindowMoment) -> &'static str {
    match (moment.phase, moment.waits) {
        (None | Some(PhaseName::Check | PhaseName::Snapshot), _) => {
            "the window ends before anything is changed"
        }
        (Some(PhaseName::Loss), _) => "the pods are restored first",
        (Some(PhaseName::Pause), _) => "COMMAND does not run",
        (Some(PhaseName::Restore), Some(Wait::Device | Wait::Carrier)) => {
            "netfix stops waiting for the NIC, and restores what is possible"
        }
        (Some(PhaseName::Restore), Some(Wait::Manager | Wait::Loss)) => {
            "netfix stops waiting for the network manager, and completes the restore"
        }
        (Some(PhaseName::Command | PhaseName::Rollback | PhaseName::Restore), _) => {
            "the restore is completed first"
        }
        (Some(PhaseName::Verify), _) => "the probes are completed first; later waits are skipped",
        (Some(PhaseName::Repair), _) => "netfix stops waiting for the repair (--keep-paused)",
        (Some(PhaseName::Resume), _) => "the start of kubelet is completed first",
        (Some(PhaseName::RebuildCheck), _) => {
            "netfix stops watching the pods, and checks everything a last time"
        }
    }
}

sentences! {
    Budget {
        NotReady(limit) => "after {limit} s the node is marked NotReady",
        Eviction(limit) => "after {limit} s the pods are marked for eviction",
        Deadline(limit) => "the deadline starts it after {limit} s",
    }
}

fn rebuild_check(check: &RebuildCheck, is_selection: bool) -> String {
    let RebuildCheck {
        pods,
        same,
        restarted,
        gone,
        ..
    } = *check;
    let rebuilt = if same == pods {
        format!("no pod was rebuilt ({same} of {pods} checked)")
    } else {
        format!(
            "{same} of {} verified: not rebuilt",
            PodCount { pods, is_selection }
        )
    };
    rebuilt + &others(restarted, gone)
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

//! Sentences about a window: its record, COMMAND, kubelet and rebuilt pods.

use std::fmt;

use crate::model::fate::{ContainerChange, Excuse, LastSeen};
use crate::model::next::NextStep;
use crate::model::problem::{
    AlreadyLost, CommandCause, ConditionCause, DetachedCause, GuardCause, HookCause, JobEnd,
    KubeletCause, RebuildCause, RecordCause, RollbackCause, SystemdCause, WindowCause,
};
use crate::model::text::{count, duration, escape, join};
use crate::report::messages::{and, observed, or_nothing};
use crate::report::text::verb;

sentences! {
    GuardCause {
        Deleted { below } if below.is_empty() => "was deleted: left deleted. `netfix restore` recreates it, `netfix snapshot \
            --accept host` gives it up",
        Deleted { below } => "was deleted while {below} stayed: left deleted. `netfix restore` recreates it, `netfix snapshot \
            --accept host` gives it up" (below = and(below)),
        Repeats { attempts } => "lost again after {attempts} in a row: netfix guard restores it no more. Find what takes it \
            away, then run `netfix restore`" (attempts = count(*attempts as usize, "restore")),
        Stopped => "is enabled and does not run: nothing restores pods after a loss. Run `systemctl restart netfix-guard`",
        Paused { until } => "held until {until} all the same: `netfix resume` ends that",
        Resumed => "no longer held",
        NoStateDirectory => "no snapshot was ever taken: there is nothing to restore from. Run `netfix snapshot`",
        Failed { error } => "cannot watch: {error}",
    }
}

sentences! {
    WindowCause {
        Open { started, command, pid, now } => "a window is open since {started}, by `netfix {command}` (pid {pid}): {now}",
        Abandoned { started, command, pid, now } => "the window of `netfix {command}` is open since {started}, and its netfix \
            (pid {pid}) is gone: {now}",
        NotResumed { started, now } => "the pause by hand of {started} is open: {now}",
        Runs { command, pid, phase: Some(phase), since, lost } => "a window runs: phase {phase}, since {since} (`netfix {command}`, \
            pid {pid}){pods}" (since = duration(*since), pods = without_network(*lost)),
        Runs { command, pid, phase: None, since, lost } => "a window runs, since {since} (`netfix {command}`, pid {pid}){pods}"
            (since = duration(*since), pods = without_network(*lost)),
        NotResumable { now } if now.next == NextStep::Force => "{dangers}. Nothing was changed. {next}"
            (dangers = observed::named(now), next = observed::next(now)),
        NotResumable { now } => "{dangers}: a kubelet that starts now may rebuild pods. Nothing was changed. {next}. `netfix resume \
            --force` starts kubelet in any case" (dangers = observed::named(now), next = observed::next(now)),
        SnapshotSkipped { command, pid } => "no snapshot was taken: a window runs (`netfix {command}`, pid {pid})",
        DeadlineRepeated { unit } => "netfix died in this window, and {unit} did not start at the deadline. systemd runs \
            `netfix restore` now, then starts {unit}. Run `netfix resume`, which closes the window",
        RecordReplaced { error, aside } => "{error}; netfix uses the record in /run/netfix, and keeps this file as {aside}",
        RecordLost { error, aside } => "{error}; netfix keeps this file as {aside}. kubelet is not paused. How the window \
            ended is unknown. Run `netfix check`",
        CommandStillRuns { pid } => "COMMAND of this window still runs (pid {pid}). Wait for its end or stop it, then \
            run this again",
        RollbackStillRuns { pid } => "the rollback of this window still runs (pid {pid}). Wait for its end or stop it, then \
            run this again",
        NoSuchDevice => "the host has no such device",
        NoPodOnDevice => "no pod has an interface on this device, or on another device of the same driver",
        NicAbsent => "this NIC of the host existed before COMMAND and is missing",
        NoneOpen => "no window is open",
        StillOpen { limit } => "still open after {limit}. Run `netfix wait` again, or `netfix status`"
            (limit = duration(*limit)),
        NothingPaused => "no window is open: netfix has paused nothing",
        NoTerminal => "cannot ask for confirmation: stdin or stderr is not a terminal. Use --yes",
        NoUnit => "cannot run as a systemd unit: systemd is not running, or is in another network namespace. Nothing was \
            changed. Use --foreground",
        NotConfirmed => "not confirmed; nothing was changed",
        Signals { error } => "cannot catch signals: {error}",
        NotRestorable { problems } => "{problems} would prevent a full restore (listed above). Nothing was changed. Remove \
            the causes; with --force the window opens all the same, and what they name is not restored" (problems = count(*problems, "problem")),
        AlreadyLost { lost } => "{lost} (listed above). Nothing was changed. Run `netfix restore` first, or use --repair: then \
            the window restores them too",
        RestoresLost { lost } => "{lost}; the window restores {them}" (them = repaired(lost)),
        NotSelected { pods } => "{many} at risk here but not selected ({names}): COMMAND takes their network too, and this window \
            would not restore it. Select no pods"
            (many = number_of(pods.len(), "is", "are"), names = and(pods.iter().map(|pod| escape(&pod.title())))),
        LostUnselected { pods, at_risk } => "{lost} of {risk} that were at risk and not selected lost something ({names}). Run `netfix \
            restore`" (
            lost = pods.len(), risk = count(*at_risk, "pod"), names = and(pods.iter().map(|pod| escape(&pod.title())))
        ),
        NamespaceUnreadable { error } => "{error}",
        Panicked => "netfix failed in this window (a bug: please report it). Run `netfix status`, then `netfix restore`",
        SilentBefore => "does not answer; it did not answer before the window either",
        NotProbedBefore => "could not be probed; it could not be probed before the window either",
        TargetSilentBefore => "cannot be reached; it could not be reached before the window either",
    }
}

impl fmt::Display for AlreadyLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = count(self.pods, "pod");
        match (self.host, self.pods) {
            (true, 0) => f.write_str("the host has lost a part of its network already"),
            (true, _) => write!(f, "the host and {pods} have lost their network already"),
            (false, number) => {
                let lose = verb(number, "has lost its", "have lost their");
                write!(f, "{pods} {lose} network already")
            }
        }
    }
}

/// What of it the window restores.
pub(super) fn repaired(lost: &AlreadyLost) -> String {
    let all = lost.pods + usize::from(lost.host);
    match (lost.without_checkpoint, all) {
        (0, 1) => "it".to_owned(),
        (0, _) => "them".to_owned(),
        (without, all) if without == all => {
            "nothing of that, for no checkpoint has what they lost".to_owned()
        }
        (without, _) => format!("all but {without}, which have no checkpoint"),
    }
}

/// How many pods are without network in a window.
fn without_network(lost: usize) -> String {
    match lost {
        0 => String::new(),
        lost => format!("; {} no network meanwhile", number_of(lost, "has", "have")),
    }
}

/// A count of pods with its verb.
fn number_of(pods: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(pods, "pod"), verb(pods, one, many))
}

sentences! {
    DetachedCause {
        NotDetached { cause } => "{cause}. Use --foreground to run without a unit",
        NotQueried { cause } => "{cause}. The window does not need this process: run `netfix status --follow`",
        EndUnknown => "ended, and its exit code is not known. Run `netfix status`, then `netfix report`",
        Killed { signal, now: Some(now) } => "killed by signal {signal}; it left the window open: {now}",
        Killed { signal, now: None } => "killed by signal {signal}; it left a window open whose record cannot be read. Run `netfix \
            status`",
        KilledBefore { signal } => "killed by signal {signal} before it changed anything: no window is open",
        SharedFile { error } => "{error}",
    }
}

sentences! {
    RecordCause {
        Nothing => "no window is recorded: `netfix upgrade` and `netfix pause` record one",
        NoSuch { windows } if windows.is_empty() => "no such window; none is recorded",
        NoSuch { windows } => "no such window; recorded: {windows}" (windows = windows.join(", ")),
        Ambiguous { windows } => "several windows match: {windows}" (windows = windows.join(", ")),
        Gone => "was removed while netfix read it",
    }
}

sentences! {
    CommandCause {
        Exited { code } => "failed with exit code {code}",
        Killed { signal } => "killed by signal {signal}",
        NotStarted { error } => "could not be started: {error}",
        NotInPath => "no program of this name is in PATH (a builtin of the shell needs `sh -c`). Nothing was changed",
        NotAProgram { error } => "cannot be run: {error}. Nothing was changed",
        NoInterpreter { interpreter, error } => "cannot be run: its first line names {interpreter} as its interpreter: {error}. Nothing was \
            changed",
        UnknownModule => "modprobe knows no module of this name for the kernel that runs. Check the name, unless COMMAND installs it",
        TimedOut { limit } => "still ran after {limit} (--command-timeout): netfix killed it" (limit = duration(*limit)),
        NotEnded { limit } => "still ran after {limit} (--command-timeout), and did not end after SIGKILL: the kernel keeps it, \
            usually in a driver" (limit = duration(*limit)),
        EndUnknown => "its exit status is unknown",
        InterruptedUnchanged => "interrupted: nothing was changed",
        InterruptedBefore => "interrupted: COMMAND did not run",
        Interrupted { signal, is_rollback, restored, pods } => "{signal} interrupted {program}{of_pods}" (
            program = if *is_rollback { "the rollback" } else { "COMMAND" }, of_pods = restored_of(*restored, *pods)
        ),
        InterruptedRestore => "interrupted in the restore: netfix did not wait any longer",
        InterruptedRepair => "interrupted: netfix stopped waiting for the repair (--keep-paused)",
        InterruptedRebuildCheck => "interrupted: netfix stopped watching whether a pod is rebuilt",
    }
}

/// How many pods are restored, after a semicolon; nothing where the window has no pod.
fn restored_of(restored: usize, pods: usize) -> String {
    let words = (pods > 0).then(|| format!("{restored} of {} restored", count(pods, "pod")));
    or_nothing("; ", words.as_ref())
}

sentences! {
    ConditionCause {
        UnlessSucceeded => "succeeded (--unless): already done, no window is needed",
        InVersion => "already at the requested version (--driver-version): no window is needed",
        UnlessFailed { cause } => "--unless {cause}: cannot determine whether a window is needed. Nothing was changed",
        VersionUnreadable { error } => "cannot read the version of this driver: {error}",
        NoSuchDriver => "no NIC of this host has this driver, and the kernel has no module of this name. Nothing was changed. Use \
            --force if COMMAND installs it",
        OtherVersion { running: Some(running), version } => "version is {running}, expected {version}"
            (running = escape(running), version = escape(version)),
        OtherVersion { running: None, version } => "not loaded, or reports no version; expected {version}" (version = escape(version)),
    }
}

sentences! {
    HookCause {
        BeforeFailed { cause } => "--before {cause}: COMMAND did not run; only the snapshot was written",
        AfterFailed { cause } => "--after {cause}; the exit code does not depend on it",
        AfterTimedOut { limit } => "--after still ran after {limit}: netfix killed it; the exit code does not depend on it"
            (limit = duration(*limit)),
    }
}

sentences! {
    RollbackCause {
        NicMissing { wait } => "still missing {wait} after COMMAND: netfix ran the rollback" (wait = duration(*wait)),
        NoCarrier { wait } => "still without carrier {wait} after COMMAND: netfix ran the rollback"
            (wait = duration(*wait)),
        SafeMode => "its driver runs in safe mode after COMMAND: netfix ran the rollback",
        PodsLost { lost, allowed } => "{pods} lost after the restore (--max-lost {allowed}): netfix ran the rollback"
            (pods = count(*lost, "pod")),
        LostAgain => "the network was lost again and again after the restore: netfix ran the rollback",
        AlreadyRan => "netfix died in this window after it had started the rollback: neither COMMAND nor the rollback runs \
            again in this window. Run `netfix upgrade` again for a new window",
        Failed { cause } => "rollback {cause}",
        Useless { cause: None } => "the rollback succeeded, but the network is not back",
        Useless { cause: Some(cause) } => "the rollback {cause}; the network is not back",
        NotRun => "the rollback did not run, because a signal interrupted the window. Run it by hand if the NIC does not come \
            back",
    }
}

sentences! {
    SystemdCause {
        Unreachable { why } => "systemd cannot be reached over D-Bus: {why}",
        Refused { call, why } => "{call}: {why}",
        TimedOut { call, limit } => "{call}: no answer from systemd within {limit}" (limit = duration(*limit)),
        NoSuchUnit { unit } => "unit {unit} does not exist",
        SeveralRun { units } => "{units} are running: choose one with --unit" (units = units.join(" and ")),
        RunsMasked { unit } => "{unit} is running but masked: once stopped, it could not be started. Run `systemctl \
            unmask {unit}` first",
        StartsAgain { unit, sub } => "{unit} does not stay stopped: something starts it again (it is {sub})",
        NotMasked { unit, folder, error, refused } => "{unit} cannot be masked: {folder}: {error}{refused}"
            (refused = or_nothing("; ", refused.as_ref())),
        NotUnmasked { link, error } => "{link}: {error}",
        NotStarted { unit, job, active, sub } => "{unit} does not start ({job}): it is {active} ({sub})"
            (job = job_end(job)),
        ProgramMissing { name } => "cannot arm the deadline: {name} is missing",
        NotArmed { timer, job } => "{timer} is not armed: {job}" (job = job_end(job)),
        NoOwnPath { error } => "netfix's own path: {error}",
        NotPrepared { error } => "cannot start netfix as a unit: {error}",
        NotLaunched { unit, result } => "{unit} does not start: {result}",
    }
}

/// systemd's word for the end of a job, or why it is not known.
fn job_end(job: &JobEnd) -> String {
    match job {
        Ok(result) => result.clone(),
        Err(cause) => cause.to_string(),
    }
}

sentences! {
    KubeletCause {
        Systemd { cause } => "{cause}",
        NotPaused { cause } => "{cause}",
        NoSystemd => "systemd does not run on this machine: netfix cannot pause the unit",
        NothingWithoutSystemd => "systemd does not run on this machine: there is no kubelet to pause",
        DeadlineTooShort => "the deadline came before the unit was stopped. Use a longer --deadline",
        RunsInOtherUnit { pid, unit } => "pid {pid} runs in {unit}, which netfix would not pause: a kubelet rebuilds pods that \
            have no network. Use --unit {unit} to pause that unit, or --no-pause to continue without a pause"
            (unit = escape(unit)),
        RunsInNoUnit { pid, unit: None } => "pid {pid} does not belong to a systemd unit, so netfix cannot pause it: a kubelet \
            rebuilds pods that have no network. Stop it, run it as a service and name that with --unit UNIT, or use \
            --no-pause to continue without a pause",
        RunsInNoUnit { pid, unit: Some(unit) } => "pid {pid} runs in {unit}, which is not a service netfix could restart: \
            a kubelet rebuilds pods that have no network. Stop it, run it as a service and name that with --unit \
            UNIT, or use --no-pause to continue without a pause" (unit = escape(unit)),
        NotToBePaused => "is not paused (--no-pause): a running kubelet may rebuild pods without network",
        StartedBeforeCommand => "something else started it: COMMAND did not run",
        StartedBeforeRestore => "was started before the pods were restored, by the deadline or by something else",
        NotResumed { unit, cause } => "{cause}; netfix did not stop the deadline. Run `systemctl status {unit}`, then `netfix \
            resume`",
        TimerNotStopped { cause } => "could not stop the deadline timer (harmless): {cause}",
        NotRunning => "not running; left unchanged",
        Masked => "not running and masked; left unchanged",
        NoUnit => "no kubelet unit exists on this machine",
    }
}

sentences! {
    RebuildCause {
        SandboxReplaced { was, is, attempt: None } => "was rebuilt: its sandbox was {was} and is now {is}"
            (was = short(was), is = short(is)),
        SandboxReplaced { was, is, attempt: Some(attempt) } => "was rebuilt: its sandbox was {was} and is now {is} \
            (attempt {attempt})" (was = short(was), is = short(is)),
        SandboxRestarted => "was rebuilt: its sandbox was recreated",
        NamespaceReplaced => "was rebuilt: another network namespace is in the place of its own",
        NamespaceGone => "its network namespace is gone, and the runtime does not answer: cannot determine whether this pod \
            was rebuilt or deleted",
        ContainersChanged { containers } => "{containers}" (containers = list(containers)),
        Gone { noticed, seen: LastSeen::Whole } => "gone: deleted, or killed: netfix cannot know which. Noticed at {noticed}; \
            when netfix last saw it, nothing was missing",
        Gone { noticed, seen: LastSeen::NotRestored } => "gone: deleted, or killed: netfix cannot know which. Noticed at \
            {noticed}; when netfix last saw it, its network was not restored",
        Gone { noticed, seen: LastSeen::InPause } => "gone while kubelet, which deletes pods, was paused: something else \
            ended it. Noticed at {noticed}",
        Unknown => "cannot determine whether this pod was rebuilt",
        RuntimeGone => "cannot determine whether pods were rebuilt: the socket that answered before the window is gone",
        NoRuntime => "cannot determine whether pods were rebuilt: no container runtime answers",
        NotChecked { cause } => "cannot determine whether pods were rebuilt: {cause}",
    }
}

fn list(containers: &[ContainerChange]) -> String {
    join(containers.iter().map(change), ", ")
}

fn change(change: &ContainerChange) -> String {
    let (name, id) = (escape(&change.name), short(&change.id));
    let what = match change.restarts {
        0 => "ended and was not restarted".to_owned(),
        1 => "was restarted".to_owned(),
        times => format!("was restarted {times} times"),
    };
    let exit = change.exit.map(|exit| format!(" (exit {exit})"));
    let why = match change.excuse {
        None => "",
        Some(Excuse::RestartedBefore) => "; it had been restarted before the window too",
        Some(Excuse::NotRunningBefore) => "; it did not run before the window either",
        Some(Excuse::EndedInPause) => "; it ended before kubelet ran again",
        Some(Excuse::Completed) => "; it had completed",
    };
    format!(
        "container {name} ({id}) {what}{}{why}",
        exit.unwrap_or_default()
    )
}

/// The part of an id that people compare.
fn short(id: &str) -> String {
    escape(&id.chars().take(12).collect::<String>())
}

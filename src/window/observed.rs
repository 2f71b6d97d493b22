//! What an open window leaves at this moment: what of it runs, and which pods are without network. The next command of every
//! screen comes from here.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::inventory::procfs;
use crate::model::next::{
    CommandName, KubeletNow, LostPods, NextStep, RunningCommand, WindowNow, WindowStanding,
};
use crate::model::problem::WindowCause;
use crate::model::window::{KubeletPause, PhaseName, Run, Standing};
use crate::model::{Problem, Window};
use crate::store::Store;
use crate::systemd::Bus;
use crate::window::bus;
use crate::window::network::lost_pods;
use crate::window::records::{is_left, is_of_other_boot, is_owner_alive};

/// How long the pods may take to be read, where kubelet's start waits for that.
const LIMIT: Duration = Duration::from_secs(10);

/// Observes an open window.
pub(crate) fn observe(window: &Window, store: &Store) -> WindowNow {
    let bus = bus::connect().ok().flatten();
    observe_with(window, bus.as_ref(), || lost_in_time(store))
}

/// Observes a window that is open.
pub(crate) fn of_open(window: &Window, standing: Standing, store: &Store) -> Option<WindowNow> {
    (standing != Standing::Closed).then(|| observe(window, store))
}

/// Observes an open window; `lost` finds the lost pods, and is called where the next step depends on them.
pub(crate) fn observe_with(
    window: &Window,
    bus: Option<&Bus>,
    lost: impl FnOnce() -> Option<LostPods>,
) -> WindowNow {
    let is_of_other_boot = is_of_other_boot(window);
    // In this phase it waits for a person.
    let is_working = is_owner_alive(window) && window.phase() != Some(PhaseName::Repair);
    let running = if is_of_other_boot {
        None
    } else {
        running(window)
    };
    let kubelet = kubelet(window, bus);
    let lost = if is_of_other_boot || is_working {
        None
    } else {
        lost()
    };
    let next = NextStep::of(WindowStanding {
        is_of_other_boot,
        is_working,
        is_command_running: running.is_some(),
        // A unit that the window has started again is not its concern.
        kubelet: if window.is_paused() {
            kubelet
        } else {
            KubeletNow::NotPaused
        },
        lost: lost.as_ref(),
    });
    WindowNow {
        running,
        unit: window.pause.as_ref().map(|pause| pause.unit.clone()),
        kubelet,
        lost,
        next,
    }
}

/// A thread that hangs in a namespace or a file must not keep kubelet stopped.
pub(crate) fn lost_in_time(store: &Store) -> Option<LostPods> {
    let (sender, lost) = channel();
    let store = store.clone();
    let thread = thread::Builder::new();
    let _ = thread.spawn(move || {
        // Fails where the receiver waits no longer.
        let _ = sender.send(lost_pods(&store).ok());
    });
    lost.recv_timeout(LIMIT).ok().flatten()
}

/// Whether nobody is at work in an open window: its netfix is gone, nothing of it runs, and kubelet is not paused, by the word of systemd.
pub(crate) fn is_deserted(window: &Window) -> bool {
    let runs = || {
        let bus = bus::connect().ok().flatten();
        let pause = window.pause.as_ref();
        let now = pause.and_then(|pause| by_systemd(pause, bus.as_ref()));
        now == Some(KubeletNow::Running)
    };
    !is_owner_alive(window)
        && running(window).is_none()
        && (is_left(window) && !window.is_paused() || runs())
}

/// COMMAND or the rollback, which may have outlived its netfix.
pub(crate) fn running(window: &Window) -> Option<RunningCommand> {
    let rollback = window.rollback.as_ref().map(|rollback| &rollback.run);
    let all = [
        (
            window.run.as_ref(),
            CommandName::Command,
            PhaseName::Command,
        ),
        (rollback, CommandName::Rollback, PhaseName::Rollback),
    ];
    let now = clock::boottime().saturating_sub(window.started_boottime);
    let running = |(run, name, phase): (Option<&Run>, _, _)| {
        let run = run?;
        let process = run.process.filter(procfs::is_running)?;
        let mut phases = window.phases.iter();
        let begun = phases.rfind(|one| one.name == phase);
        Some(RunningCommand {
            name,
            pid: process.pid,
            argv: run.argv.clone(),
            for_ms: begun.map(|phase| now.saturating_sub(phase.from)),
        })
    };
    all.into_iter().find_map(running)
}

/// The unit as systemd has it; as it was last written where systemd cannot be queried.
fn kubelet(window: &Window, bus: Option<&Bus>) -> KubeletNow {
    let Some(pause) = &window.pause else {
        return KubeletNow::NotPaused;
    };
    let by_record = if window.is_paused() {
        KubeletNow::Unknown
    } else {
        KubeletNow::Running
    };
    by_systemd(pause, bus).unwrap_or(by_record)
}

/// The paused unit as systemd has it; `None` where that cannot be queried.
fn by_systemd(pause: &KubeletPause, bus: Option<&Bus>) -> Option<KubeletNow> {
    let unit = bus?.unit(&pause.unit).ok()?;
    Some(if unit.is_held() {
        KubeletNow::Masked
    } else if unit.is_stopped() {
        KubeletNow::Stopped
    } else {
        KubeletNow::Running
    })
}

/// What stops a command that needs a new window.
pub(crate) fn still_open(window: &Window, store: &Store) -> Problem {
    let cause = WindowCause::Open {
        started: window.started.clone(),
        command: window.command.clone(),
        pid: window.owner.pid,
        now: observe(window, store),
    };
    cause.error(window.id.clone())
}

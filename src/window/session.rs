//! The open window of this process: recorded on disk before anything is done, logged, and closed in the end. This
//! folder is the only writer of a window's record.

pub(crate) mod close;
pub(crate) mod damaged;
mod kernel;
mod unplanned;

use std::collections::{BTreeMap, BTreeSet};
use std::io::SeekFrom;

use crate::clock;
use crate::gateways::Verified;
use crate::inventory::procfs;
use crate::model::net::nic;
use crate::model::window::{KubeletPause, Phase, PhaseName, Rollback, Run, SCHEMA, WindowPod};
use crate::model::{IfName, Nic, PodId, Problem, Rehearsal, State, Window, WindowNic};
use crate::records::stored::Stored;
use crate::refusal::Refusal;
use crate::restore::Restored;
use crate::runtime::Sandbox;
use crate::store::{Guard, Store, StoreError};
use crate::window::event::{Event, PodCount, TARGET};
use crate::window::facts::{self, Silence};
use crate::window::fates;
use crate::window::kernel_log::KernelWatch;
use crate::window::rebuild_check::After;
use crate::window::window_log::{self, WindowLog};

/// The one writer of a window's record and log.
#[derive(Debug)]
pub(crate) struct WindowSession {
    window: Window,
    /// The log, for COMMAND and for threads.
    pub log_file: WindowLog,
    /// The lock on the state directory; `None` while other commands may run.
    pub guard: Option<Guard>,
    /// Whether the window is on disk; the first pause writes it.
    is_saved: bool,
    /// Whether the log has that the disk refuses the record.
    has_warned: bool,
    /// Reads the kernel's log from COMMAND on.
    kernel: Option<KernelWatch>,
}

impl WindowSession {
    /// A new window, not yet on disk.
    pub(crate) fn open(
        store: &Store,
        guard: Guard,
        command: &str,
        echo: bool,
        log_limit: u64,
    ) -> Result<Self, Refusal> {
        let id = store.free_window_id(&clock::id())?;
        let number = store.next_window_number()?;
        // No window is open: logs of processes that are gone belong to none.
        window_log::sweep();
        let mut log = WindowLog::open(&id, log_limit);
        if echo {
            log.start_echo(SeekFrom::Start(0));
        }
        let mut window = facts::opened(id, number, command);
        window.log = log.path().map(|path| path.display().to_string());
        Ok(Self::new(window, log, guard, false))
    }

    /// Takes over the window of a process that is gone.
    pub(crate) fn take_over(mut window: Window, guard: Guard, echo: bool, log_limit: u64) -> Self {
        let mut log = WindowLog::taken_over(&window, log_limit);
        window.log = log.path().map(|path| path.display().to_string());
        if echo {
            log.start_echo(SeekFrom::End(0));
        }
        Self::new(window, log, guard, true)
    }

    /// Changes the window of a process that still runs.
    pub(crate) fn visit(window: Window, guard: Guard) -> Self {
        Self::new(window, WindowLog::default(), guard, true)
    }

    fn new(mut window: Window, log_file: WindowLog, guard: Guard, is_saved: bool) -> Self {
        // The record of an earlier netfix is written with every key of this format.
        window.schema = SCHEMA;
        Self {
            window,
            log_file,
            guard: Some(guard),
            is_saved,
            has_warned: false,
            kernel: None,
        }
    }

    /// The record.
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Whether the window is on disk.
    pub(crate) fn is_saved(&self) -> bool {
        self.is_saved
    }

    /// Milliseconds since the window's start.
    fn now(&self) -> u64 {
        clock::boottime().saturating_sub(self.window.started_boottime)
    }

    /// Logs a line.
    pub(crate) fn log(&self, event: &Event) {
        self.log_file.line(event);
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, name: PhaseName, event: &Event) {
        log::info!(target: TARGET, PHASE = name.to_string().as_str(); "{event}");
        self.log_file.begin(name, event);
        self.window.phases.push(Phase::begun(name, self.now()));
        self.save_if_possible();
    }

    /// The last phase ends.
    pub(crate) fn end(&mut self, ok: bool) {
        let now = self.now();
        if let Some(phase) = self.window.phases.last_mut() {
            (phase.to, phase.ok) = (Some(now), Some(ok));
            let name = phase.name;
            log::info!(target: TARGET, PHASE = name.to_string().as_str(); "{}", Event::PhaseEnded { name, ok });
        }
        self.save_if_possible();
    }

    /// Writes the record, where it has to be on disk before the next change.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
        self.note_kernel();
        sign(&mut self.window);
        if let Some(guard) = &self.guard {
            guard.save_window(&self.window)?;
            self.is_saved = true;
        }
        Ok(())
    }

    /// Writes the record, where a full disk must not stop the window.
    pub(crate) fn save_if_possible(&mut self) {
        if !self.is_saved {
            return;
        }
        if let Err(error) = self.save()
            && !std::mem::replace(&mut self.has_warned, true)
        {
            let problem = error.problem().demoted();
            self.log(&Event::NotSaved(problem.clone()));
            self.window.problems.push(problem);
        }
    }

    /// Continues an interrupted window as this command.
    pub(crate) fn own(&mut self, command: &str) {
        self.window.owner = procfs::own();
        command.clone_into(&mut self.window.command);
    }

    /// The pods of the window, as the snapshot has them.
    pub(crate) fn note_pods(&mut self, pods: Vec<WindowPod>) {
        self.window.pods = pods;
    }

    /// The pods at risk that are not selected, as they are now.
    pub(crate) fn note_unselected(&mut self, pods: Vec<WindowPod>) {
        self.window.unselected = pods;
    }

    /// What was observed before COMMAND beside the snapshot.
    pub(crate) fn note_before(
        &mut self,
        sandboxes: &[Sandbox],
        nics: Option<Vec<WindowNic>>,
        silent: &[Silence],
        is_selection: bool,
    ) {
        self.note_fingerprints(sandboxes);
        self.window.nics = nics;
        self.note_silent(silent);
        let (pods, count) = (self.window.pods.len(), silent.len());
        let pods = PodCount { pods, is_selection };
        self.log(&Event::SnapshotTaken { pods });
        if count > 0 {
            self.log(&Event::SilentGateways { count });
        }
    }

    /// What did not answer before COMMAND.
    pub(crate) fn note_silent(&mut self, silent: &[Silence]) {
        let record = &mut self.window.problems;
        record.retain(|problem| Silence::recorded(problem).is_none());
        record.extend(silent.iter().map(Silence::warning));
    }

    /// What came of the rehearsal.
    pub(crate) fn note_rehearsal(&mut self, figures: Rehearsal) {
        self.window.rehearsal = Some(figures);
        self.log(&Event::Rehearsed(figures));
    }

    /// The host's NICs after COMMAND; `None` where they could not be read.
    pub(crate) fn note_nics_after(&mut self, nics: Option<Vec<Nic>>) {
        if let Some(known) = &mut self.window.nics {
            nic::update(known, nics);
        }
    }

    /// Of these NICs it is not known whether a pod has them.
    pub(crate) fn note_nics_taken(&mut self, names: &BTreeSet<IfName>) {
        let nics = self.window.nics.iter_mut().flatten();
        for nic in nics.filter(|nic| nic.name().is_some_and(|name| names.contains(name))) {
            nic.present = None;
        }
    }

    /// The rollback that is about to start.
    pub(crate) fn note_rollback(&mut self, rollback: Rollback) {
        self.window.rollback = Some(rollback);
    }

    /// COMMAND when it starts and when it has ended; or the command of the rollback, after which COMMAND never runs.
    pub(crate) fn note_run(&mut self, run: Run) {
        match &mut self.window.rollback {
            Some(rollback) => rollback.run = run,
            None => self.window.run = Some(run),
        }
    }

    /// When each pod lost the first of its links, as far as the present run of COMMAND has lost any. A pod that lost it in an
    /// earlier run of this window, and has not reached a gateway since, keeps that moment.
    pub(crate) fn note_losses(&mut self, lost: &BTreeMap<IfName, u64>, stored: &Stored) {
        let began = self.window.started_boottime;
        let is_unseen = facts::has_unseen_losses(&self.window);
        for pod in &mut self.window.pods {
            let Some(at) = facts::first_loss(&pod.info.id, lost, stored) else {
                continue;
            };
            let is_back = pod.answered.take().is_some();
            if is_back || pod.lost.is_none() && !is_unseen {
                pod.lost = Some(at.saturating_sub(began));
            }
        }
    }

    /// How a restore left each pod.
    pub(crate) fn note_restored(&mut self, restored: &Restored) {
        let now = self.now();
        let host = restored.host.as_ref().map(|(_, state)| (*state).into());
        // A later look finds what was restored before.
        let host = host.map(|state: State| match self.window.host {
            Some(State::Restored) if state == State::InSync => State::Restored,
            _ => state,
        });
        self.window.host = host.or(self.window.host);
        restored.note_settings(&mut self.window.settings);
        if let Some(lost) = &restored.devices_lost {
            let known = self.window.devices_lost.get_or_insert_default();
            known.extend(lost.iter().cloned());
        }
        let is_gone = |id: &PodId| restored.gone.iter().any(|gone| gone.id == *id);
        fates::note_gone(&mut self.window, is_gone, now);
        facts::count_bare(&mut self.window.pods, restored);
        for pod in &mut self.window.pods {
            let mut all = restored.pods.iter();
            if let Some(left) = all.find(|left| left.pod.info.id == pod.info.id) {
                pod.steps += left.done.len();
                pod.state = Some(left.state.after(pod.steps > 0).into());
                facts::reopen_outage(pod);
            }
        }
    }

    /// A phase that another command carried out.
    pub(crate) fn note_phase(&mut self, phase: Phase) {
        self.window.phases.push(phase);
    }

    /// Each pod's interfaces, and what its gateways and targets answered.
    pub(crate) fn note_verified(&mut self, verified: &Verified) {
        facts::take_answers(&mut self.window, verified);
    }

    /// The pods' states, where no restore was part of this; of a pod that is gone nothing is known.
    pub(crate) fn note_states(&mut self, states: &[(PodId, State)]) {
        facts::note_states(&mut self.window.pods, states);
    }

    /// Records what happened to each pod, `torn` being those that their runtime was tearing down; returns the problems.
    pub(crate) fn note_fates(
        &mut self,
        after: After,
        stored: &Stored,
        torn: &BTreeSet<PodId>,
    ) -> Vec<Problem> {
        fates::note(&mut self.window, after, stored, torn)
    }

    /// Pods that went before kubelet was paused.
    pub(crate) fn note_gone_early(&mut self, gone: &BTreeSet<PodId>) {
        let mut phases = self.window.phases.iter();
        let pause = phases.rfind(|phase| phase.name == PhaseName::Pause);
        let at = pause.map_or_else(|| self.now(), |phase| phase.from);
        fates::note_gone(&mut self.window, |id| gone.contains(id), at);
    }

    /// Problems that are known before the end.
    pub(crate) fn note_problems(&mut self, problems: &[Problem]) {
        self.window.problems.extend_from_slice(problems);
    }

    /// All problems of a window that ended before COMMAND.
    pub(crate) fn note_refusal(&mut self, problems: &[Problem]) {
        self.window.problems = problems.to_vec();
    }

    /// The problems at the end. The last probe has found again what is still silent.
    pub(crate) fn note_outcome(&mut self, problems: &[Problem]) {
        let record = &mut self.window.problems;
        record.retain(|problem| Silence::recorded(problem).is_none());
        record.extend_from_slice(problems);
    }

    /// A unit is about to be paused. From here on only the file shows the next process which one.
    pub(crate) fn note_pausing(&mut self, pause: KubeletPause) -> Result<(), StoreError> {
        self.window.pause = Some(pause);
        let saved = self.save();
        if saved.is_err() {
            self.window.pause = None;
            self.window.phases.pop();
        }
        saved
    }

    /// Another timer is about to be armed for the paused unit.
    pub(crate) fn note_rearming(&mut self, timer: &str, seconds: u64) -> Result<(), StoreError> {
        if let Some(pause) = &mut self.window.pause {
            (pause.timer, pause.deadline) = (timer.to_owned(), seconds);
        }
        self.save()
    }

    /// The timer is armed.
    pub(crate) fn note_armed(&mut self) {
        self.note_pause(|pause, now| pause.armed = Some(now));
    }

    /// The unit is stopped and masked.
    pub(crate) fn note_paused(&mut self) {
        self.note_pause(|pause, now| pause.paused = Some(now));
    }

    /// The unit runs, `since` that moment of the window where systemd reports one in the pause.
    pub(crate) fn note_resumed(&mut self, since: Option<u64>) {
        self.note_pause(|pause, now| {
            let in_pause = pause.paused.unwrap_or_default()..now;
            let since = since.filter(|since| in_pause.contains(since));
            pause.resumed = Some(since.unwrap_or(now));
        });
    }

    fn note_pause(&mut self, note: impl FnOnce(&mut KubeletPause, u64)) {
        let now = self.now();
        if let Some(pause) = &mut self.window.pause {
            note(pause, now);
        }
        self.save_if_possible();
    }

    /// Takes over what `netfix resume` recorded while this process waited for it.
    pub(crate) fn take_resume_of(&mut self, stored: Window) {
        self.window.phases.extend(facts::resume_of(&stored));
        self.window.pause = stored.pause;
        self.window.revision = self.window.revision.max(stored.revision);
        self.save_if_possible();
    }
}

/// Another revision, by this netfix.
fn sign(window: &mut Window) {
    window.revision = Some(window.revision.unwrap_or_default() + 1);
    window.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    if window.ended.is_none() {
        window.clock_set = clock::set_since(&window.started, window.started_boottime);
    }
}

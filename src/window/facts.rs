//! What facts mean for the record of a window, and what the record keeps of them. Pure, but for a new record's time and owner.

use std::collections::BTreeMap;
use std::mem;

use crate::clock;
use crate::gateways::{SilenceKind, Unanswered, Verified, VerifiedPod};
use crate::inventory::{node, procfs};
use crate::model::checkpoint::Extension;
use crate::model::problem::{GatewayCause, WindowCause};
use crate::model::window::{Phase, PhaseName, SCHEMA, WindowPod};
use crate::model::{Code, GatewayAnswer, IfName, PodId, Problem, State, Window};
use crate::records::stored::Stored;
use crate::restore::{RestoreState, Restored};

/// The record of a window that is opened now.
pub(crate) fn opened(id: String, number: u64, command: &str) -> Window {
    Window {
        schema: SCHEMA,
        id,
        number: Some(number),
        revision: None,
        version: None,
        command: command.to_owned(),
        kind: None,
        node: node::node_identity(),
        owner: procfs::own(),
        started: clock::wall(),
        started_boottime: clock::boottime(),
        clock_set: None,
        ended: None,
        exit: None,
        closed_by: None,
        pause: None,
        run: None,
        rollback: None,
        nics: None,
        settings: Vec::new(),
        host: None,
        rehearsal: None,
        phases: Vec::new(),
        pods: Vec::new(),
        unselected: Vec::new(),
        problems: Vec::new(),
        log: None,
    }
}

/// Counts every running pod that has no interface and no checkpoint, and no longer one that has an interface now.
pub(crate) fn count_bare(pods: &mut Vec<WindowPod>, restored: &Restored) {
    if restored.is_unknown() {
        return;
    }
    let found = restored.pods.iter();
    let bare: Vec<_> = found
        .filter(|found| found.state == RestoreState::NoCheckpoint)
        .map(|found| &found.pod.info)
        .collect();
    let is_bare = |id: &PodId| bare.iter().any(|info| info.id == *id);
    pods.retain(|pod| pod.state != Some(State::NoCheckpoint) || is_bare(&pod.info.id));
    for info in bare {
        if !pods.iter().any(|pod| pod.info.id == info.id) {
            pods.push(WindowPod::new(info.clone(), Vec::new()));
        }
    }
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
}

/// The pods' states, where no restore was part of this. A pod that was not observed keeps its last state if it is gone.
pub(crate) fn note_states(pods: &mut [WindowPod], states: &[(PodId, State)]) {
    for pod in pods.iter_mut().filter(|pod| !pod.is_gone()) {
        let observed = states.iter().find(|(id, _)| *id == pod.info.id);
        pod.state = observed.map(|(_, state)| match state {
            State::InSync if pod.steps > 0 => State::Restored,
            state => *state,
        });
        reopen_outage(pod);
    }
}

/// What a pod's gateways and targets answered in a window that began then. Its outage ends with the first answer, and only where its
/// network is back: all of it, and no gateway silent that answered before.
pub(crate) fn take_answers(
    pod: &mut WindowPod,
    found: &VerifiedPod,
    began: u64,
    silent: &[Silence],
) {
    let first = found.answers.first.map(clock::boottime_of);
    let first = first.map(|first| first.saturating_sub(began));
    pod.after = Some(found.pod.interfaces.clone());
    pod.gateways.clone_from(&found.answers.gateways);
    pod.targets.clone_from(&found.targets);
    let is_new = |one: &GatewayAnswer| {
        !one.never_answered && !silent.iter().any(|silence| silence.is_of(pod, one))
    };
    let mut deaf = pod.gateways.iter();
    let is_deaf = deaf.any(|one| one.reachable == Some(false) && is_new(one));
    pod.answered = pod.answered.or(first).filter(|_| !is_deaf);
    reopen_outage(pod);
}

/// The outage of a pod that is not restored has no end.
pub(crate) fn reopen_outage(pod: &mut WindowPod) {
    let is_lost = |state: State| !state.is_good() && state != State::Unknown;
    pod.answered = pod.answered.filter(|_| !pod.state.is_some_and(is_lost));
}

/// Whether links may have been lost after the netfix that watched for it was killed.
pub(crate) fn has_unseen_losses(window: &Window) -> bool {
    let phases = window.phases.iter();
    let commands = phases.filter(|phase| phase.name == PhaseName::Command);
    commands.rev().skip(1).any(|phase| phase.to.is_none())
}

/// What the checkpoint of a pod has beside the origin's format.
pub(crate) fn extension_of<'a>(id: &PodId, stored: &'a Stored) -> Option<&'a Extension> {
    let mut checkpoints = stored.checkpoints.iter().filter(|(info, _)| info.id == *id);
    checkpoints.find_map(|(_, checkpoint)| checkpoint.netfix.as_ref())
}

/// When the first of the links under a pod was lost.
pub(crate) fn first_loss(id: &PodId, lost: &BTreeMap<IfName, u64>, stored: &Stored) -> Option<u64> {
    let stack = extension_of(id, stored)?.stack.iter();
    stack.filter_map(|link| lost.get(&link.name)).min().copied()
}

/// The phase in which another process resumed the unit of this window. It may not have recorded the end of that yet.
pub(crate) fn resume_of(window: &Window) -> Option<Phase> {
    let resumed = window.pause.as_ref().and_then(|pause| pause.resumed);
    let mut phases = window.phases.iter();
    let phase = phases.rfind(|phase| phase.name == PhaseName::Resume)?;
    Some(Phase {
        to: phase.to.or(resumed),
        ok: phase.ok.or(Some(true)),
        ..phase.clone()
    })
}

/// A gateway or target that did not answer before COMMAND: the window is not to blame for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Silence {
    pod: Option<PodId>,
    object: String,
    kind: SilenceKind,
}

impl Silence {
    pub(crate) fn of(unanswered: &Unanswered) -> Self {
        Self {
            pod: unanswered.pod.clone(),
            object: unanswered.object.clone(),
            kind: unanswered.kind,
        }
    }

    /// Whether it is that of this gateway of this pod.
    fn is_of(&self, pod: &WindowPod, gateway: &GatewayAnswer) -> bool {
        matches!(self.kind, SilenceKind::Gateway | SilenceKind::ArpOnly)
            && self.pod.as_ref() == Some(&pod.info.id)
            && self.object == gateway.title()
    }

    /// From the record of an open window, which keeps the code of a problem alone, and has no other warnings with these codes.
    pub(crate) fn recorded(problem: &Problem) -> Option<Self> {
        let kind = match problem.code() {
            Code::GatewayUnreachable => SilenceKind::Gateway,
            Code::GatewayUnknown => SilenceKind::NotProbed,
            Code::TargetUnreachable => SilenceKind::Target,
            _ => return None,
        };
        (!problem.is_error()).then(|| Self {
            pod: problem.pod.clone(),
            object: problem.object.to_string(),
            kind,
        })
    }

    /// All of them in the record of an open window: a netfix that takes it over must know them.
    pub(crate) fn all_recorded(window: &Window) -> Vec<Self> {
        let problems = window.problems.iter();
        problems.filter_map(Self::recorded).collect()
    }

    /// Before COMMAND a warning, and after it no error.
    pub(crate) fn warning(&self) -> Problem {
        let cause = match self.kind {
            SilenceKind::Gateway | SilenceKind::ArpOnly | SilenceKind::NeverAnswered => {
                WindowCause::SilentBefore
            }
            SilenceKind::NotProbed => WindowCause::NotProbedBefore,
            SilenceKind::Target => WindowCause::TargetSilentBefore,
        };
        let warning = cause.warning(&self.object);
        match &self.pod {
            Some(pod) => warning.of(pod),
            None => warning,
        }
    }
}

/// The problems of a probe. What could not be reached before COMMAND either is no error, and no longer among the unanswered; a gateway
/// that does not answer is excused by the record alone: it must never have answered.
pub(crate) fn excuse(verified: &mut Verified, before: &[Silence]) -> Vec<Problem> {
    let mut problems = mem::take(&mut verified.problems);
    verified.unanswered.retain(|one| {
        let silence = Silence::of(one);
        let is_silent = matches!(one.cause, GatewayCause::NoAnswer { .. });
        let is_never = one.kind == SilenceKind::NeverAnswered;
        let was_before = !is_silent && !is_never && before.contains(&silence);
        problems.push(if was_before {
            silence.warning()
        } else {
            one.problem()
        });
        !was_before && !is_never
    });
    problems
}

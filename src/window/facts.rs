//! What facts mean for the record of a window, and what the record keeps of them. Pure, but for a new record's time and owner.

use std::collections::BTreeMap;
use std::mem;

use crate::gateways::{Unanswered, Verified};
use crate::inventory::{node, procfs};
use crate::model::problem::{GatewayCause, RebuildCause, WindowCause};
use crate::model::window::{Phase, PhaseName, PodFingerprint, SCHEMA, WindowPod};
use crate::model::{Code, IfName, PodId, Problem, State, Window};
use crate::records::stored::Stored;
use crate::window::clock;
use crate::window::rebuild_check;
use crate::window::rebuild_check::{After, PodBefore, RebuildVerdict};

/// The record of a window that is opened now.
pub(crate) fn opened(id: String, command: &str) -> Window {
    Window {
        schema: SCHEMA,
        id,
        command: command.to_owned(),
        node: node::node_identity(),
        owner: procfs::own(),
        started: clock::wall(),
        started_boottime: clock::boottime(),
        ended: None,
        exit: None,
        closed_by: None,
        pause: None,
        run: None,
        rollback: None,
        nics: None,
        phases: Vec::new(),
        pods: Vec::new(),
        problems: Vec::new(),
        log: None,
    }
}

/// Whether links may have been lost after the netfix that watched for it was killed.
pub(crate) fn has_unseen_losses(window: &Window) -> bool {
    let phases = window.phases.iter();
    let commands = phases.filter(|phase| phase.name == PhaseName::Command);
    commands.rev().skip(1).any(|phase| phase.to.is_none())
}

/// When the first of the links under a pod was lost.
pub(crate) fn first_loss(id: &PodId, lost: &BTreeMap<IfName, u64>, stored: &Stored) -> Option<u64> {
    let checkpoints = stored.checkpoints.iter();
    let extension = checkpoints
        .filter(|(info, _)| info.id == *id)
        .find_map(|(_, checkpoint)| checkpoint.netfix.as_ref())?;
    let moments = extension
        .stack
        .iter()
        .filter_map(|link| lost.get(&link.name));
    moments.min().copied()
}

/// The state of a pod, by those that were observed; of a pod that is gone nothing is known.
pub(crate) fn state_of(pod: &WindowPod, states: &[(PodId, State)]) -> Option<State> {
    let (_, state) = states.iter().find(|(id, _)| *id == pod.info.id)?;
    Some(match state {
        State::InSync if pod.steps > 0 => State::Restored,
        state => *state,
    })
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

/// Whether a pod was rebuilt, as the record has it.
pub(crate) struct PodRebuild {
    pub fingerprint: Option<PodFingerprint>,
    /// `None` where that is not known.
    pub rebuilt: Option<bool>,
    pub problem: Option<Problem>,
}

/// Whether each of these pods was rebuilt.
pub(crate) fn rebuilds(pods: &[WindowPod], after: &After, stored: &Stored) -> Vec<PodRebuild> {
    let checkpoints = stored.checkpoints.iter();
    let identities: BTreeMap<&PodId, _> = checkpoints
        .filter_map(|(info, checkpoint)| Some((&info.id, &checkpoint.netfix.as_ref()?.identity)))
        .collect();
    let rebuilds = pods.iter().map(|pod| {
        let before = PodBefore {
            info: &pod.info,
            fingerprint: pod.fingerprint_before.as_ref(),
            namespace: identities.get(&pod.info.id).copied(),
        };
        let found = rebuild_check::check(&before, after);
        let (rebuilt, cause) = match found.verdict {
            RebuildVerdict::Same => (Some(false), None),
            RebuildVerdict::Rebuilt(cause) => (Some(true), Some(cause)),
            // The runtime that does not answer is a separate problem.
            RebuildVerdict::Unknown if after.sandboxes.is_none() => (None, None),
            RebuildVerdict::Unknown => (None, Some(RebuildCause::Unknown)),
        };
        PodRebuild {
            fingerprint: found.fingerprint,
            rebuilt,
            problem: cause.map(|cause| cause.error(pod.info.title()).of(&pod.info.id)),
        }
    });
    rebuilds.collect()
}

/// A gateway or target that did not answer before COMMAND: the window is not to blame for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Silence {
    pod: Option<PodId>,
    object: String,
    kind: SilenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilenceKind {
    Gateway,
    /// A gateway that could not be probed.
    NotProbed,
    Target,
}

impl Silence {
    pub(crate) fn of(unanswered: &Unanswered) -> Self {
        let kind = match unanswered.cause {
            GatewayCause::NoAnswer { .. }
            | GatewayCause::CannotProbe { .. }
            | GatewayCause::InterfaceMissing
            | GatewayCause::ProbeFailed { .. } => SilenceKind::Gateway,
            GatewayCause::PermanentNeighbour | GatewayCause::NoMemory { .. } => {
                SilenceKind::NotProbed
            }
            GatewayCause::TargetSilent { .. }
            | GatewayCause::TargetRefused { .. }
            | GatewayCause::NameNotFound
            | GatewayCause::NameUnresolved { .. }
            | GatewayCause::NameWithoutProcess => SilenceKind::Target,
        };
        Self {
            pod: unanswered.pod.clone(),
            object: unanswered.object.clone(),
            kind,
        }
    }

    /// From the record of an open window, which has no other warnings with these codes.
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
            SilenceKind::Gateway => WindowCause::SilentBefore,
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

/// The problems of a probe; what was silent before COMMAND too is no error, and no longer among the unanswered.
pub(crate) fn excuse(verified: &mut Verified, before: &[Silence]) -> Vec<Problem> {
    let mut problems = mem::take(&mut verified.problems);
    verified.unanswered.retain(|one| {
        let silence = Silence::of(one);
        let is_excused = before.contains(&silence);
        problems.push(if is_excused {
            silence.warning()
        } else {
            one.problem()
        });
        !is_excused
    });
    problems
}

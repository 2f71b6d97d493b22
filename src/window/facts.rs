//! What facts mean for the record of a window, and what the record keeps of them. Pure, but for a new record's time and owner.

use std::collections::BTreeMap;
use std::mem;

use crate::clock;
use crate::gateways::{Answers, Reachability, SilenceKind, Unanswered, Verified, VerifiedPod};
use crate::inventory::{node, procfs};
use crate::model::checkpoint::Extension;
use crate::model::problem::{Cause, GatewayCause, SocketCause, WindowCause};
use crate::model::window::{Phase, PhaseName, SCHEMA, Shown, WindowPod};
use crate::model::{Code, IfName, PodId, Problem, State, TargetAnswer, Window};
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
        host_shown: None,
        devices_lost: None,
        rehearsal: None,
        kernel: None,
        phases: Vec::new(),
        pods: Vec::new(),
        unselected: Vec::new(),
        problems: Vec::new(),
        log: None,
    }
}

/// Counts every running pod without a checkpoint that has no interface or is cut off, and no longer one that is well now.
pub(crate) fn count_bare(pods: &mut Vec<WindowPod>, restored: &Restored) {
    if restored.is_unknown() {
        return;
    }
    let found = restored.pods.iter();
    let bare: Vec<_> = found
        .filter(|found| match found.state {
            RestoreState::NoCheckpoint => true,
            RestoreState::CutOff => found.before.is_none(),
            _ => false,
        })
        .map(|found| &found.pod.info)
        .collect();
    let is_bare = |id: &PodId| bare.iter().any(|info| info.id == *id);
    pods.retain(|pod| {
        let was_bare = pod.state == Some(State::NoCheckpoint) || pod.became_cut_off();
        !was_bare || is_bare(&pod.info.id)
    });
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

/// What the host, and the pods of a window that began then, have shown by the answers of their gateways and targets.
pub(crate) fn take_answers(window: &mut Window, verified: &Verified) {
    let (began, silent) = (window.started_boottime, Silence::all_recorded(window));
    let shown = |pod: Option<&PodId>, answers: &Answers, targets: &[TargetAnswer]| {
        let unanswered = verified.unanswered.iter();
        let own = unanswered.filter(|one| {
            let is_own = one.pod.as_ref() == pod;
            is_own && one.problem().is_error() && !is_excused(one, &silent)
        });
        let own: Vec<SilenceKind> = own.map(|one| one.kind).collect();
        shown_by(answers, targets, &own)
    };
    let host = &verified.host;
    window.host_shown = (!host.gateways.is_empty()).then(|| shown(None, host, &[]));
    for found in &verified.pods {
        let id = &found.pod.info.id;
        if let Some(pod) = window.pods.iter_mut().find(|pod| pod.info.id == *id) {
            let shown = shown(Some(id), &found.answers, &found.targets);
            take_answers_of(pod, found, began, shown);
        }
    }
}

/// What one pod has shown. Its outage ends with the first answer, and only where its network is back: all of it, and nothing silent that
/// answered before.
fn take_answers_of(pod: &mut WindowPod, found: &VerifiedPod, began: u64, shown: Shown) {
    let first = found.answers.first.map(clock::boottime_of);
    let first = first.map(|first| first.saturating_sub(began));
    pod.after = Some(found.pod.interfaces.clone());
    pod.gateways.clone_from(&found.answers.gateways);
    pod.targets.clone_from(&found.targets);
    pod.shown = Some(shown);
    pod.answered = pod.answered.or(first).filter(|_| shown != Shown::NotAgain);
    reopen_outage(pod);
}

/// `unanswered` has what answered before COMMAND, and does not answer now or cannot be probed.
fn shown_by(answers: &Answers, targets: &[TargetAnswer], unanswered: &[SilenceKind]) -> Shown {
    let mut gateways = answers.gateways.iter();
    let has_answer = gateways.any(|one| one.reachable == Some(true));
    let is_unread = matches!(
        answers.state,
        Reachability::NoCheckpoint | Reachability::Failed
    );
    if unanswered
        .iter()
        .any(|kind| *kind != SilenceKind::NotProbed)
    {
        Shown::NotAgain
    } else if is_unread || !unanswered.is_empty() {
        Shown::Unknown
    } else if has_answer || targets.iter().any(|one| one.reachable) {
        Shown::Again
    } else {
        Shown::Never
    }
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

    /// Whether both are of one gateway or target: a second probe may find another kind.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.pod, &self.object) == (&other.pod, &other.object)
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

/// What names an ifindex that its link does not have any more: a window is not to blame for one that was dead before.
pub(crate) fn excuse_older(dead: Vec<Problem>) -> impl Iterator<Item = Problem> {
    dead.into_iter().map(|problem| match &*problem.cause {
        Cause::Socket(SocketCause::IndexDead { is_older: true, .. }) => problem.demoted(),
        _ => problem,
    })
}

/// The problems of a probe. What could not be reached before COMMAND either is no error, and no longer among the unanswered; a gateway
/// that does not answer is excused by the record alone: it must never have answered.
pub(crate) fn excuse(verified: &mut Verified, before: &[Silence]) -> Vec<Problem> {
    let mut problems = mem::take(&mut verified.problems);
    verified.unanswered.retain(|one| {
        let is_excused = is_excused(one, before);
        problems.push(if is_excused && one.kind != SilenceKind::NeverAnswered {
            Silence::of(one).warning()
        } else {
            one.problem()
        });
        !is_excused
    });
    problems
}

fn is_excused(one: &Unanswered, before: &[Silence]) -> bool {
    match (one.kind, &one.cause) {
        (SilenceKind::NeverAnswered, _) => true,
        (_, GatewayCause::NoAnswer { .. }) => false,
        _ => before.contains(&Silence::of(one)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GatewayAnswer;

    fn answers(reachable: &[Option<bool>]) -> Answers {
        let gateway = |reachable: &Option<bool>| GatewayAnswer {
            address: [10, 3, 0, 1].into(),
            dev: "eth0".parse().unwrap(),
            reachable: *reachable,
            never_answered: false,
            rtt_us: None,
            lladdr: None,
        };
        let mut answers = Answers::none(Reachability::NoGateway);
        answers.gateways = reachable.iter().map(gateway).collect();
        answers
    }

    #[test]
    fn only_an_answer_shows_a_network_and_a_new_silence_that_it_is_not_back() {
        let shown = |gateways: &[Option<bool>], unanswered: &[SilenceKind]| {
            shown_by(&answers(gateways), &[], unanswered)
        };
        let silent = Some(false);
        assert_eq!(shown(&[Some(true)], &[]), Shown::Again);
        assert_eq!(
            shown(&[Some(true), silent], &[]),
            Shown::Again,
            "silent before"
        );
        assert_eq!(shown(&[], &[]), Shown::Never, "nothing to probe");
        assert_eq!(shown(&[silent, None], &[]), Shown::Never, "silent before");
        assert_eq!(shown(&[None], &[SilenceKind::NotProbed]), Shown::Unknown);
        let both = [SilenceKind::NotProbed, SilenceKind::Gateway];
        assert_eq!(shown(&[Some(true), None, silent], &both), Shown::NotAgain);
        assert_eq!(
            shown(&[Some(true)], &[SilenceKind::Target]),
            Shown::NotAgain
        );
    }
}

//! Do the pods reach their gateways?

mod probe;

use std::time::{Duration, Instant};

use self::probe::{Answer, Question};
use crate::inventory::observe::{self, Pod};
use crate::inventory::stored::Stored;
use crate::inventory::{Inventory, cannot_observe, private};
use crate::kernel::Error;
use crate::matching::Selection;
use crate::model::checkpoint::Extension;
use crate::model::problem::{GatewayCause, MatchingCause};
use crate::model::{
    GatewayAnswer, NetState, NetnsIdentity, NodeIdentity, NodeState, PodSummary, Problem, Route,
    interfaces,
};
use crate::progress::{Listener, Phase, Progress};
use crate::refusal::Refusal;

/// What the gateways of all pods answered.
#[derive(Debug)]
pub(crate) struct Verified {
    pub node: NodeIdentity,
    /// Sorted by id.
    pub pods: Vec<VerifiedPod>,
    pub problems: Vec<Problem>,
}

/// What the gateways of one pod answered.
#[derive(Debug)]
pub(crate) struct VerifiedPod {
    /// With the interfaces that it has now.
    pub pod: PodSummary,
    pub state: Reachability,
    pub gateways: Vec<GatewayAnswer>,
    /// When the first of its gateways answered.
    pub answered: Option<Instant>,
}

/// Whether a pod reaches its gateways; the worst of them decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reachability {
    NoGateway,
    /// All answered.
    Reachable,
    /// One could not be probed.
    Unknown,
    /// One did not answer.
    Unreachable,
    /// It has no interface and no checkpoint.
    NoCheckpoint,
    /// It could not be read.
    Failed,
}

/// Probes the gateways that the pods have, and those that they had by these records.
pub(crate) fn verify(
    mut stored: Stored,
    node: Option<&NodeState>,
    selection: &Selection,
    timeout: Duration,
    progress: &mut dyn Listener,
) -> Result<Verified, Refusal> {
    let mut inventory = Inventory::open(selection)?;
    inventory.learn_names(&stored.records());
    inventory.select(selection)?;
    let all = std::mem::take(&mut inventory.pods);
    let has_checkpoint = |pod: &Pod| {
        let checkpoints = stored.checkpoints.iter();
        let mut own = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        own.any(|extension| extension.identity.may_be(&pod.identity))
    };
    inventory.pods = private::split(all, &inventory.host, None, has_checkpoint).0;
    let mut problems = std::mem::take(&mut stored.problems);
    problems.append(&mut inventory.problems);
    let known_empty = node.map(|node| node.empty.as_slice()).unwrap_or_default();
    let (mut pods, questions) = survey(&mut inventory, &stored, known_empty, &mut problems);
    progress.notice(Progress::Phase(Phase::ProbingGateways, questions.len()));
    let answers = probe::ask(&mut inventory.pods, &questions, timeout).map_err(|error| {
        let error = error.to_string();
        Refusal::failed(GatewayCause::ProbeFailed { error }.error("probe"))
    })?;
    for (question, answer) in questions.iter().zip(answers) {
        let problem = pods[question.pod].take(question, answer, timeout);
        problems.extend(problem);
    }
    for info in stored.damaged {
        if !pods.iter().any(|one| one.pod.info.id == info.id) {
            pods.push(VerifiedPod::new(
                PodSummary::bare(&info, None),
                Reachability::Failed,
            ));
        }
    }
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
    Ok(Verified {
        node: inventory.node,
        pods,
        problems,
    })
}

/// Every pod, not probed yet, and the gateways to probe.
fn survey(
    inventory: &mut Inventory,
    stored: &Stored,
    known_empty: &[NetnsIdentity],
    problems: &mut Vec<Problem>,
) -> (Vec<VerifiedPod>, Vec<Question>) {
    let checkpoints = stored.checkpoints.iter();
    let extensions: Vec<&Extension> = checkpoints
        .filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref())
        .collect();
    let states = observe::observe_pods(&mut inventory.pods, &inventory.host);
    let (mut pods, mut questions) = (Vec::new(), Vec::new());
    for (at, (pod, state)) in inventory.pods.iter().zip(states).enumerate() {
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        let mut verified = VerifiedPod::new(summary, Reachability::NoGateway);
        let object = pod.netns.path.display().to_string();
        let is_about =
            |then: &&&Extension| then.is_about(&inventory.node, &pod.identity, &pod.info);
        let about = extensions.iter().filter(is_about);
        let then = about.max_by_key(|extension| &extension.created);
        let problem = match state {
            Ok(state) => {
                verified.pod.interfaces = interfaces(&state);
                let then_state = then.map(|extension| &extension.state);
                questions.extend(gateways(at, &state, then_state));
                let is_bare = state.links_but_loopback().next().is_none();
                let mut known_empty = known_empty.iter();
                let was_empty = known_empty.any(|known| known.is_same(&pod.identity));
                let is_unknown = is_bare && then.is_none() && !was_empty;
                if is_unknown {
                    verified.state = Reachability::NoCheckpoint;
                }
                is_unknown.then(|| MatchingCause::BareWithoutCheckpoint.error(object))
            }
            Err(error) => {
                verified.state = Reachability::Failed;
                Some(cannot_observe(&object, &error))
            }
        };
        problems.extend(problem.map(|problem| problem.of(&pod.info.id)));
        pods.push(verified);
    }
    (pods, questions)
}

/// The gateways that the pod has now, and those that its checkpoint says it should have.
fn gateways(pod: usize, now: &NetState, then: Option<&NetState>) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    let before = then.iter().flat_map(|state| &state.routes);
    for (gateway, dev) in now.routes.iter().chain(before).flat_map(Route::gateways) {
        let is_this = |known: &Question| known.gateway == gateway && known.dev == *dev;
        if !questions.iter().any(is_this) {
            let index = now.link(dev).map(|link| link.index);
            questions.push(Question {
                pod,
                dev: dev.clone(),
                gateway,
                index,
            });
        }
    }
    questions
}

impl VerifiedPod {
    fn new(pod: PodSummary, state: Reachability) -> Self {
        Self {
            pod,
            state,
            gateways: Vec::new(),
            answered: None,
        }
    }

    /// Adds the answer of one gateway; returns the problem with it.
    fn take(&mut self, question: &Question, answer: Answer, timeout: Duration) -> Option<Problem> {
        let Question { dev, gateway, .. } = question;
        let mut view = GatewayAnswer {
            address: *gateway,
            dev: dev.clone(),
            reachable: Some(false),
            rtt_us: None,
            lladdr: None,
        };
        let mut state = Reachability::Unreachable;
        let cause = match answer {
            Answer::Reachable { rtt, lladdr, at } => {
                state = Reachability::Reachable;
                view.reachable = Some(true);
                view.rtt_us = rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok());
                view.lladdr = lladdr;
                self.answered = Some(self.answered.map_or(at, |first| first.min(at)));
                None
            }
            Answer::Static => {
                state = Reachability::Unknown;
                view.reachable = None;
                Some(GatewayCause::PermanentNeighbour)
            }
            Answer::Silent => Some(GatewayCause::NoAnswer { timeout }),
            Answer::Refused(errno) => Some(GatewayCause::CannotProbe {
                error: Error::from(errno).to_string(),
            }),
            Answer::NoInterface => Some(GatewayCause::InterfaceMissing),
        };
        self.state = self.state.max(state);
        self.gateways.push(view);
        let problem = cause?.error(format!("{gateway} dev {dev}"));
        Some(problem.of(&self.pod.info.id))
    }
}

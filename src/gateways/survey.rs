//! What is known of the host and the pods before the probe: the gateways to ask.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::answers::{Answers, Reachability, SilenceKind};
use super::question::{Prober, Question, Questions};
use super::recorded::{Record, Recorded};
use super::targets::TargetAnswers;
use crate::inventory::observe::Pod;
use crate::inventory::pods::observe_reach;
use crate::inventory::{Inventory, unread};
use crate::kernel::Error;
use crate::kernel::state::Reach;
use crate::model::pod::empty::needs_none;
use crate::model::problem::{GatewayCause, MatchingCause};
use crate::model::{
    AnswerRecord, IfName, LinkGraph, NetState, NodeState, PodId, PodSummary, Problem, StackLink,
    TargetAnswer, interfaces,
};
use crate::records::contest::CNI_CACHE;
use crate::records::evidence::Witnesses;

/// A gateway or target that did not answer, or could not be queried.
#[derive(Debug, Clone)]
pub(crate) struct Unanswered {
    /// The pod; `None` for the host.
    pub pod: Option<PodId>,
    /// The gateway or target.
    pub object: String,
    pub kind: SilenceKind,
    pub cause: GatewayCause,
}

impl Unanswered {
    pub(crate) fn problem(&self) -> Problem {
        let cause = self.cause.clone();
        let problem = match cause {
            // What was probed has answered, or is named beside it; or nothing shows that anything is lost.
            GatewayCause::TooManyRoutes { .. }
            | GatewayCause::NeverAnswered
            | GatewayCause::NeverProbed
            | GatewayCause::PermanentNeighbour
            | GatewayCause::Redirected => cause.warning(&self.object),
            _ => cause.error(&self.object),
        };
        match &self.pod {
            Some(pod) => problem.of(pod),
            None => problem,
        }
    }
}

/// What the gateways of one pod answered.
#[derive(Debug)]
pub(crate) struct VerifiedPod {
    /// With the interfaces that it has now.
    pub pod: PodSummary,
    pub answers: Answers,
    /// What the targets answered; no query leaves from a pod that never had an interface.
    pub targets: Vec<TargetAnswer>,
    /// Its namespace before the probe, if it could be read.
    pub observed: NetState,
}

impl VerifiedPod {
    pub(super) fn new(pod: PodSummary, state: Reachability) -> Self {
        Self {
            pod,
            answers: Answers::none(state),
            targets: Vec::new(),
            observed: NetState::default(),
        }
    }

    /// Adds what the targets answered; returns what is wrong with them.
    pub(super) fn take(&mut self, found: TargetAnswers) -> Vec<Unanswered> {
        let mut unanswered = Vec::new();
        for (answer, cause) in found {
            let state = match cause {
                Ok(_) => Reachability::Reachable,
                Err(_) => Reachability::Unreachable,
            };
            self.answers.state = self.answers.state.max(state);
            unanswered.extend(cause.err().map(|cause| Unanswered {
                pod: Some(self.pod.info.id.clone()),
                object: format!("{} {}", answer.kind, answer.target),
                kind: SilenceKind::Target,
                cause,
            }));
            self.targets.push(answer);
        }
        unanswered
    }
}

/// What is known before the probe.
#[derive(Default)]
pub(super) struct ProbePlan {
    /// Every pod, not probed yet.
    pub pods: Vec<VerifiedPod>,
    /// The gateways to probe.
    pub questions: Vec<Question>,
    /// The host's links below the pods' links, now or by the checkpoints.
    pub under_pods: BTreeSet<IfName>,
    /// The pods that had no interface when their state was saved, and have none.
    pub without_network: BTreeSet<usize>,
    /// What each pod has cost.
    pub spent: Vec<Duration>,
    /// Those that cost too much.
    pub unanswered: Vec<Unanswered>,
}

pub(super) fn survey(
    inventory: &mut Inventory,
    recorded: &Recorded<'_>,
    node: Option<&NodeState>,
    budget: Duration,
    problems: &mut Vec<Problem>,
) -> ProbePlan {
    let observed = observe_reach(&mut inventory.pods, &inventory.host, budget);
    let (states, spent): (Vec<_>, _) = observed.into_iter().unzip();
    let bare: Vec<bool> = states.iter().map(is_bare).collect();
    let graph = LinkGraph::new(&inventory.host.state.links);
    let witnesses = Witnesses {
        answer: inventory.answer.as_ref(),
        cni_cache: Path::new(CNI_CACHE),
    };
    let evidence = witnesses.among(&mut inventory.pods, &bare);
    let mut survey = ProbePlan {
        spent,
        ..ProbePlan::default()
    };
    for (at, (pod, state)) in inventory.pods.iter().zip(states).enumerate() {
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        let mut verified = VerifiedPod::new(summary, Reachability::NoGateway);
        let object = pod.netns.shown();
        let then = recorded.about(&inventory.node, pod);
        survey.stands_on(then.map(|then| &*then.own.stack));
        let problem = match state {
            Ok(reach) => {
                verified.pod.interfaces = interfaces(&reach.state);
                survey.stands_on([&*graph.under(&reach.state.links)]);
                verified.answers.state = survey.note_long(&pod.info.id, &object, &reach);
                let unread = survey.add_gateways(at, &reach, then, answered(node, pod), budget);
                problems.extend(unread.map(|problem| problem.of(&pod.info.id)));
                verified.observed = reach.state;
                let known = node.and_then(|node| node.empty(&pod.identity));
                let was_empty = needs_none(known, evidence[at]);
                if bare[at] && was_empty {
                    survey.without_network.insert(at);
                }
                let is_unknown = bare[at] && then.is_none() && !was_empty;
                if is_unknown {
                    verified.answers.state = Reachability::NoCheckpoint;
                }
                is_unknown.then(|| MatchingCause::BareWithoutCheckpoint.error(object))
            }
            Err(Error::Late) => {
                verified.answers.state = Reachability::Unknown;
                survey.add_unanswered(&pod.info.id, object, GatewayCause::OverBudget { budget });
                None
            }
            Err(error) => {
                verified.answers.state = Reachability::Failed;
                Some(unread(&object, &error))
            }
        };
        problems.extend(problem.map(|problem| problem.of(&pod.info.id)));
        survey.pods.push(verified);
    }
    survey
}

/// What has answered this pod.
fn answered<'n, 'p>(
    node: Option<&'n NodeState>,
    pod: &'p Pod,
) -> impl Iterator<Item = &'n AnswerRecord> + use<'n, 'p> {
    let own = node.map(|node| node.answers.of_namespace(Some(&pod.info.id)));
    own.into_iter().flatten()
}

/// Whether it could be read and has no link but a loopback device.
fn is_bare(read: &Result<Reach, Error>) -> bool {
    let is_bare = |reach: &Reach| reach.state.links_but_loopback().next().is_none();
    read.as_ref().is_ok_and(is_bare)
}

impl ProbePlan {
    /// Adds the gateways that a pod has and had, or the neighbours that are `known` of one without, as far as its budget allows. Returns
    /// why those that it had are not known.
    fn add_gateways<'r>(
        &mut self,
        at: usize,
        now: &Reach,
        then: Option<Record<'_>>,
        known: impl Iterator<Item = &'r AnswerRecord>,
        budget: Duration,
    ) -> Option<Problem> {
        let begin = Instant::now();
        let until = begin + budget.saturating_sub(self.spent[at]);
        let Reach {
            state,
            router,
            long,
        } = now;
        let then = then
            .filter(|_| long.is_none())
            .map(Record::state)
            .transpose();
        let (then, unread) = then.map_or_else(|why| (None, Some(why.clone())), |then| (then, None));
        let mut questions = Questions::new(Prober::Pod(at), state, then);
        match long {
            None => add_gateways(&mut questions, state, then, router.clone()),
            Some((_, hops)) => hops
                .iter()
                .for_each(|(hop, dev)| questions.add_hop(*hop, dev)),
        }
        questions.add_neighbours(known);
        self.questions.extend(questions.finish(Some(until)));
        self.spent[at] += begin.elapsed();
        unread
    }

    /// Adds a pod with more routes than are read. Returns how a pod begins that is probed.
    fn note_long(&mut self, pod: &PodId, object: &str, reach: &Reach) -> Reachability {
        let Some((most, _)) = reach.long else {
            return Reachability::NoGateway;
        };
        let cause = GatewayCause::TooManyRoutes { most };
        self.add_unanswered(pod, object.to_owned(), cause);
        Reachability::Unknown
    }

    /// Adds a pod of which nothing, or not everything, is probed.
    fn add_unanswered(&mut self, pod: &PodId, object: String, cause: GatewayCause) {
        self.unanswered.push(Unanswered {
            pod: Some(pod.clone()),
            object,
            kind: SilenceKind::NotProbed,
            cause,
        });
    }

    fn stands_on<'a>(&mut self, stacks: impl IntoIterator<Item = &'a [StackLink]>) {
        let links = stacks.into_iter().flatten();
        self.under_pods.extend(links.map(|link| link.name.clone()));
    }
}

/// The gateways that the pod has now, and those that it should have by its checkpoint.
fn add_gateways(
    questions: &mut Questions<'_>,
    now: &NetState,
    then: Option<&NetState>,
    router: Option<(IpAddr, IfName)>,
) {
    let before = then.iter().flat_map(|state| &state.routes);
    for route in now.routes.iter().chain(before) {
        for (gateway, dev) in route.gateways() {
            questions.add(gateway, dev, dev, route);
        }
    }
    questions.add_router(router);
}

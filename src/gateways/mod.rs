//! Do the pods reach their gateways, and does the host?

mod answers;
mod destinations;
mod host;
mod names;
mod probe;
mod question;
mod recorded;
mod rules;
pub mod targets;
mod trial;
mod way;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) use self::answers::{Answers, ProbeLimits, Reachability, SilenceKind};
use self::question::{Prober, Question, Questions};
use self::recorded::{Record, Recorded};
use self::targets::{Queries, TargetAnswers, VerifyTarget};
use self::trial::ProbeAnswer;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::pods::observe_reach;
use crate::inventory::{Inventory, private, unread};
use crate::kernel::Error;
use crate::kernel::state::{self, Reach};
use crate::matching::Selection;
use crate::model::pod::empty::needs_none;
use crate::model::problem::{GatewayCause, MatchingCause};
use crate::model::{
    IfName, LinkGraph, NetState, NodeIdentity, NodeState, PodId, PodSummary, Problem, StackLink,
    TargetAnswer, interfaces,
};
use crate::progress::{Listener, Progress, Stage};
use crate::records::contest::CNI_CACHE;
use crate::records::evidence::Witnesses;
use crate::records::stored::Stored;
use crate::refusal::Refusal;

/// What the gateways of all pods and of the host answered.
#[derive(Debug)]
pub(crate) struct Verified {
    pub node: NodeIdentity,
    pub host: Answers,
    /// Sorted by id.
    pub pods: Vec<VerifiedPod>,
    /// The problems of everything but gateways and targets.
    pub problems: Vec<Problem>,
    pub unanswered: Vec<Unanswered>,
    /// The host as it was before the probe.
    pub observed: Host,
}

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
            // What was probed has answered, or is named beside it.
            GatewayCause::TooManyRoutes { .. } => cause.warning(&self.object),
            _ => cause.error(&self.object),
        };
        match &self.pod {
            Some(pod) => problem.of(pod),
            None => problem,
        }
    }
}

impl Verified {
    /// All problems.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let unanswered = self.unanswered.iter().map(Unanswered::problem);
        self.problems.iter().cloned().chain(unanswered).collect()
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

/// Probes the gateways that the pods and the host have, and those that they had by these records.
pub(crate) fn verify(
    mut inventory: Inventory,
    mut stored: Stored,
    node: Option<&NodeState>,
    selection: &Selection,
    targets: &[VerifyTarget],
    limits: ProbeLimits,
    progress: &mut dyn Listener,
) -> Result<Verified, Refusal> {
    inventory.learn_names(&stored.records());
    inventory.select(selection)?;
    let all = std::mem::take(&mut inventory.pods);
    let mut problems = std::mem::take(&mut stored.problems);
    let recorded = Recorded::of(&stored);
    inventory.pods = private::split(all, &inventory.host, None, |pod| recorded.has(pod)).0;
    problems.append(&mut inventory.problems);
    let ProbePlan {
        mut pods,
        mut questions,
        under_pods,
        without_network,
        spent,
        mut unanswered,
    } = survey(&mut inventory, &recorded, node, limits.pod, &mut problems);
    let scope = host::Scope {
        now: &inventory.host.state,
        recorded: node.map(|node| &node.state),
        under_pods,
        all_devices: selection.is_everything(),
    };
    let router = state::router(&mut inventory.host.socket, scope.now);
    questions.extend(scope.questions(router.unwrap_or_default()));
    progress.notice(Progress::Phase(Stage::ProbingGateways, questions.len()));
    let asking = (0..inventory.pods.len()).filter(|at| !without_network.contains(at));
    let asking: Vec<usize> = asking.collect();
    let mut parts = targets::parts(&asking, targets);
    let mut start =
        |pods: &mut [Pod]| Some(Queries::start(pods, parts.next()?, targets, limits.answer));
    let mut queries = start(&mut inventory.pods);
    let answers = probe::probe(&mut inventory, &questions, limits, &spent).map_err(probe_failed)?;
    let mut host = Answers::none(Reachability::NoGateway);
    for (question, answer) in questions.iter().zip(answers) {
        unanswered.extend(take(question, answer, &mut host, &mut pods, limits));
    }
    while let Some(part) = queries {
        for (at, found) in part.finish() {
            unanswered.extend(pods[at].take(found));
        }
        queries = start(&mut inventory.pods);
    }
    add_damaged(&mut pods, &stored);
    Ok(Verified {
        node: inventory.node,
        host,
        pods,
        problems,
        unanswered,
        observed: inventory.host,
    })
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn probe_failed(error: Error) -> Refusal {
    let error = error.to_string();
    Refusal::failed(GatewayCause::ProbeFailed { error }.error("probe"))
}

/// Adds the answer of one gateway to those of its namespace; returns what is wrong with it.
fn take(
    question: &Question,
    answer: ProbeAnswer,
    host: &mut Answers,
    pods: &mut [VerifiedPod],
    limits: ProbeLimits,
) -> Option<Unanswered> {
    let object = format!("{} dev {}", question.gateway, question.dev);
    let (answers, pod, object) = match question.place {
        Prober::Host => (host, None, format!("{object} of the host")),
        Prober::Pod(at) => {
            let VerifiedPod { pod, answers, .. } = &mut pods[at];
            (answers, Some(pod.info.id.clone()), object)
        }
    };
    let (kind, cause) = answers.take(question, answer, limits)?;
    Some(Unanswered {
        pod,
        object,
        kind,
        cause,
    })
}

/// Adds the pods whose checkpoint cannot be read, and sorts all.
fn add_damaged(pods: &mut Vec<VerifiedPod>, stored: &Stored) {
    for info in &stored.damaged {
        if !pods.iter().any(|one| one.pod.info.id == info.id) {
            let summary = PodSummary::bare(info, None);
            pods.push(VerifiedPod::new(summary, Reachability::Failed));
        }
    }
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
}

/// What is known before the probe.
#[derive(Default)]
struct ProbePlan {
    /// Every pod, not probed yet.
    pods: Vec<VerifiedPod>,
    /// The gateways to probe.
    questions: Vec<Question>,
    /// The host's links below the pods' links, now or by the checkpoints.
    under_pods: BTreeSet<IfName>,
    /// The pods that had no interface when their state was saved, and have none.
    without_network: BTreeSet<usize>,
    /// What each pod has cost.
    spent: Vec<Duration>,
    /// Those that cost too much.
    unanswered: Vec<Unanswered>,
}

fn survey(
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
        survey.stands_on(then.map(|then| then.own.stack.as_slice()));
        let problem = match state {
            Ok(reach) => {
                verified.pod.interfaces = interfaces(&reach.state);
                survey.stands_on([&*graph.under(&reach.state.links)]);
                verified.answers.state = survey.note_long(&pod.info.id, &object, &reach);
                let unread = survey.add_gateways(at, &reach, then, budget);
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

/// Whether it could be read and has no link but a loopback device.
fn is_bare(read: &Result<Reach, Error>) -> bool {
    let is_bare = |reach: &Reach| reach.state.links_but_loopback().next().is_none();
    read.as_ref().is_ok_and(is_bare)
}

impl ProbePlan {
    /// Adds the gateways that a pod has and had, as far as its budget allows. Returns why the latter are not known.
    fn add_gateways(
        &mut self,
        at: usize,
        now: &Reach,
        then: Option<Record<'_>>,
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

impl VerifiedPod {
    fn new(pod: PodSummary, state: Reachability) -> Self {
        Self {
            pod,
            answers: Answers::none(state),
            targets: Vec::new(),
            observed: NetState::default(),
        }
    }

    /// Adds what the targets answered; returns what is wrong with them.
    fn take(&mut self, found: TargetAnswers) -> Vec<Unanswered> {
        let mut unanswered = Vec::new();
        for (answer, cause) in found {
            let state = match cause {
                None => Reachability::Reachable,
                Some(_) => Reachability::Unreachable,
            };
            self.answers.state = self.answers.state.max(state);
            unanswered.extend(cause.map(|cause| Unanswered {
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

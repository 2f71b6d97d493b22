//! Do the pods reach their gateways, and does the host?

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

use nix::errno::Errno;

use self::question::{Prober, Question, Questions};
use self::recorded::Recorded;
use self::targets::{Queries, TargetAnswers, VerifyTarget};
use self::trial::ProbeAnswer;
use crate::inventory::observe::Pod;
use crate::inventory::pods::observe_reach;
use crate::inventory::{Inventory, cannot_observe, private};
use crate::kernel::Error;
use crate::kernel::state::{self, Reach};
use crate::matching::Selection;
use crate::model::net::stack;
use crate::model::pod::empty::needs_none;
use crate::model::problem::{GatewayCause, MatchingCause};
use crate::model::{
    GatewayAnswer, IfName, NetState, NodeIdentity, NodeState, PodId, PodSummary, Problem,
    StackLink, TargetAnswer, interfaces,
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
}

/// A gateway or target that did not answer, or could not be queried.
#[derive(Debug, Clone)]
pub(crate) struct Unanswered {
    /// The pod; `None` for the host.
    pub pod: Option<PodId>,
    /// The gateway or target.
    pub object: String,
    pub cause: GatewayCause,
}

impl Unanswered {
    pub(crate) fn problem(&self) -> Problem {
        let problem = self.cause.clone().error(&self.object);
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
}

/// What the gateways of one namespace answered.
#[derive(Debug)]
pub(crate) struct Answers {
    pub state: Reachability,
    pub gateways: Vec<GatewayAnswer>,
    /// When the first of them answered.
    pub first: Option<Instant>,
}

/// Whether a namespace reaches its gateways; the worst of them decides.
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

/// Probes the gateways that the pods and the host have, and those that they had by these records.
pub(crate) fn verify(
    mut inventory: Inventory,
    mut stored: Stored,
    node: Option<&NodeState>,
    selection: &Selection,
    targets: &[VerifyTarget],
    timeout: Duration,
    progress: &mut dyn Listener,
) -> Result<Verified, Refusal> {
    inventory.learn_names(&stored.records());
    inventory.select(selection)?;
    let all = std::mem::take(&mut inventory.pods);
    let recorded = Recorded::of(&stored.checkpoints);
    inventory.pods = private::split(all, &inventory.host, None, |pod| recorded.has(pod)).0;
    let mut problems = std::mem::take(&mut stored.problems);
    problems.append(&mut inventory.problems);
    let ProbePlan {
        mut pods,
        mut questions,
        under_pods,
        without_network,
    } = survey(&mut inventory, &recorded, node, &mut problems);
    let scope = host::Scope {
        now: &inventory.host.state,
        recorded: node.map(|node| &node.state),
        under_pods,
        all_devices: selection.is_everything(),
    };
    let router = state::router(&mut inventory.host.socket, scope.now);
    questions.extend(scope.questions(router.unwrap_or_default()));
    progress.notice(Progress::Phase(Stage::ProbingGateways, questions.len()));
    let asking: Vec<usize> = (0..inventory.pods.len())
        .filter(|at| !without_network.contains(at))
        .collect();
    let mut parts = targets::parts(&asking, targets);
    let mut start = |pods: &mut [Pod]| Some(Queries::start(pods, parts.next()?, targets, timeout));
    let mut queries = start(&mut inventory.pods);
    let answers = probe::probe(&mut inventory, &questions, timeout).map_err(|error| {
        let error = error.to_string();
        Refusal::failed(GatewayCause::ProbeFailed { error }.error("probe"))
    })?;
    let (mut host, mut unanswered) = (Answers::none(Reachability::NoGateway), Vec::new());
    for (question, answer) in questions.iter().zip(answers) {
        unanswered.extend(take(question, answer, &mut host, &mut pods, timeout));
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
    })
}

/// Adds the answer of one gateway to those of its namespace; returns what is wrong with it.
fn take(
    question: &Question,
    answer: ProbeAnswer,
    host: &mut Answers,
    pods: &mut [VerifiedPod],
    timeout: Duration,
) -> Option<Unanswered> {
    let object = format!("{} dev {}", question.gateway, question.dev);
    Some(match question.place {
        Prober::Host => Unanswered {
            cause: host.take(question, answer, timeout)?,
            pod: None,
            object: format!("{object} of the host"),
        },
        Prober::Pod(at) => Unanswered {
            cause: pods[at].answers.take(question, answer, timeout)?,
            pod: Some(pods[at].pod.info.id.clone()),
            object,
        },
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
}

fn survey(
    inventory: &mut Inventory,
    recorded: &Recorded<'_>,
    node: Option<&NodeState>,
    problems: &mut Vec<Problem>,
) -> ProbePlan {
    let states = observe_reach(&mut inventory.pods, &inventory.host);
    let is_bare = |reach: &Reach| reach.state.links_but_loopback().next().is_none();
    let bare: Vec<bool> = states
        .iter()
        .map(|state| state.as_ref().is_ok_and(is_bare))
        .collect();
    let witnesses = Witnesses {
        answer: inventory.answer.as_ref(),
        cni_cache: Path::new(CNI_CACHE),
    };
    let evidence = witnesses.among(&mut inventory.pods, &bare);
    let mut survey = ProbePlan::default();
    for (at, (pod, state)) in inventory.pods.iter().zip(states).enumerate() {
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        let mut verified = VerifiedPod::new(summary, Reachability::NoGateway);
        let object = pod.netns.shown();
        let then = recorded.about(&inventory.node, pod);
        survey.stands_on(then.map(|extension| extension.stack.as_slice()));
        let problem = match state {
            Ok(Reach { state, router }) => {
                verified.pod.interfaces = interfaces(&state);
                let then_state = then.map(|extension| &extension.state);
                survey.stands_on([&*stack::under(&state, &inventory.host.state)]);
                let gateways = gateways(Prober::Pod(at), &state, then_state, router);
                survey.questions.extend(gateways);
                let is_bare = bare[at];
                let known = node.and_then(|node| node.empty(&pod.identity));
                let was_empty = needs_none(known, evidence[at]);
                if is_bare && was_empty {
                    survey.without_network.insert(at);
                }
                let is_unknown = is_bare && then.is_none() && !was_empty;
                if is_unknown {
                    verified.answers.state = Reachability::NoCheckpoint;
                }
                is_unknown.then(|| MatchingCause::BareWithoutCheckpoint.error(object))
            }
            Err(error) => {
                verified.answers.state = Reachability::Failed;
                Some(cannot_observe(&object, &error))
            }
        };
        problems.extend(problem.map(|problem| problem.of(&pod.info.id)));
        survey.pods.push(verified);
    }
    survey
}

impl ProbePlan {
    fn stands_on<'a>(&mut self, stacks: impl IntoIterator<Item = &'a [StackLink]>) {
        let links = stacks.into_iter().flatten();
        self.under_pods.extend(links.map(|link| link.name.clone()));
    }
}

/// The gateways that the pod has now, and those that it should have by its checkpoint.
fn gateways(
    place: Prober,
    now: &NetState,
    then: Option<&NetState>,
    router: Option<(IpAddr, IfName)>,
) -> Vec<Question> {
    let mut questions = Questions::new(place, now, then);
    let before = then.iter().flat_map(|state| &state.routes);
    for route in now.routes.iter().chain(before) {
        for (gateway, dev) in route.gateways() {
            questions.add(gateway, dev, dev, route);
        }
    }
    questions.add_router(router);
    questions.finish()
}

impl VerifiedPod {
    fn new(pod: PodSummary, state: Reachability) -> Self {
        Self {
            pod,
            answers: Answers::none(state),
            targets: Vec::new(),
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
                cause,
            }));
            self.targets.push(answer);
        }
        unanswered
    }
}

impl Answers {
    fn none(state: Reachability) -> Self {
        Self {
            state,
            gateways: Vec::new(),
            first: None,
        }
    }

    /// Adds the answer of one gateway; returns what is wrong with it.
    fn take(
        &mut self,
        question: &Question,
        answer: ProbeAnswer,
        timeout: Duration,
    ) -> Option<GatewayCause> {
        let mut view = GatewayAnswer {
            address: question.gateway,
            dev: question.dev.clone(),
            reachable: Some(false),
            rtt_us: None,
            lladdr: None,
        };
        let mut state = Reachability::Unreachable;
        let cause = match answer {
            ProbeAnswer::Reachable { rtt, lladdr, at } => {
                state = Reachability::Reachable;
                view.reachable = Some(true);
                view.rtt_us = rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok());
                view.lladdr = lladdr;
                self.first = Some(self.first.map_or(at, |first| first.min(at)));
                None
            }
            ProbeAnswer::Static => {
                state = Reachability::Unknown;
                view.reachable = None;
                Some(GatewayCause::PermanentNeighbour)
            }
            ProbeAnswer::Silent => Some(GatewayCause::NoAnswer { timeout }),
            ProbeAnswer::Refused(errno @ (Errno::ENOBUFS | Errno::ENOMEM)) => {
                state = Reachability::Unknown;
                view.reachable = None;
                let error = Error::from(errno).to_string();
                Some(GatewayCause::NoMemory { error })
            }
            ProbeAnswer::Refused(errno) => Some(GatewayCause::CannotProbe {
                error: Error::from(errno).to_string(),
            }),
            ProbeAnswer::Blocked(obstacle) => Some(obstacle.cause(question)),
            ProbeAnswer::NoInterface => Some(GatewayCause::InterfaceMissing),
        };
        self.state = self.state.max(state);
        self.gateways.push(view);
        cause
    }
}

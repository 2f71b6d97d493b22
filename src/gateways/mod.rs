//! Do the pods reach their gateways, and does the host?

mod answers;
mod cut_off;
mod forwarding;
mod host;
mod names;
mod probe;
mod question;
mod recorded;
mod redirected;
mod rules;
mod survey;
pub mod targets;
mod trial;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

pub(crate) use self::answers::{Answers, ProbeLimits, Reachability, SilenceKind};
use self::question::{Prober, Question, Role};
use self::recorded::{PastAnswer, Recorded};
use self::survey::{ProbePlan, survey};
pub(crate) use self::survey::{Unanswered, VerifiedPod};
use self::targets::{Queries, VerifyTarget};
use self::trial::ProbeAnswer;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::{Inventory, private};
use crate::kernel::Error;
use crate::matching::Selection;
use crate::model::problem::GatewayCause;
use crate::model::{AnswerRecord, Code, NodeIdentity, NodeState, PodSummary, Problem};
use crate::progress::{Listener, Progress, Stage};
use crate::records::stored::{Stored, load_in_part, load_node};
use crate::refusal::Refusal;
use crate::store::Store;

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

impl Verified {
    /// All problems.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let unanswered = self.unanswered.iter().map(Unanswered::problem);
        self.problems.iter().cloned().chain(unanswered).collect()
    }

    /// What answered, for the record; `is_before` a window, while nothing has been lost.
    pub(crate) fn for_record(&self, is_before: bool) -> Vec<AnswerRecord> {
        let of_pods = self.pods.iter().flat_map(|one| {
            let answers = &one.answers;
            answers.for_record(Some(&one.pod.info.id), is_before)
        });
        self.host
            .for_record(None, is_before)
            .chain(of_pods)
            .collect()
    }
}

/// Probes the gateways of all pods and of the host, by the checkpoints, and waits `limit` for their answers.
pub(crate) fn verify_all(
    store: &Store,
    limit: Duration,
    progress: &mut dyn Listener,
) -> Result<Verified, Refusal> {
    let all = Selection::everything();
    let mut stored = load_in_part(store, &all)?;
    let node = load_node(store, &mut stored.problems)?;
    let inventory = Inventory::open(&all)?;
    let limits = ProbeLimits::new(limit);
    verify(
        inventory,
        stored,
        node.as_ref(),
        &all,
        &[],
        limits,
        progress,
    )
}

/// Probes the gateways that the pods and the host have, and those that they had by these records.
pub(crate) fn verify(
    mut inventory: Inventory,
    mut stored: Stored,
    node: Option<&NodeState>,
    selection: &Selection,
    targets: &[VerifyTarget],
    mut limits: ProbeLimits<'_>,
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
    let all_devices = selection.is_everything();
    let of_host = host::questions(&mut inventory.host, node, under_pods, all_devices);
    questions.extend(of_host);
    remember(&mut questions, &pods, node);
    limits.answer += forwarding::awaited(&inventory.host.state, &mut problems);
    progress.notice(Progress::Phase(Stage::ProbingGateways, questions.len()));
    let mut asking: Vec<usize> = (0..inventory.pods.len()).collect();
    asking.retain(|at| !without_network.contains(at));
    let mut parts = targets::parts(&asking, targets);
    let answer = limits.answer;
    let mut start = |pods: &mut [Pod]| Some(Queries::start(pods, parts.next()?, targets, answer));
    let mut queries = start(&mut inventory.pods);
    let asked = Instant::now();
    let answers = probe::probe(&mut inventory, &questions, limits, &spent).map_err(probe_failed)?;
    let limits = limits.waited(asked.elapsed());
    let mut beyond = BTreeMap::new();
    while let Some(part) = queries {
        unanswered.extend(take_targets(part, &mut pods, &mut beyond));
        queries = start(&mut inventory.pods);
    }
    let mut host = Answers::none(Reachability::NoGateway);
    for (question, answer) in judged(&questions, answers, &pods, &beyond, &mut inventory.host) {
        unanswered.extend(take(question, answer, &mut host, &mut pods, limits));
    }
    problems.extend(cut_off::find(&mut inventory, &recorded, &mut pods, limits));
    demote_damaged(&mut problems, &pods);
    Ok(Verified {
        node: inventory.node,
        host,
        pods: with_damaged(pods, &stored),
        problems,
        unanswered,
        observed: inventory.host,
    })
}

/// Adds to each question what the record has of an earlier answer.
fn remember(questions: &mut [Question], pods: &[VerifiedPod], node: Option<&NodeState>) {
    for question in questions {
        let pod = match question.place {
            Prober::Pod(at) => Some(&pods[at].pod.info.id),
            Prober::Host => None,
        };
        let known = node.map(|node| node.answers.of(pod, question.gateway, &question.dev));
        question.before = match question.role {
            Role::Gateway => known.flatten().into(),
            // A machine of another may no longer answer pings.
            Role::Neighbour => PastAnswer::Arp,
        };
    }
}

/// Takes what the targets answered, and which answered `beyond` the gateways of each pod.
fn take_targets(
    queries: Queries,
    pods: &mut [VerifiedPod],
    beyond: &mut BTreeMap<usize, Vec<IpAddr>>,
) -> Vec<Unanswered> {
    let mut unanswered = Vec::new();
    for (at, found) in queries.finish() {
        let answered = found.iter().filter_map(|(_, found)| found.as_ref().ok());
        beyond.insert(at, answered.copied().collect());
        unanswered.extend(pods[at].take(found));
    }
    unanswered
}

/// The answers as they count, with the targets that answered `beyond` the gateways of each pod, and the way back to it. Of neighbours, one that answers is
/// enough.
fn judged<'q>(
    questions: &'q [Question],
    answers: Vec<ProbeAnswer>,
    pods: &[VerifiedPod],
    beyond: &BTreeMap<usize, Vec<IpAddr>>,
    host: &mut Host,
) -> Vec<(&'q Question, ProbeAnswer)> {
    let mut judge = |question: &'q Question, answer: ProbeAnswer| {
        let Prober::Pod(at) = question.place else {
            return (question, answer);
        };
        let (state, beyond) = (&pods[at].observed, beyond.get(&at));
        let answer = answer.with_targets(question, state, beyond.into_iter().flatten());
        let mac = answer.lladdr();
        let obstacle = mac.and_then(|mac| way::back(host, state, question, mac));
        (question, obstacle.map_or(answer, ProbeAnswer::Blocked))
    };
    let all = questions.iter().zip(answers);
    let mut all: Vec<_> = all
        .map(|(question, answer)| judge(question, answer))
        .collect();
    let met: BTreeSet<_> = all
        .iter()
        .filter(|(question, answer)| question.role == Role::Neighbour && answer.is_heard())
        .map(|(question, _)| question.place)
        .collect();
    all.retain(|(question, answer)| {
        question.role == Role::Gateway || answer.is_heard() || !met.contains(&question.place)
    });
    all
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
    limits: ProbeLimits<'_>,
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

/// The probe of a running pod needs no checkpoint: one that is damaged is a warning there.
fn demote_damaged(problems: &mut [Problem], probed: &[VerifiedPod]) {
    let probed = probed.iter();
    let probed = probed.filter(|one| one.answers.state != Reachability::Failed);
    let probed: BTreeSet<_> = probed.map(|one| &one.pod.info.id).collect();
    for problem in problems {
        let is_probed = problem.pod.as_ref().is_some_and(|id| probed.contains(id));
        if is_probed && problem.code() == Code::CheckpointCorrupt {
            *problem = problem.clone().demoted();
        }
    }
}

/// Adds the pods whose checkpoint cannot be read, and sorts all.
fn with_damaged(mut pods: Vec<VerifiedPod>, stored: &Stored) -> Vec<VerifiedPod> {
    for info in &stored.damaged {
        if !pods.iter().any(|one| one.pod.info.id == info.id) {
            let summary = PodSummary::bare(info, None);
            pods.push(VerifiedPod::new(summary, Reachability::Failed));
        }
    }
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
    pods
}

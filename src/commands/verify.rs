//! `netfix verify`: do the pods reach their gateways?

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::prepare::NodeFile;
use super::select::Selection;
use super::session::{self, Session, Stored, bare_view, load};
use super::{Context, Early, Outcome};
use crate::cli::Selectors;
use crate::kernel::Error;
use crate::model::checkpoint::Extension;
use crate::model::{Code, IfName, LinkKind, NetState, NetnsIdentity, NodeIdentity, PodId, Problem};
use crate::observe::{self, Pod};
use crate::probe::{self, Answer, Question};
use crate::report::{GatewayView, PodView, Progress, State, interfaces};

/// A gateway that a pod has or had.
struct Expected {
    pod: usize,
    dev: IfName,
    gateway: IpAddr,
    /// The interface's index; `None` when the pod does not have it now.
    index: Option<u32>,
}

pub(super) fn run(selectors: &Selectors, timeout: Duration, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(selectors)?;
    let stored = load(&context.store, &selection)?;
    let verified = ask_gateways(stored, NodeFile::In(&context.store.clone()), &selection, timeout, context)?;
    Ok(verified.outcome)
}

/// What the gateways said.
pub(super) struct Verified {
    pub outcome: Outcome,
    /// When the first of a pod's gateways answered.
    pub answered: BTreeMap<PodId, Instant>,
}

/// Asks the gateways that the pods have, and those that they had by these records.
pub(super) fn ask_gateways(
    stored: Stored,
    node: NodeFile<'_>,
    selection: &Selection,
    timeout: Duration,
    context: &mut Context,
) -> Result<Verified, Early> {
    let Stored { checkpoints, damaged, mut problems } = stored;
    let mut session = Session::open(selection)?;
    let known: Vec<_> = checkpoints.iter().map(|(info, checkpoint)| (&info.id, checkpoint)).collect();
    session.recognise(&known);
    session.pods.retain(|pod| selection.wants_pod(&pod.info));
    session.require_pods(selection)?;
    problems.append(&mut session.problems);
    let known_empty = node.load(&session.node, &mut problems).map(|node| node.empty);
    let extensions: Vec<&Extension> = checkpoints.iter().filter_map(|(_, c)| c.netfix.as_ref()).collect();
    let states = observe::observe_pods(&mut session.pods, &session.host);
    let mut survey = Survey {
        node: &session.node,
        extensions: &extensions,
        known_empty: known_empty.as_deref().unwrap_or_default(),
        views: Vec::new(),
        expected: Vec::new(),
        problems,
    };
    for (at, (pod, state)) in session.pods.iter().zip(states).enumerate() {
        survey.pod(at, pod, state);
    }
    let Survey { mut views, expected, mut problems, .. } = survey;
    context.progress.notice(Progress::Phase("asking gateways", expected.len()));
    let answers = ask(&mut session.pods, &expected, timeout).map_err(|error| {
        Box::new(Outcome::failed(Problem::error(Code::Failed, "probe", error.to_string())))
    })?;
    let mut answered: BTreeMap<PodId, Instant> = BTreeMap::new();
    for (expected, answer) in expected.iter().zip(answers) {
        let view = &mut views[expected.pod];
        if let Some(Answer::Reachable { at, .. }) = answer {
            let first = answered.entry(view.info.id.clone()).or_insert(at);
            *first = at.min(*first);
        }
        let (gateway, problem) = judge(expected, answer, timeout);
        view.state = worse(view.state, state_of(&gateway));
        view.gateways.push(gateway);
        problems.extend(problem.map(|problem| problem.of(&view.info.id)));
    }
    let alive = |view: &PodView| session.pods.iter().any(|pod| pod.info.id == view.info.id);
    views.extend(damaged.into_iter().filter(|view| !alive(view)));
    views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let exit = Outcome::judge(&views, &problems);
    let node = session.node_view(None);
    Ok(Verified { outcome: Outcome { exit, node, pods: views, problems, ..Outcome::default() }, answered })
}

/// Which gateways there are to ask for.
struct Survey<'a> {
    node: &'a NodeIdentity,
    extensions: &'a [&'a Extension],
    known_empty: &'a [NetnsIdentity],
    views: Vec<PodView>,
    expected: Vec<Expected>,
    problems: Vec<Problem>,
}

impl Survey<'_> {
    fn pod(&mut self, at: usize, pod: &Pod, state: Result<NetState, Error>) {
        let mut view = bare_view(&pod.info, &pod.netns.path, State::NoGateway);
        let object = pod.netns.path.display().to_string();
        let about = self.extensions.iter().filter(|then| then.is_about(self.node, &pod.identity, &pod.info));
        let then = about.max_by_key(|extension| &extension.created);
        match state {
            Ok(state) => {
                view.interfaces = interfaces(&state);
                self.expected.extend(gateways(at, &state, then.map(|extension| &extension.state)));
                let is_bare = state.links.iter().all(|link| link.kind == LinkKind::Loopback);
                let was_empty = self.known_empty.iter().any(|known| known.is_same(&pod.identity));
                if is_bare && then.is_none() && !was_empty {
                    view.state = State::NoCheckpoint;
                    let message = "has no interface and no checkpoint, so nobody knows what it lost";
                    self.problems
                        .push(Problem::error(Code::CheckpointMissing, object, message).of(&view.info.id));
                }
            }
            Err(error) => {
                view.state = State::Failed;
                self.problems
                    .push(Problem::error(Code::Unreadable, object, error.to_string()).of(&view.info.id));
            }
        }
        self.views.push(view);
    }
}

/// The gateways that the pod has now, and those that its checkpoint says it should have.
fn gateways(pod: usize, now: &NetState, then: Option<&NetState>) -> Vec<Expected> {
    let mut expected: Vec<Expected> = Vec::new();
    for route in now.routes.iter().chain(then.iter().flat_map(|state| &state.routes)) {
        for (gateway, dev) in route.gateways() {
            if !expected.iter().any(|known| known.gateway == gateway && known.dev == *dev) {
                let index = now.link(dev).map(|link| link.index);
                expected.push(Expected { pod, dev: dev.clone(), gateway, index });
            }
        }
    }
    expected
}

/// Asks for the gateways of interfaces that are there; `None` stands for those that are not.
fn ask(pods: &mut [Pod], expected: &[Expected], timeout: Duration) -> Result<Vec<Option<Answer>>, Error> {
    let question = |e: &Expected| e.index.map(|index| Question { pod: e.pod, index, gateway: e.gateway });
    let questions: Vec<Question> = expected.iter().filter_map(question).collect();
    let mut answers = probe::ask(pods, &questions, timeout)?.into_iter();
    Ok(expected.iter().map(|e| e.index.and_then(|_| answers.next())).collect())
}

fn judge(expected: &Expected, answer: Option<Answer>, timeout: Duration) -> (GatewayView, Option<Problem>) {
    let Expected { dev, gateway, .. } = expected;
    let mut view = GatewayView {
        address: *gateway,
        dev: dev.clone(),
        reachable: Some(false),
        rtt_us: None,
        lladdr: None,
    };
    let why = match answer {
        Some(Answer::Reachable { rtt, lladdr, at: _ }) => {
            view.reachable = Some(true);
            view.rtt_us = rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok());
            view.lladdr = lladdr;
            return (view, None);
        }
        Some(Answer::Static) => {
            view.reachable = None;
            "is a permanent neighbour, so it cannot be asked".to_owned()
        }
        Some(Answer::Silent) => format!("does not answer within {}", humantime::format_duration(timeout)),
        Some(Answer::Refused(errno)) => format!("cannot be asked: {}", Error::from(errno)),
        None => "cannot be asked: the interface is not there".to_owned(),
    };
    let object = format!("{gateway} dev {dev}");
    (view, Some(Problem::error(Code::GatewayUnreachable, object, why)))
}

fn state_of(gateway: &GatewayView) -> State {
    match gateway.reachable {
        Some(true) => State::Reachable,
        Some(false) => State::Unreachable,
        None => State::Unknown,
    }
}

/// A pod is as well off as its worst gateway.
fn worse(a: State, b: State) -> State {
    let badness = |state: State| match state {
        State::NoGateway => 0,
        State::Reachable => 1,
        State::Unknown => 2,
        _ => 3,
    };
    if badness(a) > badness(b) { a } else { b }
}

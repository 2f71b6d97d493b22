//! `netfix verify`: do the pods reach their gateways?

use std::net::IpAddr;
use std::time::Duration;

use super::session::{self, Session, Stored, bare_view, load};
use super::{Context, Early, Outcome};
use crate::cli::Selectors;
use crate::model::{Checkpoint, Code, IfName, NetState, PodInfo, Problem};
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
    let Stored { checkpoints, damaged, mut problems } = load(&context.store, &selection)?;
    let mut session = Session::open(&selection)?;
    session.require_pods(&selection)?;
    problems.append(&mut session.problems);
    let node = session.node_view(None);
    let states = observe::observe_pods(&mut session.pods, &session.host);
    let mut pods = session.pods;
    let mut views: Vec<PodView> = Vec::new();
    let mut expected = Vec::new();
    for (at, (pod, state)) in pods.iter().zip(states).enumerate() {
        let mut view = bare_view(&pod.info, pod.netns.path.display().to_string(), State::NoGateway);
        match state {
            Ok(state) => {
                expected.extend(gateways(at, &state, checkpoint_of(pod, &checkpoints)));
                view.interfaces = interfaces(&state);
            }
            Err(error) => {
                view.state = State::Failed;
                problems.push(
                    Problem::error(Code::Unreadable, view.netns.clone(), error.to_string()).of(&pod.info.id),
                );
            }
        }
        views.push(view);
    }
    context.progress.notice(Progress::Phase("asking gateways", expected.len()));
    let answers = ask(&mut pods, &expected, timeout).map_err(|error| {
        Box::new(Outcome::failed(Problem::error(Code::Failed, "probe", error.to_string())))
    })?;
    for (expected, answer) in expected.iter().zip(answers) {
        let view = &mut views[expected.pod];
        let (gateway, problem) = judge(expected, answer, timeout);
        let good = gateway.reachable && view.state != State::Unreachable;
        view.state = if good { State::Reachable } else { State::Unreachable };
        view.gateways.push(gateway);
        problems.extend(problem.map(|problem| problem.of(&pods[expected.pod].info.id)));
    }
    views.extend(damaged);
    views.sort_by(|a, b| a.id.cmp(&b.id));
    let exit = Outcome::judge(&views, &problems);
    Ok(Outcome { exit, node, pods: views, problems })
}

fn checkpoint_of<'a>(pod: &Pod, stored: &'a [(PodInfo, Checkpoint)]) -> Option<&'a Checkpoint> {
    let is_of = |checkpoint: &&Checkpoint| {
        checkpoint.netfix.as_ref().is_some_and(|extension| extension.identity.is_same(&pod.identity))
    };
    stored.iter().map(|(_, checkpoint)| checkpoint).find(is_of)
}

/// The gateways that the pod has now, and those that its checkpoint says it should have.
fn gateways(pod: usize, now: &NetState, stored: Option<&Checkpoint>) -> Vec<Expected> {
    let then = stored.and_then(|checkpoint| checkpoint.netfix.as_ref()).map(|extension| &extension.state);
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
fn ask(
    pods: &mut [Pod],
    expected: &[Expected],
    timeout: Duration,
) -> Result<Vec<Option<Answer>>, crate::kernel::Error> {
    let question = |e: &Expected| e.index.map(|index| Question { pod: e.pod, index, gateway: e.gateway });
    let questions: Vec<Question> = expected.iter().filter_map(question).collect();
    let mut answers = probe::ask(pods, &questions, timeout)?.into_iter();
    Ok(expected.iter().map(|e| e.index.and_then(|_| answers.next())).collect())
}

fn judge(expected: &Expected, answer: Option<Answer>, timeout: Duration) -> (GatewayView, Option<Problem>) {
    let Expected { dev, gateway, .. } = expected;
    let mut view =
        GatewayView { address: *gateway, dev: dev.clone(), reachable: false, rtt_us: None, lladdr: None };
    let why = match answer {
        Some(Answer::Reachable { rtt, lladdr }) => {
            view.reachable = true;
            view.rtt_us = rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok());
            view.lladdr = lladdr;
            return (view, None);
        }
        Some(Answer::Silent) => format!("does not answer within {}", humantime::format_duration(timeout)),
        Some(Answer::Static) => "is a permanent neighbour, so it cannot be asked".to_owned(),
        Some(Answer::Refused(errno)) => format!("cannot be asked: {}", crate::kernel::Error::from(errno)),
        None => "cannot be asked: the interface is not there".to_owned(),
    };
    let object = format!("{gateway} dev {dev}");
    (view, Some(Problem::error(Code::GatewayUnreachable, object, why)))
}

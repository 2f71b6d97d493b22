//! The pods of a window whose netfix died: what later commands do and find belongs to its record.

use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::check::drift;
use crate::clock;
use crate::context::Context;
use crate::gateways::{Verified, verify_all};
use crate::inventory::sockets::named;
use crate::matching::Selection;
use crate::model::problem::CheckCause;
use crate::model::window::{Phase, PhaseName, WindowPod};
use crate::model::{Loss, PodId, Problem, State, Window};
use crate::plan::PodVerdict;
use crate::records::prepare::SurveyRequest;
use crate::records::stored::{Stored, load, load_node};
use crate::refusal::Refusal;
use crate::restore::Restored;
use crate::runtime::RuntimeConfig;
use crate::situation::{Compared, Depth, Situation};
use crate::store::Store;
use crate::window::event::{Event, Reached};
use crate::window::facts::{Silence, excuse, excuse_older};
use crate::window::rebuild_check::{After, query};
use crate::window::records::is_abandoned;
use crate::window::session::WindowSession;

/// How long the observation of the pods may delay the start of kubelet.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a runtime that stops with kubelet may take to answer again.
const BACK_AGAIN: Duration = Duration::from_secs(30);
/// How long a gateway may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

fn find(store: &Store) -> Option<Window> {
    store.open_window().ok().flatten().filter(is_abandoned)
}

/// Takes the lock and reads the abandoned window; `None` if there is no such window, or another command has the lock.
fn session(command: &str, store: &Store) -> Option<WindowSession> {
    find(store)?;
    let guard = store.lock(command).ok()?;
    Some(WindowSession::visit(find(store)?, guard))
}

/// Records what a person's `netfix restore`, or that of the deadline, did since `began` (milliseconds since the machine's
/// boot), and which gateways answer after it.
pub(crate) fn note_restore(restored: &Restored, began: u64, context: &mut Context) {
    if find(&context.store).is_none() {
        return;
    }
    let ended = clock::boottime();
    // Without the lock: silent gateways take seconds.
    let verified = verify_all(&context.store, TIMEOUT, context.progress.as_mut());
    let Some(mut session) = session("restore", &context.store) else {
        return;
    };
    let began_window = session.window().started_boottime;
    session.note_phase(Phase {
        name: PhaseName::Restore,
        from: began.saturating_sub(began_window),
        to: Some(ended.saturating_sub(began_window)),
        ok: Some(restored.is_complete()),
    });
    session.note_restored(restored);
    if let Ok(verified) = &verified {
        session.note_verified(verified);
    }
    session.save_if_possible();
}

/// Records what `netfix verify` found.
pub(crate) fn note_verify(verified: &Verified, store: &Store) {
    // A command that reads does not wait for the lock.
    let store = store.clone().patient(Duration::ZERO, |_| {});
    if let Some(mut session) = session("verify", &store) {
        session.note_verified(verified);
        session.save_if_possible();
    }
}

/// What was observed before kubelet started; `None` where that took too long.
#[derive(Default)]
pub(crate) struct AbandonedPods {
    rebuilds: Option<(Stored, After, Vec<Problem>)>,
    states: Option<PodStates>,
}

/// The pods beside their checkpoints, and why they are not in sync.
type PodStates = (Vec<(PodId, State)>, Vec<Problem>);

/// Observes the pods of an abandoned window. A kubelet that starts may rebuild them, so this comes first, in a thread that
/// can neither fail nor delay the start for long.
pub(crate) fn observe_pods(
    session: &mut WindowSession,
    config: &RuntimeConfig,
    store: &Store,
) -> Option<AbandonedPods> {
    if !is_abandoned(session.window()) {
        return None;
    }
    session.begin(PhaseName::RebuildCheck, &Event::LookingAgain);
    let (sender, parts) = channel();
    let pods = session.window().pods.clone();
    let (config, store) = (config.clone(), store.clone());
    let thread = thread::Builder::new();
    let _ = thread.spawn(move || observe(&pods, &config, &store, &sender));
    let until = Instant::now() + LIMIT;
    let mut observed = AbandonedPods::default();
    // The sender is gone when the thread has ended, in whatever way.
    while let Ok(part) = parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
        observed.rebuilds = part.rebuilds.or(observed.rebuilds);
        observed.states = part.states;
    }
    session.end(observed.rebuilds.is_some() && observed.states.is_some());
    Some(observed)
}

/// Records the pods as they were observed, and probes the gateways; returns the problems.
pub(crate) fn note_pods(
    session: &mut WindowSession,
    observed: AbandonedPods,
    config: &RuntimeConfig,
    context: &mut Context,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some((stored, mut after, mut unreachable)) = observed.rebuilds {
        if after.sandboxes.is_none() {
            let again = query_rebuilds(&session.window().pods, config, BACK_AGAIN);
            (after.sandboxes, unreachable) = (again.0.sandboxes, again.1);
        }
        problems.extend(unreachable);
        problems.extend(session.note_fates(after, &stored, &BTreeSet::new()));
    }
    if let Some((states, found)) = observed.states {
        session.note_states(&states);
        problems.extend(found);
    }
    session.begin(PhaseName::Verify, &Event::Verifying);
    let found = match verify_all(&context.store, TIMEOUT, context.progress.as_mut()) {
        Ok(mut verified) => {
            let before = Silence::all_recorded(session.window());
            let mut problems = excuse(&mut verified, &before);
            let node = load_node(&context.store, &mut problems).ok().flatten();
            problems.extend(excuse_older(named::dead(node.as_ref())));
            session.log(&Event::Verified(Reached::of(&verified)));
            session.note_verified(&verified);
            problems
        }
        Err(refusal) => refusal.problems,
    };
    session.end(!found.iter().any(Problem::is_error));
    problems.extend(found);
    problems.retain(|problem| {
        let pod = problem.pod.as_ref();
        pod.is_none_or(|id| session.window().has_pod(id))
    });
    session.note_problems(&problems);
    problems
}

/// First what a kubelet that starts would change.
fn observe(
    pods: &[WindowPod],
    config: &RuntimeConfig,
    store: &Store,
    parts: &Sender<AbandonedPods>,
) {
    let (after, problems) = query_rebuilds(pods, config, Duration::ZERO);
    let stored = load(store, &Selection::everything()).unwrap_or_default();
    // Fails where the receiver waits no longer.
    let _ = parts.send(AbandonedPods {
        rebuilds: Some((stored, after, problems)),
        states: None,
    });
    let states = states(config, store);
    let _ = parts.send(AbandonedPods {
        rebuilds: None,
        states: Some(states.unwrap_or_else(|refusal| (Vec::new(), refusal.problems))),
    });
}

fn query_rebuilds(
    pods: &[WindowPod],
    config: &RuntimeConfig,
    limit: Duration,
) -> (After, Vec<Problem>) {
    let selection = Selection::everything();
    query::after(pods, config, &[], (limit, &|| false), &selection)
}

fn states(config: &RuntimeConfig, store: &Store) -> Result<PodStates, Refusal> {
    let request = SurveyRequest::new(Selection::everything(), config.clone());
    let Situation { surveyed, compared } = Situation::look(&request, store, Depth::Creation)?;
    let mut states = Vec::new();
    let mut problems = Vec::from_iter(drift(compared.host.lines().into_iter(), None));
    for (matched, compared) in surveyed.matched.iter().zip(compared.pods) {
        let id = &matched.info.id;
        states.push((id.clone(), State::from(&compared.verdict)));
        let generation = matched.origin.generation();
        problems.extend(
            why(compared, generation, id)
                .into_iter()
                .map(|problem| problem.of(id)),
        );
    }
    Ok((states, problems))
}

/// Why a pod is not in sync.
fn why(compared: Compared, generation: Option<u64>, id: &PodId) -> Vec<Problem> {
    match compared.verdict {
        PodVerdict::InSync => Vec::new(),
        PodVerdict::Unknown(problem) => vec![problem],
        PodVerdict::Lost(Loss { link, what }) => {
            vec![CheckCause::Lost { what, generation }.error(link)]
        }
        PodVerdict::CutOff { what, .. } => vec![what.problem()],
        PodVerdict::Drifted => {
            let steps = drift(compared.plan.lines().into_iter(), Some(id));
            let findings = compared.plan.findings().cloned();
            findings.chain(steps.map(Problem::into_error)).collect()
        }
    }
}

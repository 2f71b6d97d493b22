//! `netfix show POD`: everything that is known of one pod: what is stored, and the running pod.

use super::common::answer;
use super::list::node_state;
use crate::cli::ShowArgs;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::matching::Selection;
use crate::model::checkpoint::Extension;
use crate::model::problem::MatchingCause;
use crate::model::{Bytes, Checkpoint, PodInfo, Problem};
use crate::plan::PodVerdict;
use crate::records::stored::{Stored, age, load, summary_of};
use crate::refusal::Refusal;
use crate::report::{self, Document, Exit, Extra, PodView, ShowView, State};
use crate::runtime;
use crate::situation::inspect::{Inspected, inspect};
use crate::store::{PastCheckpoints, Store};

/// Finds the one checkpoint that is named by id, name, or the beginning of either, and compares it with the machine.
pub(super) fn run(args: &ShowArgs, context: &mut Context) -> Result<Document, Refusal> {
    let (pod, config) = (&Bytes::from(args.pod.as_os_str()), &args.runtimes.config());
    let store = context.store.at(args.generation)?;
    let mut stored = load(&store, &Selection::everything())?;
    keep_named(pod, &mut stored.checkpoints);
    let several = stored.checkpoints.len();
    match (stored.checkpoints.pop(), several) {
        (Some((info, checkpoint)), 1) => Ok(one(&info, checkpoint, Vec::new(), config, &store)),
        (None, _) => {
            let kept = args.generation.is_none().then(|| kept_of(pod, &store));
            let Some(Kept {
                generation,
                info,
                checkpoint,
            }) = kept.flatten()
            else {
                return not_found(pod, stored);
            };
            let damaged = stored.damaged.iter().zip(stored.problems);
            let why = damaged.filter(|(damaged, _)| damaged.id == info.id);
            let mut problems: Vec<Problem> = why.map(|(_, problem)| problem).collect();
            let problem = MatchingCause::FromGeneration { generation }.warning("checkpoint");
            problems.push(problem.of(&info.id));
            Ok(one(&info, checkpoint, problems, config, &store))
        }
        _ => {
            let problem = MatchingCause::SeveralPods { pods: several }.error(pod.to_string());
            Err(problem.into())
        }
    }
}

/// A checkpoint in a generation.
struct Kept {
    generation: u64,
    info: PodInfo,
    checkpoint: Checkpoint,
}

/// The newest kept checkpoint of a running pod of which the present files have none that can be read.
fn kept_of(pod: &Bytes, store: &Store) -> Option<Kept> {
    let inventory = Inventory::open(&Selection::everything()).ok()?;
    PastCheckpoints::new(store).find_map(|(generation, checkpoints)| {
        let named = checkpoints.into_iter();
        let mut named: Vec<_> = named
            .map(|(id, checkpoint)| (checkpoint.pod(&id), checkpoint))
            .collect();
        keep_named(pod, &mut named);
        named.retain(|(_, checkpoint)| {
            let own = checkpoint.netfix.as_ref();
            let mut running = inventory.pods.iter();
            let is_about = |own: &Extension| {
                running.any(|pod| own.is_about(&inventory.node, &pod.identity, &pod.info))
            };
            own.is_some_and(is_about)
        });
        let [_] = &named[..] else { return None };
        let (info, checkpoint) = named.pop()?;
        Some(Kept {
            generation,
            info,
            checkpoint,
        })
    })
}

/// Keeps the checkpoints with this id or name; if there is none, those whose id or name begins with it.
fn keep_named(pod: &Bytes, checkpoints: &mut Vec<(PodInfo, Checkpoint)>) {
    let pod = pod.as_slice();
    let any = |info: &PodInfo, is_it: &dyn Fn(&[u8]) -> bool| {
        let name = info.name.as_ref().map(Bytes::as_slice);
        // A title is the name as netfix shows it.
        let title = info.title();
        name.is_some_and(is_it)
            || [info.id.as_str(), &title]
                .iter()
                .any(|text| is_it(text.as_bytes()))
    };
    let is_whole = |info: &PodInfo| any(info, &|name| name == pod);
    if checkpoints.iter().any(|(info, _)| is_whole(info)) {
        checkpoints.retain(|(info, _)| is_whole(info));
    } else {
        checkpoints.retain(|(info, _)| any(info, &|name| name.starts_with(pod)));
    }
}

/// The pod's checkpoint is one of those that cannot be read, or there is none.
fn not_found(pod: &Bytes, stored: Stored) -> Result<Document, Refusal> {
    let mut damaged = stored.problems;
    damaged.retain(|problem| {
        let id = problem.pod.as_ref();
        id.is_some_and(|id| id.as_str().as_bytes().starts_with(pod.as_slice()))
    });
    if damaged.is_empty() {
        return Err(MatchingCause::NoCheckpoints.error(pod.to_string()).into());
    }
    Ok(answer(Exit::Failed, damaged, None))
}

/// One checkpoint beside the machine. The stored part is shown also where the machine cannot be read.
fn one(
    info: &PodInfo,
    checkpoint: Checkpoint,
    mut problems: Vec<Problem>,
    config: &runtime::RuntimeConfig,
    store: &Store,
) -> Document {
    let summary = summary_of(info, &checkpoint);
    let written = checkpoint.netfix.as_ref();
    let mut extra = ShowView {
        written_age: written.map(|written| age(&written.stamp()).into()),
        ..ShowView::default()
    };
    let Inspected {
        runs,
        compared,
        settings,
        problems: of_machine,
    } = inspect(info, &checkpoint, config, store);
    problems.extend(of_machine);
    let mut state = State::Stored;
    let mut steps = Vec::new();
    if let Some(compared) = compared {
        steps = compared.plan.lines();
        state = State::from(&compared.verdict);
        if let PodVerdict::Lost(loss) = compared.verdict {
            (extra.lost, extra.lost_what) = (Some(loss.link), Some(loss.what));
        }
        let of_plan = compared.plan.problems.into_iter();
        problems.extend(of_plan.map(|problem| problem.of(&info.id)));
    }
    extra.alive = runs;
    extra.settings = settings.iter().filter_map(report::setting).collect();
    // That the node's state cannot be read is among the problems already.
    let node = node_state(store, &mut Vec::new());
    let view = PodView {
        steps,
        checkpoint: Some(Box::new(checkpoint)),
        ..PodView::new(summary, state).verified_in(node.as_ref())
    };
    // The command succeeded, in whatever state the pod is.
    let demoted = problems.into_iter().map(Problem::demoted).collect();
    Document {
        pods: vec![view],
        ..answer(Exit::Done, demoted, Some(Extra::Show(extra)))
    }
}

//! The proof that no pod was rebuilt: what the runtimes say of every pod is what they said before.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::commands::window::Signals;
use crate::model::window::{Container, Lives, WindowPod};
use crate::model::{Code, Problem};
use crate::runtime::{self, Answer, Config, Sandbox};

/// How often it is looked whether somebody wants an end.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause before a runtime is asked again that is not back yet.
const LEAST_PAUSE: Duration = Duration::from_millis(20);
/// How long a runtime that went with kubelet, as k3s's containerd does, may take to be back.
const BACK_AGAIN: Duration = Duration::from_secs(90);

/// Notes what the runtimes say of each pod before the pause; returns which of them spoke.
pub(super) fn remember(pods: &mut [WindowPod], config: &Config) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let answer = runtime::ask(config)?;
    for pod in pods {
        pod.lives_before = of_pod(pod, &answer).map(Sandbox::lives);
    }
    Ok(spoke(&answer).cloned().collect())
}

/// The runtimes that have told of their pods.
fn spoke(answer: &Answer) -> impl Iterator<Item = &PathBuf> {
    answer.asked.iter().filter(|asked| asked.kind.is_some()).map(|asked| &asked.endpoint)
}

/// Asks again; a runtime that spoke before and is not there now has not said that its pods are gone.
fn ask_again(config: &Config, before: &[PathBuf]) -> Result<Answer, Vec<Problem>> {
    let answer = runtime::ask(config)?;
    let is_there = |endpoint: &&PathBuf| spoke(&answer).any(|spoke| spoke == *endpoint);
    let missing: Vec<Problem> = before
        .iter()
        .filter(|endpoint| !is_there(endpoint))
        .map(|endpoint| {
            let message = "its socket is not there; it spoke before the window";
            Problem::error(Code::RuntimeUnreachable, endpoint.display().to_string(), message)
        })
        .collect();
    // Who spoke is not known in a window that goes on after its process died.
    if before.is_empty() && spoke(&answer).next().is_none() {
        let message = "no container runtime is there; one was before the window";
        return Err(vec![Problem::error(Code::RuntimeUnreachable, "", message)]);
    }
    if missing.is_empty() { Ok(answer) } else { Err(missing) }
}

fn of_pod<'a>(pod: &WindowPod, answer: &'a Answer) -> Option<&'a Sandbox> {
    let id = pod.info.sandbox.as_ref()?;
    answer.sandboxes.iter().find(|sandbox| sandbox.id == *id)
}

/// Watches so long that every pod stays the one that it was; `lives` says what the kernel knows of that.
pub(super) fn watch(
    pods: &mut [WindowPod],
    config: &Config,
    settle: Duration,
    before: &[PathBuf],
    signals: &Signals,
    lives: impl Fn(&WindowPod) -> Option<bool>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let answer = match last_answer(pods, config, before, settle, signals) {
        Ok(answer) => answer,
        Err(unreachable) => {
            problems.extend(unreachable.into_iter().map(unproven));
            Answer::default()
        }
    };
    let is_known = problems.is_empty();
    for pod in pods {
        let told = is_known.then(|| judge(pod, &answer)).flatten();
        let by_kernel = lives(pod);
        let why = told.clone().flatten().or_else(|| {
            let gone = by_kernel == Some(false);
            gone.then(|| "its network namespace is not the one from before".to_owned())
        });
        pod.rebuilt = match (&why, &told, by_kernel) {
            (Some(_), ..) => Some(true),
            (None, Some(_), _) => Some(false),
            // A runtime that knew it and cannot be asked may have started its containers again.
            (None, None, Some(true)) if pod.lives_before.is_none() => Some(false),
            (None, None, _) => None,
        };
        let why = why.or_else(|| {
            // Who could not be asked is told of already.
            let is_untold = is_known && pod.rebuilt.is_none();
            is_untold.then(|| "nobody can tell whether this is the pod from before".to_owned())
        });
        problems
            .extend(why.map(|why| Problem::error(Code::PodRebuilt, pod.info.title(), why).of(&pod.info.id)));
    }
    problems
}

/// What the runtimes say when the time is over; a runtime that is not back yet is given more.
fn last_answer(
    pods: &[WindowPod],
    config: &Config,
    before: &[PathBuf],
    settle: Duration,
    signals: &Signals,
) -> Result<Answer, Vec<Problem>> {
    let until = Instant::now() + settle;
    let asks = pods.iter().any(|pod| pod.lives_before.is_some());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if signals.interrupted() || left.is_zero() {
            let last = if asks { ask_again(config, before) } else { Ok(Answer::default()) };
            let is_over = signals.interrupted() || Instant::now() >= until + BACK_AGAIN;
            if last.is_ok() || is_over {
                return last;
            }
        }
        thread::sleep(PAUSE.min(left).max(LEAST_PAUSE));
    }
}

fn unproven(mut problem: Problem) -> Problem {
    problem.message = format!("it is not proven that no pod was rebuilt: {}", problem.message);
    problem
}

/// Notes what is said of a pod; `Some(Some(why))` when it is not the one from before, `None` when no runtime knew it.
#[allow(clippy::option_option, reason = "not asked, the same, and not the same are three things")]
fn judge(pod: &mut WindowPod, answer: &Answer) -> Option<Option<String>> {
    pod.lives_before.as_ref()?;
    pod.lives_after = of_pod(pod, answer).or_else(|| successor(pod, answer)).map(Sandbox::lives);
    Some(changed(pod, answer))
}

/// The sandbox that has the pod's name now.
fn successor<'a>(pod: &WindowPod, answer: &'a Answer) -> Option<&'a Sandbox> {
    let info = &pod.info;
    let same_name = |sandbox: &&Sandbox| {
        info.name.is_some() && sandbox.name == info.name && sandbox.namespace == info.namespace
    };
    answer.sandboxes.iter().find(same_name)
}

/// Why a pod is not the one from before; `None` when it is, or when no runtime knew it.
fn changed(pod: &WindowPod, answer: &Answer) -> Option<String> {
    let before = pod.lives_before.as_ref()?;
    let Some(now) = of_pod(pod, answer) else {
        return Some(match successor(pod, answer) {
            Some(now) => format!(
                "was rebuilt: its sandbox was {}, and is {} (attempt {})",
                short(&before.sandbox),
                short(&now.id),
                now.attempt.map_or_else(|| "-".to_owned(), |attempt| attempt.to_string())
            ),
            None => {
                format!("its sandbox {} runs no longer, and nothing is in its place", short(&before.sandbox))
            }
        });
    };
    differs(before, &now.lives())
}

fn differs(before: &Lives, now: &Lives) -> Option<String> {
    if before.attempt != now.attempt {
        return Some("its sandbox was made again".to_owned());
    }
    let is_there = |then: &&Container| now.containers.contains(then);
    let has_successor = |then: &Container| now.containers.iter().any(|now| now.name == then.name);
    let lost: Vec<String> = before
        .containers
        .iter()
        .filter(|then| !is_there(then))
        .map(|then| {
            let what = if has_successor(then) { "was restarted" } else { "runs no longer" };
            format!("container {} ({}) {what}", then.name.escape_debug(), short(&then.id))
        })
        .collect();
    if lost.is_empty() { None } else { Some(lost.join(", ")) }
}

fn short(id: &str) -> String {
    id.chars().take(12).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(attempt: u32, containers: &[(&str, &str, u32)]) -> Lives {
        let container = |(name, id, restarts): &(&str, &str, u32)| Container {
            name: (*name).to_owned(),
            id: (*id).to_owned(),
            restarts: Some(*restarts),
        };
        let containers = containers.iter().map(container).collect();
        Lives { sandbox: "s".to_owned(), attempt: Some(attempt), containers }
    }

    #[test]
    fn the_same_sandbox_with_the_same_containers_is_the_same_pod() {
        let before = lives(0, &[("app", "a", 2)]);
        assert_eq!(differs(&before, &before), None);
        assert_eq!(differs(&before, &lives(0, &[("app", "a", 2), ("debug", "d", 0)])), None);
    }

    #[test]
    fn another_attempt_container_or_count_of_restarts_is_told() {
        let before = lives(0, &[("app", "a", 2)]);
        assert!(differs(&before, &lives(1, &[("app", "a", 2)])).is_some());
        let restarted = differs(&before, &lives(0, &[("app", "b", 3)]));
        assert_eq!(restarted.as_deref(), Some("container app (a) was restarted"));
        assert!(differs(&before, &lives(0, &[("app", "a", 3)])).is_some());
        let ended = differs(&before, &lives(0, &[]));
        assert_eq!(ended.as_deref(), Some("container app (a) runs no longer"));
    }
}

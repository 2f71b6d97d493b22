//! Problems, one line each: `error: CODE: pod TITLE (ID): object: message`. Equal problems of several pods are one line
//! with a count.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Code, PodId, PodInfo, Problem, Severity};
use crate::report::style::{Style, Tone};
use crate::report::text::{MOST, count, escape, join, lines, more, natural};

/// So many pods are named; more are counted.
pub(super) const FEW: usize = 3;

/// The names of pods by their id.
type Titles<'a> = BTreeMap<&'a PodId, String>;

/// The word for a problem's severity, and how bad it is.
pub(super) fn word(problem: &Problem) -> (&'static str, Tone) {
    match problem.severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Warning),
        Severity::Info => ("note", Tone::Calm),
    }
}

/// The lines of these problems of these pods, each after the word for its severity. The worst is last: that is where a
/// reader of a long answer sees.
pub(super) fn text<'a>(
    problems: impl Iterator<Item = &'a Problem>,
    pods: impl Iterator<Item = &'a PodInfo>,
    word: impl Fn(&Problem) -> (&'static str, Tone),
    style: Style,
) -> String {
    let titles: Titles<'_> = pods.map(|info| (&info.id, escape(&info.title()))).collect();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known: BTreeMap<(String, Cow<'_, str>, String), usize> = BTreeMap::new();
    for problem in problems {
        let key = (
            format!("{} {}", problem.severity, problem.code()),
            problem.object.text(),
            problem.message(),
        );
        let is_new = style.is_verbose() || problem.pod.is_none();
        if let Some(at) = known.get(&key).filter(|_| !is_new) {
            groups[*at].1.extend(&problem.pod);
        } else {
            if !is_new {
                known.insert(key, groups.len());
            }
            groups.push((problem, problem.pod.iter().collect()));
        }
    }
    groups.sort_by_key(|(problem, _)| (problem.severity, word(problem).1));
    let words = groups.chunk_by(|a, b| word(a.0) == word(b.0));
    let texts = words.map(|groups| {
        let (word, tone) = word(groups[0].0);
        let messages = messages(groups, &titles, style).into_iter();
        lines(messages.map(|line| format!("{}: {line}", style.paint(word, tone))))
    });
    texts.collect()
}

/// Whose programs must be restarted, by these problems of this severity: notes before a loss, warnings after it.
pub(super) fn programs_to_restart(problems: &[Problem], severity: Severity) -> Option<String> {
    let of_sockets = problems.iter();
    let mut of_sockets =
        of_sockets.filter(|one| (one.code(), one.severity) == (Code::SocketLost, severity));
    let pods: BTreeSet<&PodId> = of_sockets
        .clone()
        .filter_map(|one| one.pod.as_ref())
        .collect();
    let host = of_sockets
        .any(|one| one.pod.is_none())
        .then(|| "the host".to_owned());
    let pods = (!pods.is_empty()).then(|| count(pods.len(), "pod"));
    let whose = join(pods.into_iter().chain(host), " and ");
    (!whose.is_empty()).then(|| format!("programs of {whose} must be restarted"))
}

/// A problem, and the pods that have it.
type Group<'a> = (&'a Problem, Vec<&'a PodId>);

/// The lines after one word. Without `-v`, one pod has so many of one code at most, and so many pods have lines of one code:
/// thousands of a kind would hide all others.
fn messages(groups: &[Group<'_>], titles: &Titles<'_>, style: Style) -> Vec<String> {
    let mut messages = Vec::new();
    let mut shown: BTreeMap<String, BTreeMap<Option<&PodId>, usize>> = BTreeMap::new();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for (problem, pods) in groups {
        let code = problem.code().to_string();
        let of_code = shown.entry(code.clone()).or_default();
        let pod = pods.first().copied().filter(|_| pods.len() == 1);
        let is_shown = match of_code.get(&pod) {
            Some(lines) => *lines < MOST,
            None => of_code.len() < MOST,
        };
        if style.is_verbose() || is_shown {
            *of_code.entry(pod).or_default() += 1;
            messages.push(line(problem, pods.clone(), titles));
        } else {
            *left_out.entry(code).or_default() += 1;
        }
    }
    let rest = left_out.into_iter();
    messages.extend(
        rest.filter_map(|(code, count)| Some(format!("{code}: {} (-v lists them)", more(count)?))),
    );
    messages
}

/// One line without its severity: what it is about comes first.
fn line(problem: &Problem, mut pods: Vec<&PodId>, titles: &Titles<'_>) -> String {
    let title = |id: &PodId| titles.get(id).cloned().unwrap_or_else(|| id.to_string());
    pods.sort_by(|a, b| natural(&title(a), &title(b)));
    pods.dedup();
    let who = match pods.as_slice() {
        [] => String::new(),
        [id] if title(id) == id.as_str() => format!("pod {id}: "),
        [id] => format!("pod {} ({id}): ", title(id)),
        few if few.len() <= FEW => {
            let names = join(few.iter().map(|id| title(id)), ", ");
            format!("{} ({names}): ", count(few.len(), "pod"))
        }
        many => format!("{}: ", count(many.len(), "pod")),
    };
    let object = match escape(&problem.object.text()) {
        object if object.is_empty() => object,
        object => format!("{object}: "),
    };
    format!(
        "{}: {who}{object}{}",
        problem.code(),
        escape(&problem.message())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::Detail;

    fn messages(problems: &[Problem], detail: Detail) -> Vec<String> {
        let style = Style {
            detail,
            ..Style::plain()
        };
        let pods: Vec<PodInfo> = (0..9)
            .map(|at| PodInfo {
                namespace: Some("shop".to_owned()),
                name: Some(format!("web-{at}").into()),
                ..PodInfo::nameless(&id(at))
            })
            .collect();
        let text = text(problems.iter(), pods.iter(), word, style);
        text.lines().map(str::to_owned).collect()
    }

    fn id(at: usize) -> PodId {
        PodId::from_text(&format!("c0ffee00000{at}"))
    }

    fn missing(at: usize, object: &str) -> Problem {
        Problem::recorded(Severity::Error, Code::ParentMissing, object, "is missing").of(&id(at))
    }

    #[test]
    fn equal_problems_are_one_line_and_the_worst_is_last() {
        let mut problems: Vec<Problem> = (0..4).rev().map(|at| missing(at, "eth0")).collect();
        problems.extend([
            missing(1, "eth0.3"),
            missing(0, "eth0.3"),
            missing(5, "bond0"),
        ]);
        problems.push(Problem::recorded(
            Severity::Warning,
            Code::Unreadable,
            "",
            "a\nb",
        ));
        let grouped = [
            "warning: unreadable: a\\nb",
            "error: parent-missing: 4 pods: eth0: is missing",
            "error: parent-missing: 2 pods (shop/web-0, shop/web-1): eth0.3: is missing",
            "error: parent-missing: pod shop/web-5 (c0ffee000005): bond0: is missing",
        ];
        assert_eq!(messages(&problems, Detail::Normal), grouped);
        let singly = messages(&problems, Detail::Steps);
        assert_eq!(singly.len(), problems.len());
        assert_eq!(
            singly[1],
            "error: parent-missing: pod shop/web-3 (c0ffee000003): eth0: is missing"
        );
    }

    #[test]
    fn thousands_of_one_pod_or_of_unknown_pods_leave_room_for_the_others() {
        let mut problems: Vec<Problem> = (0..1500)
            .map(|at| missing(1, &format!("eth{at}")))
            .collect();
        let file =
            |at: &str| Problem::recorded(Severity::Error, Code::CheckpointCorrupt, at, "is junk");
        problems.extend((0..20_000).map(|at| {
            let name = at.to_string();
            file(&name).of(&PodId::from_text(&name))
        }));
        problems.push(missing(2, "bond0"));
        let normal = messages(&problems, Detail::Normal);
        assert_eq!(normal.len(), 2 * MOST + 3);
        let ends = [
            "error: parent-missing: pod shop/web-2 (c0ffee000002): bond0: is missing",
            "error: checkpoint-corrupt: ... and 19970 more (-v lists them)",
            "error: parent-missing: ... and 1470 more (-v lists them)",
        ];
        assert_eq!(normal[2 * MOST..], ends);
        assert_eq!(messages(&problems, Detail::Steps).len(), problems.len());
    }

    #[test]
    fn a_pod_without_a_name_is_named_once() {
        let problem = missing(1, "").of(&PodId::from_text("n1-a"));
        assert_eq!(
            messages(&[problem], Detail::Normal),
            ["error: parent-missing: pod n1-a: is missing"]
        );
    }
}

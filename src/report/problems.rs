//! Problems, one line each: `error: CODE: pod TITLE (ID): object: message`. Equal problems of several pods are one line
//! with a count.

use std::collections::BTreeMap;

use super::style::{Style, Tone};
use super::text::{count, escape, join, lines, natural};
use crate::model::{PodId, PodInfo, Problem, Severity};

/// So many pods are named; more are counted.
pub(super) const FEW: usize = 3;

/// The names of pods by their id.
type Titles<'a> = BTreeMap<&'a PodId, String>;

/// The severity's word, and how bad it is.
pub(super) fn word(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Warning),
        Severity::Info => ("note", Tone::Calm),
    }
}

/// The lines of these problems of these pods, each after the word for its severity. The worst is last: that is where a
/// reader of a long answer looks.
pub(super) fn text<'a>(
    problems: impl Iterator<Item = &'a Problem>,
    pods: impl Iterator<Item = &'a PodInfo>,
    word: fn(Severity) -> (&'static str, Tone),
    style: Style,
) -> String {
    let titles: Titles<'_> = pods.map(|info| (&info.id, escape(&info.title()))).collect();
    let mut groups: Vec<(&Problem, Vec<&PodId>)> = Vec::new();
    let mut known: BTreeMap<(String, &str, String), usize> = BTreeMap::new();
    for problem in problems {
        let key = (
            format!("{} {}", problem.severity, problem.code()),
            problem.object.as_str(),
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
    groups.sort_by_key(|(problem, _)| problem.severity);
    lines(groups.into_iter().map(|(problem, pods)| {
        let (word, tone) = word(problem.severity);
        format!(
            "{}: {}",
            style.paint(word, tone),
            line(problem, pods, &titles)
        )
    }))
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
    let object = match escape(&problem.object) {
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
    use crate::model::Code;
    use crate::report::Detail;

    fn told(problems: &[Problem], detail: Detail) -> Vec<String> {
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
        assert_eq!(told(&problems, Detail::Normal), grouped);
        let singly = told(&problems, Detail::Steps);
        assert_eq!(singly.len(), problems.len());
        assert_eq!(
            singly[1],
            "error: parent-missing: pod shop/web-3 (c0ffee000003): eth0: is missing"
        );
    }

    #[test]
    fn a_pod_without_a_name_is_named_once() {
        let problem = missing(1, "").of(&PodId::from_text("n1-a"));
        assert_eq!(
            told(&[problem], Detail::Normal),
            ["error: parent-missing: pod n1-a: is missing"]
        );
    }
}

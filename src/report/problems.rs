//! Problems, one line each: `error: CODE: pod TITLE (ID): object: message`. Equal problems of several pods are one line
//! with a count.

use std::collections::BTreeMap;

use super::style::{Style, Tone};
use super::text::{count, escape, natural};
use crate::model::{PodId, PodInfo, Problem, Severity};

/// So many pods are named; more are counted.
pub(super) const FEW: usize = 3;

/// The names of pods by their id.
pub(super) type Titles = BTreeMap<PodId, String>;

/// The names of these pods.
pub(super) fn titles<'a>(pods: impl Iterator<Item = &'a PodInfo>) -> Titles {
    pods.map(|info| (info.id.clone(), escape(&info.title())))
        .collect()
}

/// A line with its severity.
pub(super) struct Line {
    pub severity: Severity,
    pub text: String,
}

/// The severity's word, and how bad it is.
pub(super) fn word(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Warning),
        Severity::Info => ("note", Tone::Calm),
    }
}

/// The lines of these problems, the worst last: that is where a reader of a long answer looks.
pub(super) fn lines(problems: &[&Problem], titles: &Titles, style: Style) -> Vec<Line> {
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
    let line = |(problem, pods): (&Problem, Vec<&PodId>)| Line {
        severity: problem.severity,
        text: text(problem, pods, titles),
    };
    groups.into_iter().map(line).collect()
}

/// One line without its severity: what it is about comes first.
fn text(problem: &Problem, mut pods: Vec<&PodId>, titles: &Titles) -> String {
    let title = |id: &PodId| titles.get(id).cloned().unwrap_or_else(|| id.to_string());
    pods.sort_by(|a, b| natural(&title(a), &title(b)));
    pods.dedup();
    let who = match pods.as_slice() {
        [] => String::new(),
        [id] if title(id) == id.as_str() => format!("pod {id}: "),
        [id] => format!("pod {} ({id}): ", title(id)),
        few if few.len() <= FEW => {
            let names: Vec<String> = few.iter().map(|id| title(id)).collect();
            format!("{} ({}): ", count(few.len(), "pod"), names.join(", "))
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
        let titles = (0..9)
            .map(|at| (id(at), format!("shop/web-{at}")))
            .collect();
        let problems: Vec<&Problem> = problems.iter().collect();
        let lines = lines(&problems, &titles, style).into_iter();
        lines
            .map(|line| format!("{}: {}", word(line.severity).0, line.text))
            .collect()
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

//! Problems, one line each: `error: CODE: pod TITLE (ID): object: message`. Equal problems of several pods are one line
//! with a count.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Code, PodId, PodInfo, Problem, Severity};
use crate::report::folded;
use crate::report::style::{Style, Tone};
use crate::report::text::{MOST, count, escape, join, lines, more, natural};

/// So many pods are named; more are counted.
pub(super) const FEW: usize = 3;
/// Problems of more pods that differ only in what is each pod's own are one line.
const MANY: usize = 4;

/// The names of pods by their id.
pub(super) type Titles<'a> = BTreeMap<&'a PodId, String>;

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
    let mut groups = if style.is_verbose() {
        problems.map(Group::of).collect()
    } else {
        together(problems, &titles)
    };
    groups.sort_by_key(|group| (group.problem.severity, word(group.problem).1));
    let words = groups.chunk_by(|a, b| word(a.problem) == word(b.problem));
    let texts = words.map(|groups| {
        let (word, tone) = word(groups[0].problem);
        let messages = messages(groups, &titles, style).into_iter();
        lines(messages.map(|line| format!("{}: {line}", style.paint(word, tone))))
    });
    texts.collect()
}

/// These problems, equal ones of several pods together.
pub(super) fn together<'a>(
    problems: impl Iterator<Item = &'a Problem>,
    titles: &Titles<'a>,
) -> Vec<Group<'a>> {
    let groups = folded::folded(problems.map(Group::of).collect(), titles);
    let is_equal = |group: &Group<'_>| Some((group.object.clone(), group.message.clone()));
    of_many(merged(groups, is_equal), titles)
}

/// A problem, the pods that have it, and how it is printed.
pub(super) struct Group<'a> {
    pub problem: &'a Problem,
    pub pods: Vec<&'a PodId>,
    pub object: String,
    pub message: String,
    /// Whether it says nothing any more that is only one pod's.
    is_general: bool,
}

impl<'a> Group<'a> {
    fn of(problem: &'a Problem) -> Self {
        Self {
            problem,
            pods: problem.pod.iter().collect(),
            object: escape(&problem.object.text()),
            message: escape(&problem.message()),
            is_general: false,
        }
    }

    fn kind(&self) -> String {
        format!("{} {}", self.problem.severity, self.problem.code())
    }
}

/// One group of those of a kind that have the same key. Those without a pod or a key stay as they are.
fn merged<'a, K: Ord>(
    groups: Vec<Group<'a>>,
    key: impl Fn(&Group<'a>) -> Option<K>,
) -> Vec<Group<'a>> {
    let mut all: Vec<Group<'a>> = Vec::new();
    let mut known: BTreeMap<(String, K), usize> = BTreeMap::new();
    for group in groups {
        let key = key(&group).filter(|_| !group.pods.is_empty());
        let key = key.map(|key| (group.kind(), key));
        if let Some(at) = key.as_ref().and_then(|key| known.get(key)) {
            all[*at].pods.extend(group.pods);
        } else {
            known.extend(key.map(|key| (key, all.len())));
            all.push(group);
        }
    }
    all
}

/// One group of the problems of many pods that differ only in what is each pod's own.
fn of_many<'a>(mut groups: Vec<Group<'a>>, titles: &Titles<'a>) -> Vec<Group<'a>> {
    let key = |group: &Group<'a>| match group.pods.as_slice() {
        [pod] => Some((group.kind(), general(&group.message, pod, titles))),
        _ => None,
    };
    let mut pods: BTreeMap<_, BTreeSet<&PodId>> = BTreeMap::new();
    for group in &groups {
        if let Some(key) = key(group) {
            pods.entry(key).or_default().extend(&group.pods);
        }
    }
    for group in &mut groups {
        let key = key(group).filter(|key| pods.get(key).is_some_and(|pods| pods.len() > MANY));
        if let Some((_, message)) = key {
            let is_path = group.object.starts_with('/') || group.object.is_empty();
            let example = format!("such as {}", group.object);
            group.object = if is_path { String::new() } else { example };
            (group.message, group.is_general) = (message, true);
        }
    }
    merged(groups, |group| {
        group.is_general.then(|| group.message.clone())
    })
}

/// A message with a placeholder for the pod's name and id.
fn general(message: &str, pod: &PodId, titles: &Titles<'_>) -> String {
    let title = titles.get(pod).map(String::as_str);
    let is_own = |word: &str| Some(word) == title || word == pod.as_str();
    let is_end = |c: char| !(c.is_alphanumeric() || "-_./".contains(c));
    let words = message.split_inclusive(is_end).map(|part| {
        let word = part.trim_end_matches(is_end).trim_end_matches('.');
        let path = word.strip_suffix(pod.as_str());
        if is_own(word) {
            format!("POD{}", &part[word.len()..])
        } else if let Some(folder) = path.filter(|path| path.ends_with('/')) {
            format!("{folder}POD{}", &part[word.len()..])
        } else {
            part.to_owned()
        }
    });
    words.collect()
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

/// The lines after one word. Without `-v`, one pod has so many of one code at most, and so many pods have lines of one code:
/// thousands of a kind would hide all others.
fn messages(groups: &[Group<'_>], titles: &Titles<'_>, style: Style) -> Vec<String> {
    let mut messages = Vec::new();
    let mut shown: BTreeMap<String, BTreeMap<Option<&PodId>, usize>> = BTreeMap::new();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for group in groups {
        let (code, pods) = (group.problem.code().to_string(), &group.pods);
        let of_code = shown.entry(code.clone()).or_default();
        let pod = pods.first().copied().filter(|_| pods.len() == 1);
        let is_shown = match of_code.get(&pod) {
            Some(lines) => *lines < MOST,
            None => of_code.len() < MOST,
        };
        if style.is_verbose() || is_shown {
            *of_code.entry(pod).or_default() += 1;
            messages.push(line(group, titles));
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
fn line(group: &Group<'_>, titles: &Titles<'_>) -> String {
    let who = named(&group.pods, titles);
    let who = who.map_or_else(String::new, |who| format!("{who}: "));
    let is_pod = |object: &str| matches!(group.pods.as_slice(), [id] if object == id.as_str());
    let object = match &group.object {
        object if object.is_empty() || is_pod(object) => String::new(),
        object => format!("{object}: "),
    };
    format!("{}: {who}{object}{}", group.problem.code(), group.message)
}

/// These pods, the first of them by name.
pub(super) fn named(pods: &[&PodId], titles: &Titles<'_>) -> Option<String> {
    let title = |id: &PodId| titles.get(id).cloned().unwrap_or_else(|| id.to_string());
    let mut pods = pods.to_vec();
    pods.sort_by(|a, b| natural(&title(a), &title(b)));
    pods.dedup();
    let names = join(pods.iter().take(FEW).map(|id| title(id)), ", ");
    let all = count(pods.len(), "pod");
    Some(match pods.as_slice() {
        [] => return None,
        [id] if title(id) == id.as_str() => format!("pod {id}"),
        [id] => format!("pod {} ({id})", title(id)),
        few if few.len() <= FEW => format!("{all} ({names})"),
        many => format!("{all} ({names} and {} more)", many.len() - FEW),
    })
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
        let pods: Vec<PodInfo> = (0..12)
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
        PodId::from_text(&format!("c0ffee{at:06}"))
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
            "error: parent-missing: 4 pods (shop/web-0, shop/web-1, shop/web-2 and 1 more): eth0: is missing",
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
    fn what_one_cause_of_the_kernels_log_explains_is_a_count_behind_it() {
        use crate::model::problem::LogCause;
        use crate::model::window::{KernelCause, LoggedCause};
        let because = |device: &str| {
            Some(LoggedCause {
                cause: KernelCause::RdmaActive,
                device: device.parse().ok(),
            })
        };
        let of = |problem: Problem, device: &str| Problem {
            because: because(device),
            ..problem
        };
        let refused = |at: usize| {
            let object = format!("nic eth0 channels q{at}");
            Problem::recorded(Severity::Error, Code::SettingRefused, &object, "refused")
        };
        let cause = LogCause::Named {
            cause: KernelCause::RdmaActive,
        };
        let mut problems: Vec<Problem> = (0..30).map(|at| of(refused(at), "eth0")).collect();
        problems.push(refused(30));
        problems.push(of(refused(31), "eth1"));
        problems.push(of(cause.error("eth0"), "eth0"));
        // A record has them as they were.
        let text = serde_json::to_string(&problems).unwrap();
        let read: Vec<Problem> = serde_json::from_str(&text).unwrap();
        for problems in [&problems, &read] {
            let normal = messages(problems, Detail::Normal);
            assert_eq!(normal.len(), 3, "{normal:#?}");
            let end = "30 problems of the device come from that (-v lists them)";
            assert!(normal[2].starts_with("error: kernel-log: eth0: ice "));
            assert!(normal[2].ends_with(end), "{normal:#?}");
            assert_eq!(messages(problems, Detail::Steps).len(), 33);
        }
    }

    #[test]
    fn thousands_of_one_pod_or_of_unknown_pods_leave_room_for_the_others() {
        let mut problems: Vec<Problem> = (0..1500)
            .map(|at| missing(1, &format!("eth{at}")))
            .collect();
        let file = |at: &str| {
            let reason = format!("is junk at byte {at}");
            Problem::recorded(
                Severity::Error,
                Code::CheckpointCorrupt,
                at,
                reason.as_str(),
            )
        };
        problems.extend((0..20_000).map(|at| {
            let name = format!("n{at}");
            file(&at.to_string()).of(&PodId::from_text(&name))
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
    fn problems_of_many_pods_that_differ_only_in_what_is_the_pods_own_are_one_line() {
        let own = |at: usize, object: &str| {
            let message = format!("run `netfix diff shop/web-{at}`");
            Problem::recorded(Severity::Warning, Code::Drift, object, message.as_str()).of(&id(at))
        };
        let paths = |pods: usize| (0..pods).map(|at| own(at, &format!("/run/netns/p{at}")));
        let many: Vec<Problem> = paths(MANY + 1).collect();
        let names = "shop/web-0, shop/web-1, shop/web-2 and 2 more";
        let line = format!("warning: drift: 5 pods ({names}): run `netfix diff POD`");
        assert_eq!(messages(&many, Detail::Normal), [line]);
        assert_eq!(messages(&many, Detail::Steps).len(), MANY + 1);
        // So many are read one by one.
        let few: Vec<Problem> = paths(MANY).collect();
        assert_eq!(messages(&few, Detail::Normal).len(), MANY);
        // What is no path may matter: the first is an example.
        let steps = (0..12).map(|at| own(at, &format!("+ address 10.3.0.{at}/16")));
        let steps: Vec<Problem> = steps.collect();
        let line = messages(&steps, Detail::Normal).concat();
        assert!(
            line.ends_with(": such as + address 10.3.0.0/16: run `netfix diff POD`"),
            "{line}"
        );
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

//! The problems that a command reports, from its JSON document or from its text lines:
//! `error: CODE: pod POD: object: message`.

use serde_json::Value;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedProblem {
    /// `error`, `warning` or `info`.
    pub severity: String,
    pub code: String,
    /// The pod's id; `None` for the host and the command itself.
    pub pod: Option<String>,
    /// The object of the problem; empty if the line has only a message.
    pub object: String,
    pub message: String,
}

impl ReportedProblem {
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// Whether the object or the message contains this.
    pub fn has(&self, word: &str) -> bool {
        self.object.contains(word) || self.message.contains(word)
    }
}

/// The problems of a JSON document; each must have all keys.
pub(super) fn from_json(document: &Value) -> Vec<ReportedProblem> {
    let problems = document["problems"].as_array();
    let problems = problems.unwrap_or_else(|| panic!("no list of problems in {document}"));
    let reported = |problem: &Value| {
        let word = |key: &str| {
            let word = problem[key].as_str();
            word.unwrap_or_else(|| panic!("no {key} in {problem}"))
                .to_owned()
        };
        ReportedProblem {
            severity: word("severity"),
            code: word("code"),
            pod: problem["pod"].as_str().map(str::to_owned),
            object: word("object"),
            message: word("message"),
        }
    };
    problems.iter().map(reported).collect()
}

/// The problems of a text line, one for each pod that it names; none for other lines.
pub(super) fn from_line(line: &str) -> Vec<ReportedProblem> {
    let Some((severity, rest)) = severity(line) else {
        return Vec::new();
    };
    let (code, rest) = rest.split_once(": ").unwrap_or((rest, ""));
    let is_code = |c: char| c.is_ascii_lowercase() || c == '-';
    if code.is_empty() || !code.chars().all(is_code) {
        return Vec::new();
    }
    let reported = |pod: Option<&str>, text: &str| {
        let (object, message) = text.split_once(": ").unwrap_or(("", text));
        ReportedProblem {
            severity: severity.to_owned(),
            code: code.to_owned(),
            pod: pod.map(str::to_owned),
            object: object.to_owned(),
            message: message.to_owned(),
        }
    };
    let (first, text) = rest.split_once(": ").unwrap_or((rest, ""));
    if let Some(pods) = pods(first) {
        return pods.iter().map(|pod| reported(Some(pod), text)).collect();
    }
    let waiting = on_it(rest).into_iter();
    let waiting = waiting.map(|pod| reported(Some(pod), rest));
    waiting.chain([reported(None, rest)]).collect()
}

/// The pods that a missing device takes along: `the device is missing. On it: eth0.3, 2 pods (ID, ID)`.
fn on_it(text: &str) -> Vec<&str> {
    let Some((_, all)) = text.split_once(". On it: ") else {
        return Vec::new();
    };
    let mut begins = [0]
        .into_iter()
        .chain(all.match_indices(", ").map(|(at, _)| at + 2));
    begins.find_map(|at| pods(&all[at..])).unwrap_or_default()
}

fn severity(line: &str) -> Option<(&'static str, &str)> {
    const WORDS: [(&str, &str); 7] = [
        ("error", "error"),
        ("warning", "warning"),
        ("note", "info"),
        ("CRITICAL", "error"),
        ("UNKNOWN", "error"),
        ("WARNING", "warning"),
        ("INFO", "info"),
    ];
    let (word, rest) = line.split_once(' ')?;
    let word = word.trim_end_matches(':');
    let (_, severity) = WORDS.iter().find(|(known, _)| *known == word)?;
    Some((severity, rest.trim_start()))
}

/// The ids in `pod ID`, `pod TITLE (ID)` or `2 pods (ID, TITLE (ID))`.
fn pods(text: &str) -> Option<Vec<&str>> {
    let of_one = |text| last_parentheses(text).unwrap_or(text);
    if let Some(pod) = text.strip_prefix("pod ") {
        return Some(vec![of_one(pod)]);
    }
    let (count, list) = text.split_once(" pods (")?;
    count.parse::<usize>().ok()?;
    let list = list.strip_suffix(')')?;
    Some(list.split(", ").map(of_one).collect())
}

fn last_parentheses(text: &str) -> Option<&str> {
    let (_, id) = text.strip_suffix(')')?.rsplit_once('(')?;
    Some(id)
}

//! Many nodes in one answer: the documents of `report` or `check` from each, merged.

pub(super) mod age;
pub(super) mod page;
pub(super) mod tables;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Nic, NodeIdentity, Problem, WindowNic};
use crate::report::fleet::age::AgeLimit;
use crate::report::text::natural;
use crate::report::window::outcome::PodCounts;
use crate::report::window::view::Outages;

/// What is read of a document. It may be from another version of netfix, so only these keys have to be there, and words that this
/// version does not have are text: its own types would refuse the whole file.
#[derive(Debug, Clone, Deserialize)]
pub struct NodeDocument {
    /// The command that printed it.
    pub command: String,
    /// Its exit code.
    pub exit: u8,
    node: NodeIdentity,
    problems: Vec<ProblemPart>,
    report: Option<WindowPart>,
    check: Option<CheckPart>,
}

/// The report of a window.
#[derive(Debug, Clone, Deserialize)]
struct WindowPart {
    id: String,
    started: String,
    ended: Option<u64>,
    node: NodeIdentity,
    nics: Option<Vec<WindowNic>>,
    problems: Vec<ProblemPart>,
    computed: ComputedPart,
}

#[derive(Debug, Clone, Deserialize)]
struct ComputedPart {
    verdict: String,
    pods: PodCounts,
    pause_ms: Option<u64>,
    outages: Outages,
}

/// The answer of a check.
#[derive(Debug, Clone, Deserialize)]
struct CheckPart {
    /// When; earlier versions did not write it.
    at: Option<String>,
    #[serde(default)]
    selection: bool,
    status: String,
    pods: BTreeMap<String, Option<usize>>,
}

#[derive(Debug, Clone, Deserialize)]
struct ProblemPart {
    code: String,
    severity: String,
    object: String,
    message: String,
}

/// The verdict of a document that has neither a report nor a check.
const NO_REPORT: &str = "no-report";
/// The verdict of a check that does not show its whole node as it is now.
const UNKNOWN_NOW: &str = "UNKNOWN";

/// The verdicts of windows and checks, the worst first. One that this version does not have counts as [`NO_REPORT`].
const WORST_FIRST: [&str; 20] = [
    "interrupted",
    "pods-affected",
    "host-affected",
    "CRITICAL",
    "failed",
    "rolled-back",
    "command-failed",
    NO_REPORT,
    "unknown",
    "UNKNOWN",
    "open",
    "refused",
    "WARNING",
    "nothing-lost",
    "given-up",
    "selection-restored",
    "restored",
    "selection-well",
    "well",
    "OK",
];

/// All nodes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetView {
    /// Each node: the worst verdict first, then by host name.
    pub nodes: Vec<NodeResult>,
    /// Number of nodes by verdict.
    pub verdicts: BTreeMap<String, usize>,
    /// Problems of all nodes, errors first, then by number of nodes.
    pub problems: Vec<ProblemGroup>,
    /// Drivers before and after the windows.
    pub drivers: Vec<DriverChange>,
    /// Files that could not be read, or not to their end.
    pub unread: usize,
    /// The page that was written.
    pub html: Option<String>,
}

/// One node, by its newest document.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NodeResult {
    /// The file that has it.
    pub file: String,
    /// The node; null when it is unknown.
    pub hostname: Option<String>,
    /// The window's verdict or the check's status; `no-report` when the document has neither, and `UNKNOWN` for a check that is
    /// too old, or of selected pods.
    pub verdict: String,
    /// The exit code.
    pub exit: u8,
    /// The window's id; null for a check.
    pub window: Option<String>,
    /// When the window was opened (RFC 3339); null for a check.
    pub started: Option<String>,
    /// Its pods, without those that are gone after the window; null when they are unknown.
    pub pods: Option<usize>,
    /// Those that are well: back after the window, or restorable.
    pub pods_well: Option<usize>,
    /// The longest outage of a pod.
    pub worst_outage_ms: Option<u64>,
    /// The median of the outages.
    pub median_outage_ms: Option<u64>,
    /// For how long kubelet was paused.
    pub pause_ms: Option<u64>,
}

/// One code on all nodes.
#[derive(Debug, Clone, Serialize)]
pub struct ProblemGroup {
    /// `error` or `warning`.
    pub severity: String,
    /// The code.
    pub code: String,
    /// How many problems.
    pub count: usize,
    /// The nodes that have one.
    pub nodes: BTreeSet<String>,
    /// Object and message of the first.
    pub example: String,
}

/// What happened to the NICs of one driver.
#[derive(Debug, Clone, Serialize)]
pub struct DriverChange {
    /// The driver.
    pub driver: String,
    /// Version and firmware before.
    pub before: String,
    /// Version and firmware after; null when the NIC is missing.
    pub after: Option<String>,
    /// How many NICs.
    pub nics: usize,
    /// Their nodes.
    pub nodes: BTreeSet<String>,
}

impl NodeDocument {
    fn hostname(&self) -> Option<&String> {
        self.of_node(|node| node.hostname.as_ref())
    }

    fn machine_id(&self) -> Option<&String> {
        self.of_node(|node| node.machine_id.as_ref())
    }

    /// As the window has it, or the check.
    fn of_node<'a>(
        &'a self,
        part: impl Fn(&'a NodeIdentity) -> Option<&'a String>,
    ) -> Option<&'a String> {
        let window = self.report.as_ref().and_then(|report| part(&report.node));
        window.or_else(|| part(&self.node))
    }

    /// When it shows the node: when that was checked, or when the window was opened and how long it was open.
    fn time(&self) -> Option<(Timestamp, Option<u64>)> {
        let (at, ended) = match (&self.report, &self.check) {
            (Some(report), _) => (&report.started, report.ended),
            (None, Some(check)) if !check.selection => (check.at.as_ref()?, None),
            (None, _) => return None,
        };
        Some((at.parse().ok()?, ended))
    }

    /// The problems of the document, and those of its window.
    fn all_problems(&self) -> impl Iterator<Item = &ProblemPart> {
        let window = self.report.iter().flat_map(|report| &report.problems);
        let all = self.problems.iter().chain(window);
        all.filter(|problem| problem.severity != "info")
    }

    fn result(&self, file: &str) -> NodeResult {
        let mut result = NodeResult {
            file: file.to_owned(),
            hostname: self.hostname().cloned(),
            verdict: NO_REPORT.to_owned(),
            exit: self.exit,
            ..NodeResult::default()
        };
        if let Some(report) = &self.report {
            let computed = &report.computed;
            result.verdict.clone_from(&computed.verdict);
            result.window = Some(report.id.clone());
            result.started = Some(report.started.clone());
            let pods = &computed.pods;
            result.pods = Some(pods.total.saturating_sub(pods.gone));
            result.pods_well = Some(pods.back);
            result.worst_outage_ms = computed.outages.worst_ms;
            result.median_outage_ms = computed.outages.median_ms;
            result.pause_ms = computed.pause_ms;
        } else if let Some(check) = &self.check {
            let count = |state: &str| check.pods.get(state).copied().unwrap_or(Some(0));
            result.verdict.clone_from(&check.status);
            result.pods = check.pods.values().copied().sum();
            result.pods_well = ["in-sync", "empty"].into_iter().map(count).sum();
        }
        result
    }
}

/// The place of a verdict, the worst first.
fn rank(verdict: &str) -> usize {
    let place = |word: &str| WORST_FIRST.iter().position(|known| *known == word);
    place(verdict)
        .or_else(|| place(NO_REPORT))
        .unwrap_or_default()
}

impl ProblemPart {
    fn text(&self) -> String {
        if self.object.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.object, self.message)
        }
    }
}

impl NodeResult {
    /// The name for people.
    pub(super) fn name(&self) -> &str {
        self.hostname.as_deref().unwrap_or(&self.file)
    }

    /// Whether the document is that of a check.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.window.is_none() && self.verdict != NO_REPORT
    }

    /// The place of its verdict, the worst first.
    fn rank(&self) -> usize {
        rank(&self.verdict)
    }

    /// A check that does not show the whole node as it is now; a bad finding stays one.
    fn unless_bad(mut self) -> Self {
        if self.rank() > rank(UNKNOWN_NOW) {
            UNKNOWN_NOW.clone_into(&mut self.verdict);
            (self.pods, self.pods_well) = (None, None);
        }
        self
    }

    pub(super) fn is_well(&self) -> bool {
        matches!(self.verdict.as_str(), "well" | "OK")
    }
}

impl FleetView {
    /// Merges the documents, each with the name of its file, and notes of which nodes there are older ones. Checks that are too
    /// old show nothing of now.
    #[must_use]
    pub fn new(
        documents: Vec<(String, NodeDocument)>,
        limit: Option<AgeLimit>,
    ) -> (Self, Vec<Problem>) {
        let (documents, notes) = age::newest(documents);
        let mut view = Self::default();
        for (file, document) in &documents {
            let mut result = document.result(file);
            let fault = limit.and_then(|limit| limit.fault(file, document));
            if let Some(fault) = &fault {
                result = result.unless_bad();
                view.add_problem(result.name(), fault);
            }
            for problem in document.all_problems() {
                view.add_problem(result.name(), problem);
            }
            *view.verdicts.entry(result.verdict.clone()).or_default() += 1;
            view.nodes.push(result);
        }
        view.nodes.sort_by(|a, b| {
            let by_name = natural(a.name(), b.name());
            a.rank().cmp(&b.rank()).then(by_name)
        });
        view.drivers = drivers(&documents);
        view.problems
            .sort_by_key(|group| (group.severity != "error", usize::MAX - group.nodes.len()));
        (view, notes)
    }

    fn add_problem(&mut self, node: &str, problem: &ProblemPart) {
        let known = self
            .problems
            .iter()
            .position(|group| group.severity == problem.severity && group.code == problem.code);
        let place = known.unwrap_or_else(|| {
            self.problems.push(ProblemGroup {
                severity: problem.severity.clone(),
                code: problem.code.clone(),
                count: 0,
                nodes: BTreeSet::new(),
                example: problem.text(),
            });
            self.problems.len() - 1
        });
        self.problems[place].count += 1;
        self.problems[place].nodes.insert(node.to_owned());
    }
}

/// The changes of all NICs whose driver is known, by driver and versions.
fn drivers(documents: &[(String, NodeDocument)]) -> Vec<DriverChange> {
    let mut changes: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (file, document) in documents {
        let reports = document.report.iter();
        for nic in reports.flat_map(|report| report.nics.iter().flatten()) {
            let Some((before, driver)) = nic
                .before
                .as_ref()
                .and_then(|nic| Some((nic, nic.driver.clone()?)))
            else {
                continue;
            };
            let after = nic.after.as_ref().map(version);
            let nodes = changes.entry((driver, version(before), after)).or_default();
            nodes.push(document.hostname().unwrap_or(file).clone());
        }
    }
    let changes = changes.into_iter();
    changes
        .map(|((driver, before, after), nodes)| DriverChange {
            driver,
            before,
            after,
            nics: nodes.len(),
            nodes: nodes.into_iter().collect(),
        })
        .collect()
}

/// Version and firmware in one text.
fn version(nic: &Nic) -> String {
    match (&nic.version, &nic.firmware) {
        (Some(version), Some(firmware)) => format!("{version}, firmware {firmware}"),
        (Some(version), None) => version.clone(),
        (None, Some(firmware)) => format!("firmware {firmware}"),
        (None, None) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_without_report_and_check_is_never_well() {
        let document =
            json!({"command": "upgrade", "exit": 4, "node": {"hostname": "a"}, "problems": []});
        let document = serde_json::from_value(document).expect("a document");
        let (view, _) = FleetView::new(vec![("a.json".to_owned(), document)], None);
        assert!(!view.nodes[0].is_well());
        assert_eq!(view.nodes[0].verdict, "no-report");
    }
}

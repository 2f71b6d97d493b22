//! What the rehearsal said before a loss, and whether the loss bears it out.

use super::daemons::{Left, counted};
use super::named::names_of;
use crate::common::{Node, Pod, ReportedProblem};

/// What differs on the host, or in the pod.
pub(super) struct Side {
    pub all: Vec<String>,
    /// What of it the snapshot did not name.
    pub unnamed: Vec<String>,
}

/// The differences that the rehearsal found, on each side.
#[derive(Default)]
pub(super) struct Forecast {
    host: Vec<ReportedProblem>,
    pod: Vec<ReportedProblem>,
    /// How many objects it leaves to daemons.
    left: Option<Left>,
    /// Whether it calls the pod identical but for these.
    is_but_for_daemons: bool,
    /// Why it proves nothing.
    unproven: Option<String>,
}

impl Forecast {
    /// Rehearses the loss that comes next.
    pub fn of(node: &Node, pod: &Pod<'_>) -> Self {
        let run = node.netfix_json("check --rehearse");
        let figures = &run.json()["check"]["rehearsal"];
        let is_whole = figures["pods"].as_u64() >= Some(1) && figures["host"] == true;
        let (mut host, mut of_pod) = (Vec::new(), Vec::new());
        for problem in run.coded("rehearsal-differs") {
            match problem.pod.as_deref() {
                None => host.push(problem),
                Some(name) if name == pod.name() => of_pod.push(problem),
                Some(_) => {}
            }
        }
        Self {
            left: Some(counted(&run, pod.name(), "would be left")),
            is_but_for_daemons: figures["but_for_daemons"] == 1,
            host,
            pod: of_pod,
            unproven: (!is_whole).then(|| run.transcript()),
        }
    }

    /// What it said of the daemons of the pod was about a record that another one has replaced since.
    pub fn forget_daemons_of_pod(&mut self) {
        if let Some(left) = &mut self.left {
            left.pod = 0;
        }
        self.is_but_for_daemons = false;
    }

    /// Moves what was foreseen out of the sides, and returns it.
    pub fn take_foreseen(&self, [host, pod]: &mut [Side; 2]) -> Vec<String> {
        let mut all = Vec::new();
        for (said, side) in [(&self.host, host), (&self.pod, pod)] {
            let lines = std::mem::take(&mut side.unnamed).into_iter();
            let (foreseen, others): (Vec<_>, Vec<_>) = lines.partition(|line| foresees(said, line));
            all.extend(foreseen);
            side.unnamed = others;
        }
        all
    }

    /// What it said of a side that is as before, that it did not look at a side, and that it leaves something else to daemons.
    pub fn complaints(&self, [host, pod]: &[Side; 2], left: &Left) -> Vec<String> {
        // It loses the other NIC below the pod, too.
        let is_on_lost =
            |it: &&ReportedProblem| !(left.has_other_nic && it.object.ends_with("eth1"));
        let said = |all: &'_ [ReportedProblem]| all.iter().filter(is_on_lost).cloned().collect();
        let sides: [(Vec<ReportedProblem>, _); 2] =
            [(said(&self.host), host), (said(&self.pod), pod)];
        let alarms = sides
            .into_iter()
            .filter(|(said, side)| !said.is_empty() && side.all.is_empty());
        let alarms = alarms.map(|(said, _)| format!("FALSE ALARM: {said:#?}"));
        let unproven = self
            .unproven
            .iter()
            .map(|run| format!("NOT REHEARSED: {run}"));
        let left = &left.foreseen(&self.left.unwrap_or_default());
        let said = self.left.iter().filter(|said| !left.is_in(said));
        let others = said.map(|said| format!("LEFT TO DAEMONS: {said:?}, and it is {left:?}"));
        let is_apart = left.pod > 0 && self.pod.is_empty();
        let counts = (self.left.is_some() && self.is_but_for_daemons != is_apart)
            .then(|| format!("COUNTED as left to daemons: {}", self.is_but_for_daemons));
        alarms.chain(unproven).chain(others).chain(counts).collect()
    }
}

/// Whether a difference is one of an object that the rehearsal named, or one that it only counted: it names the first few.
fn foresees(said: &[ReportedProblem], line: &str) -> bool {
    let is_of = |problem: &ReportedProblem| problem.object.is_empty() || concerns(problem, line);
    said.iter().any(is_of)
}

/// Whether a difference is one of this object. The way of a packet can follow from each of them.
fn concerns(problem: &ReportedProblem, line: &str) -> bool {
    let object = problem.object.as_str();
    let prefixes = object.split(' ').filter(|word| word.contains(['.', ':']));
    let mut names: Vec<String> = prefixes.flat_map(names_of).collect();
    if names.is_empty() {
        names.extend(object.rsplit(' ').next().map(str::to_owned));
    }
    line.contains("ways of ") || names.iter().any(|name| line.contains(name))
}

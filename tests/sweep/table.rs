//! The result of the sweep as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Finding;

/// The number of findings that are printed in full.
const TOLD: usize = 12;
/// The number of lines of each.
const LINES: usize = 12;

/// One command.
pub struct Row {
    name: &'static str,
    points: usize,
    /// The number of points of each kind.
    sorts: BTreeMap<String, usize>,
    pub runs: usize,
    /// Runs that did not reach their fault.
    pub missed: usize,
    findings: Vec<Finding>,
    took: Duration,
}

impl Row {
    pub fn new(name: &'static str, points: &[String]) -> Self {
        let mut sorts = BTreeMap::new();
        for point in points {
            *sorts.entry(point.clone()).or_default() += 1;
        }
        Self {
            name,
            points: points.len(),
            sorts,
            runs: 0,
            missed: 0,
            findings: Vec::new(),
            took: Duration::ZERO,
        }
    }

    pub fn find(&mut self, finding: Finding) {
        if self.findings.len() < TOLD {
            let lines = finding.what.iter().take(LINES);
            let what: Vec<String> = lines
                .map(|line| line.chars().take(3000).collect())
                .collect();
            println!(
                "{}: {} ({}):\n  {}",
                self.name,
                finding.fault,
                finding.point,
                what.join("\n  ")
            );
        }
        self.findings.push(finding);
    }

    pub fn finish(&mut self, took: Duration) {
        self.took = took;
        println!("{}: {} runs in {} s", self.name, self.runs, took.as_secs());
    }

    /// A wait passes a varying number of points; too many missed faults mean that the sweep tests too little.
    pub fn is_good(&self) -> bool {
        self.findings.is_empty() && self.missed * 5 <= self.runs
    }
}

pub fn print(rows: &[Row]) {
    println!(
        "\n{:<36} {:>6} {:>6} {:>6} {:>11} {:>6}  of these",
        "command", "points", "runs", "missed", "differences", "s"
    );
    for row in rows {
        let sorts: Vec<String> = row
            .sorts
            .iter()
            .map(|(sort, count)| format!("{count} {sort}"))
            .collect();
        let (points, runs, missed, found) = (row.points, row.runs, row.missed, row.findings.len());
        let seconds = row.took.as_secs();
        println!(
            "{:<36} {points:>6} {runs:>6} {missed:>6} {found:>11} {seconds:>6}  {}",
            row.name,
            sorts.join(", ")
        );
    }
    for row in rows.iter().filter(|row| !row.findings.is_empty()) {
        let mut points: Vec<String> = row
            .findings
            .iter()
            .map(|finding| format!("{} ({})", finding.fault, finding.point))
            .collect();
        points.sort();
        println!("\n{} is different after: {}", row.name, points.join(", "));
    }
}

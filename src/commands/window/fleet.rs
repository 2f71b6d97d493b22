//! `netfix report --merge` and `netfix check --merge`: the documents of many nodes in one answer. It observes nothing, so it
//! needs neither root nor a node.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Deserializer;

use crate::model::Problem;
use crate::model::problem::FleetCause;
use crate::report::{
    AgeLimit, CheckStatus, Document, Exit, Extra, FleetView, NodeDocument, NodeResult, fleet_page,
};
use crate::store;

/// The reports of windows. The exit code is about the files, as that of `report` is about the record.
pub(crate) fn reports(files: &[PathBuf], html: Option<&Path>) -> Document {
    let (view, problems, is_written) = merge(files, html, None);
    let exit = match (view.nodes.is_empty() || !is_written, has_error(&problems)) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Partly,
        (false, false) => Exit::Done,
    };
    answer(exit as u8, view, problems)
}

/// The answers of checks. The exit code is the worst of theirs; a file that cannot be read is unknown, and so is a node whose
/// check is older than that.
pub(crate) fn checks(files: &[PathBuf], html: Option<&Path>, max_age: Duration) -> Document {
    let limit = AgeLimit {
        now: Timestamp::now(),
        most: max_age,
    };
    let (view, problems, _) = merge(files, html, Some(limit));
    let has = |verdict: CheckStatus| view.verdicts.contains_key(&verdict.to_string());
    let is_known = view.nodes.iter().all(NodeResult::is_checked);
    let exit = if has(CheckStatus::Critical) {
        CheckStatus::Critical
    } else if !is_known || has_error(&problems) || has(CheckStatus::Unknown) {
        CheckStatus::Unknown
    } else if has(CheckStatus::Warning) {
        CheckStatus::Warning
    } else {
        CheckStatus::Ok
    };
    answer(exit as u8, view, problems)
}

fn has_error(problems: &[Problem]) -> bool {
    problems.iter().any(Problem::is_error)
}

fn answer(exit: u8, view: FleetView, problems: Vec<Problem>) -> Document {
    Document {
        exit,
        problems,
        extra: Some(Extra::Fleet(Box::new(view))),
        ..Document::default()
    }
}

/// Merges the files, and writes the page where it is wanted; whether that succeeded.
fn merge(
    files: &[PathBuf],
    html: Option<&Path>,
    limit: Option<AgeLimit>,
) -> (FleetView, Vec<Problem>, bool) {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let (read, problem) = read(file);
        documents.extend(read);
        problems.extend(problem);
    }
    let (mut view, notes) = FleetView::new(documents, limit);
    view.unread = problems.len();
    problems.extend(notes);
    // A page without a node would replace a good one.
    let Some(path) = html.filter(|_| !view.nodes.is_empty()) else {
        return (view, problems, html.is_none());
    };
    let written = store::publish(path, fleet_page(&view).as_bytes());
    view.html = written.is_ok().then(|| path.display().to_string());
    problems.extend(written.err().map(|error| error.problem()));
    let is_written = view.html.is_some();
    (view, problems, is_written)
}

/// The documents of one file, one after the other, and why the rest of it cannot be read.
fn read(file: &Path) -> (Vec<(String, NodeDocument)>, Option<Problem>) {
    let name = file.display().to_string();
    let text = match text(file).map_err(|error| error.to_string()) {
        Ok(text) => text,
        Err(error) => {
            let problem = FleetCause::Unreadable { error }.error(name);
            return (Vec::new(), Some(problem));
        }
    };
    let mut documents: Vec<(String, NodeDocument)> = Vec::new();
    let mut problem = None;
    for document in Deserializer::from_str(&text).into_iter() {
        match document {
            Ok(document) => documents.push((name.clone(), document)),
            Err(error) => {
                let error = error.to_string();
                problem = Some(FleetCause::NoDocument { error }.error(&name));
                break;
            }
        }
    }
    if documents.is_empty() && problem.is_none() {
        problem = Some(FleetCause::Empty.error(&name));
    }
    (documents, problem)
}

fn text(file: &Path) -> io::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(file)
}

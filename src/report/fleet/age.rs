//! Which documents show whole nodes as they are now: of each the newest, unless it is too old.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{NodeDocument, ProblemPart};
use crate::model::Problem;
use crate::model::problem::FleetCause;

/// The clocks of nodes differ: so much later than now is not the future.
const TOLERANCE: Duration = Duration::from_secs(300);

/// How old a check may be.
#[derive(Debug, Clone, Copy)]
pub struct AgeLimit {
    /// The time of the merge.
    pub now: Timestamp,
    /// The greatest age.
    pub most: Duration,
}

impl AgeLimit {
    /// Why the check of this document does not show the whole node as it is now.
    pub(super) fn fault(self, file: &str, document: &NodeDocument) -> Option<ProblemPart> {
        let check = document.check.as_ref()?;
        let at = check.at.as_deref().and_then(|at| at.parse().ok());
        let cause = match at.map(|at: Timestamp| self.now.duration_since(at)) {
            _ if check.selection => FleetCause::Selection,
            None => FleetCause::Undated,
            Some(age) => match Duration::try_from(age) {
                Ok(age) if age > self.most => FleetCause::Old {
                    age,
                    most: self.most,
                },
                Err(_) if age.unsigned_abs() > TOLERANCE => FleetCause::Future {
                    by: age.unsigned_abs(),
                },
                _ => return None,
            },
        };
        Some(cause.warning(file).into())
    }
}

/// Of the documents of one node and kind the newest, and a note for each node that has others.
pub(super) fn newest(
    documents: Vec<(String, NodeDocument)>,
) -> (Vec<(String, NodeDocument)>, Vec<Problem>) {
    let mut kept: Vec<(String, NodeDocument)> = Vec::new();
    let mut known = BTreeMap::new();
    let mut older: BTreeMap<usize, usize> = BTreeMap::new();
    for (file, document) in documents {
        let node = (document.machine_id().cloned(), document.hostname().cloned());
        let is_named = node != (None, None);
        let key = document.time().filter(|_| is_named);
        let key = key.map(|time| ((node, document.report.is_some()), time));
        let Some((node, time)) = key else {
            kept.push((file, document));
            continue;
        };
        let Some((place, newest)) = known.get_mut(&node) else {
            known.insert(node, (kept.len(), time));
            kept.push((file, document));
            continue;
        };
        *older.entry(*place).or_default() += 1;
        if time > *newest {
            *newest = time;
            kept[*place] = (file, document);
        }
    }
    let notes = older.into_iter().map(|(place, others)| {
        let (file, document) = &kept[place];
        let newest = file.clone();
        let node = document.hostname().unwrap_or(file);
        FleetCause::Superseded { others, newest }.info(node.as_str())
    });
    let notes = notes.collect();
    (kept, notes)
}

impl From<Problem> for ProblemPart {
    fn from(problem: Problem) -> Self {
        Self {
            code: problem.code().to_string(),
            severity: problem.severity.to_string(),
            object: problem.object.text().into_owned(),
            message: problem.message(),
        }
    }
}

//! What is printed of a document.

use crate::model::Problem;

/// What is printed of a document.
#[derive(Default)]
pub(super) struct Screen<'a> {
    /// The tables and facts on stdout.
    pub body: String,
    /// The problems in it, which are not repeated on stderr.
    pub listed: &'a [Problem],
    /// The overall result, after the problems.
    pub last: Option<String>,
}

impl Screen<'_> {
    /// A screen without problems.
    pub(super) fn new(body: String, last: impl Into<Option<String>>) -> Self {
        Self {
            body,
            listed: &[],
            last: last.into(),
        }
    }
}

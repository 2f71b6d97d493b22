//! The structure of `src`, as docs/architecture.md draws it: which part may use which, how large a folder, a file and a function may
//! be, that no files import each other in a circle, and that a name has one meaning. What the documents link to, and which metrics the alerts use.

#![allow(clippy::expect_used, reason = "a test that cannot read src fails")]

mod arrows;
mod circles;
mod documents;
mod keys;
mod monitoring;
mod names;
mod sizes;
mod source;

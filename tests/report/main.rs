//! `netfix report` on the records in `testdata/windows`: the text against `NAME.txt`, and the page read by an HTML
//! parser.
//!
//! `NETFIX_BLESS=1 cargo test --test report` writes the texts again, and the checksums of the records; read them before
//! the commit.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue stops")]

mod answers;
mod documents;
mod drivers;
mod fleet;
mod machine;
mod page;
mod schema;
#[path = "../common/schema.rs"]
mod schema_file;
mod screens;
mod verdicts;

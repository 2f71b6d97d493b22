//! Headings of the help texts that several files have.

/// What only `--help` shows.
pub(super) const EXPERT: &str = "Expert options";
/// What a restore works from.
pub(super) const SOURCE: &str = "Restore source";

//! What docs/ and the program share: texts that netfix prints, and lists that the code has.

pub(super) mod explain;
#[cfg(test)]
mod fidelity;
#[cfg(test)]
pub(crate) mod listed_part;
pub(super) mod schema;

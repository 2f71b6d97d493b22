//! What several commands need.

use crate::inventory::node;
use crate::inventory::procfs::machine;
use crate::model::Problem;
use crate::model::problem::UsageCause;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, NodeView};

/// What a command answers.
pub enum Reply {
    /// A document, which is not printed yet.
    Document(Document),
    /// Another process has printed it, and ended with this exit code.
    Printed(u8),
}

/// What every command needs that observes the machine or changes something: to be on the host, beside what all need.
pub(super) fn prepare() -> Result<(), Refusal> {
    prepare_reading()?;
    Ok(machine::prove()?)
}

/// What every command needs: root, and the identity of this machine.
pub(super) fn prepare_reading() -> Result<(), Refusal> {
    if !nix::unistd::geteuid().is_root() {
        return Err(UsageCause::NotRoot.error("").into());
    }
    Ok(node::know_node()?)
}

/// The document of a command that is not about pods.
pub(super) fn answer(exit: Exit, problems: Vec<Problem>, extra: Option<Extra>) -> Document {
    Document {
        exit: exit as u8,
        node: NodeView::of(&node::node_identity()),
        problems,
        extra,
        ..Document::default()
    }
}

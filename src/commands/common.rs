//! What several commands need.

use crate::inventory::node;
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

/// What every command needs: root, and the identity of this machine.
pub(super) fn prepare() -> Result<(), Refusal> {
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

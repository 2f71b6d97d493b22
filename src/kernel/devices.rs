//! What is set on devices, and what is attached to links that are lost with them.

use super::{attached, devlink, ethtool};
use crate::model::NetState;

/// Adds it to what was read of the calling thread's namespace. What netfix cannot read or put back is unsupported.
pub(crate) fn complete(state: &mut NetState) {
    ethtool::complete(state);
    state.unsupported.extend(attached::read(&state.links));
    state.unsupported.extend(devlink::switches(&state.links));
}

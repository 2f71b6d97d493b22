//! What is set on devices, and what is attached to links that are lost with them.

use super::{Socket, attached, dump, ethtool};
use crate::model::{LinkKind, NetState};

/// Adds it to what was read of the calling thread's namespace. What netfix cannot read or put back is unsupported.
pub(crate) fn complete(state: &mut NetState) {
    ethtool::complete(state);
    state.unsupported.extend(attached::read(&state.links));
    let mut links = state.links.iter();
    if links.any(|link| link.kind == LinkKind::Physical && link.hardware.is_some()) {
        let macs = Socket::open_here()
            .and_then(|mut socket| dump::macs_of_devices(&mut socket, &mut state.links));
        if let Err(error) = macs {
            let text = format!("forwarding entries of devices cannot be read: {error}");
            state.unsupported.push(text);
        }
    }
}

//! A checkpoint of `i40e_net_fix`.

use super::{result, spare_mac};
use crate::model::pod::partial::{Attachment, Made};
use crate::model::{Checkpoint, Partial};

/// One macvlan, whose parent is unknown, with every address and route of the result.
#[must_use]
pub fn partial(checkpoint: &Checkpoint) -> Partial {
    let made = Made::Macvlan {
        mode: None,
        bc_queue_len: None,
    };
    let mut attachment = Attachment::bare(checkpoint.ifname.clone(), made);
    let sandbox = Some(&checkpoint.sandbox).filter(|sandbox| !sandbox.is_empty());
    attachment.spare_mac = sandbox.map(|sandbox| spare_mac(sandbox, &checkpoint.ifname));
    let result = &checkpoint.result;
    if result::interface(&checkpoint.ifname, result).is_none() {
        // In a file with another name for the interface, the first one is meant.
        attachment.mac = result.interfaces.first().and_then(|first| first.mac);
    }
    result::fill(
        &mut attachment,
        result,
        &result.ips.iter().collect::<Vec<_>>(),
    );
    Partial {
        attachments: vec![attachment],
    }
}

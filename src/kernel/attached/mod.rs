//! What programs attach to a device and lose with it, and what netfix cannot attach again: by other families of netlink.

pub(crate) mod bound;
mod chains;
pub(crate) mod connections;
pub(crate) mod indexes;
mod rules;
mod xsk;

use crate::model::{IfName, Link};

/// What is attached to those of these links of the calling thread's namespace that can be lost, in words.
pub(super) fn read(links: &[Link]) -> Vec<String> {
    let lost: Vec<&Link> = links.iter().filter(|link| link.can_be_lost()).collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let mut attached = Vec::new();
    if !chains::outlive_devices() {
        let is_lost = |dev: &IfName| lost.iter().any(|link| link.name == *dev);
        attached.extend(chains::read(is_lost));
    }
    attached.extend(xsk::read(&lost));
    attached
}

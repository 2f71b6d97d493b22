//! Links that refer to others by ifindex get their names.

use super::RawLink;
use crate::kernel::dump::{HostView, Names};
use crate::kernel::ethtool;
use crate::kernel::netns::nsid::HostId;
use crate::model::{Link, LinkKind, Parent};

/// Kinds whose `IFLA_LINK` is their peer, not their parent.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];

/// Replaces the ifindexes by which a link refers to others by names.
pub(in crate::kernel) fn resolve(raw: RawLink, names: &Names, host: Option<HostView<'_>>) -> Link {
    let RawLink {
        mut link,
        parent,
        parent_netns,
        master,
        primary,
        has_hardware,
        flaws: _,
    } = raw;
    let lower = parent.map(|index| find_parent(index, parent_netns, names, host));
    if PAIRS.contains(&link.kind.name()) {
        link.peer = lower;
    } else {
        link.parent = lower;
    }
    link.master = master.and_then(|index| names.get(&index).cloned());
    if let LinkKind::Bond(bond) = &mut link.kind {
        bond.primary = primary.and_then(|index| names.get(&index).cloned());
    }
    if has_hardware {
        link.hardware = Some(ethtool::hardware(&link.name));
    }
    link
}

fn find_parent(
    index: u32,
    netns: Option<i32>,
    names: &Names,
    host: Option<HostView<'_>>,
) -> Parent {
    let own = || names.get(&index).cloned().map(Parent::Own);
    let of_host = || {
        host.and_then(|host| host.names.get(&index).cloned())
            .map(Parent::Host)
    };
    let found = match (netns, host.map(|host| host.id)) {
        // Without nsids the kernel does not report the parent's namespace; it is nearly always the host's.
        (None, Some(HostId::Unsupported)) => of_host().or_else(own),
        (None, _) => own(),
        (Some(id), Some(HostId::Known(host_id))) if id == host_id => of_host(),
        _ => None,
    };
    found.unwrap_or(Parent::Elsewhere)
}

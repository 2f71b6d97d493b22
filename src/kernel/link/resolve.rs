//! Links that refer to others by ifindex get their names.

use super::{RawLink, data};
use crate::kernel::dump::{HostView, Names};
use crate::kernel::ethtool;
use crate::kernel::netns::nsid::HostId;
use crate::model::net::raw::RawAttribute;
use crate::model::{Hardware, Link, LinkKind, Parent};

/// Kinds whose `IFLA_LINK` is their peer, not their parent.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];

/// Replaces the ifindexes by which a link refers to others by names.
pub(in crate::kernel) fn resolve(raw: RawLink, names: &Names, host: Option<HostView<'_>>) -> Link {
    let RawLink {
        mut link,
        parent,
        lower,
        parent_netns,
        master,
        primary,
        backup,
        has_stp: _,
        has_hardware,
        port,
        flaws: _,
    } = raw;
    let find = |index| find_parent(index, parent_netns, names, host);
    if link.kind.lower().is_some() {
        on_lower(&mut link, lower, find);
    } else {
        let found = parent.map(|index| find(index).unwrap_or(Parent::Elsewhere));
        if PAIRS.contains(&link.kind.name()) {
            link.peer = found;
        } else {
            link.parent = found;
        }
    }
    link.master = master.and_then(|index| names.get(&index).cloned());
    link.backup_port = backup.and_then(|index| names.get(&index).cloned());
    if let LinkKind::Bond(bond) = &mut link.kind {
        bond.primary = primary.and_then(|index| names.get(&index).cloned());
    }
    if has_hardware {
        let hardware = ethtool::hardware(&link.name);
        link.hardware = Some(Hardware { port, ..hardware });
    }
    link
}

/// The parent of a link that has it in its data. An attribute stays there whose device is gone.
fn on_lower(
    link: &mut Link,
    lower: Vec<RawAttribute>,
    find: impl Fn(u32) -> Result<Parent, NoParent>,
) {
    for raw in lower {
        match data::index(&raw).map(&find) {
            Some(Ok(parent)) => drop(link.parent.get_or_insert(parent)),
            Some(Err(NoParent::Elsewhere)) => link.parent = Some(Parent::Elsewhere),
            Some(Err(NoParent::Gone)) | None => {
                if let LinkKind::Other { data, .. } = &mut link.kind {
                    data.push(raw);
                }
            }
        }
    }
}

/// Why a link has no parent by its ifindex.
enum NoParent {
    /// Its namespace is known, and does not have it.
    Gone,
    /// It is in another namespace.
    Elsewhere,
}

fn find_parent(
    index: u32,
    netns: Option<i32>,
    names: &Names,
    host: Option<HostView<'_>>,
) -> Result<Parent, NoParent> {
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
        _ => return Err(NoParent::Elsewhere),
    };
    found.ok_or(NoParent::Gone)
}

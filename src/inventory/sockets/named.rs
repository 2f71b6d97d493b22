//! What of the host names links by their ifindex, with the programs that have its sockets.

use std::collections::{BTreeMap, BTreeSet};

use super::{loaders, program};
use crate::inventory::{cannot_observe, nics, procfs};
use crate::kernel::attached::bound::BoundSocket;
use crate::kernel::attached::indexes as kernel;
use crate::kernel::foreign::socket_inode;
use crate::kernel::{Socket, state};
use crate::model::net::link::index::{IndexUser, IndexUses};
use crate::model::net::link::socket::Program;
use crate::model::{IfName, Link, NetState, NodeState, Problem};
use crate::plan::{IndexMode, indexes};

/// What names these links of the host, or an ifindex that its link does not have any more.
pub(crate) struct IndexLook<'a> {
    host: &'a NetState,
    recorded: Option<&'a NodeState>,
    at_risk: BTreeSet<IfName>,
    uses: IndexUses,
}

/// What names a link of the host that was recreated by its former ifindex: for the end of a command that restores or verifies. The calling
/// thread is inside the host's namespace.
pub(crate) fn dead(recorded: Option<&NodeState>) -> Vec<Problem> {
    let links = Socket::open_here().and_then(|mut socket| state::links(&mut socket, None));
    links.map_or_else(
        |error| vec![cannot_observe("host", &error)],
        |host| IndexLook::of(&host, recorded, BTreeSet::new()).dead(),
    )
}

impl<'a> IndexLook<'a> {
    /// With what a reload of the host's devices can take; these are those under the pods.
    pub(crate) fn with_risk(
        host: &'a NetState,
        recorded: Option<&'a NodeState>,
        devices: &BTreeSet<IfName>,
    ) -> Self {
        Self::of(host, recorded, host.host_links_at_risk(devices))
    }

    fn of(host: &'a NetState, recorded: Option<&'a NodeState>, at_risk: BTreeSet<IfName>) -> Self {
        let is_told = |link: &Link| {
            at_risk.contains(&link.name)
                || recorded.is_some_and(|recorded| indexes::is_taken(link, host, recorded))
        };
        Self {
            uses: read(host, is_told),
            host,
            recorded,
            at_risk,
        }
    }

    /// What a reload leaves without its link, or would.
    pub(crate) fn named(&self, mode: IndexMode) -> Vec<Problem> {
        let kept = nics::kept_indexes(mode, &self.host.links);
        indexes::named(&self.uses, self.host, &self.at_risk, &kept)
    }

    /// What names a link that was recreated.
    pub(crate) fn dead(&self) -> Vec<Problem> {
        indexes::dead(&self.uses, self.host, self.recorded)
    }

    /// What the next record keeps for that.
    pub(crate) fn former(&self) -> BTreeMap<u32, IfName> {
        indexes::former(&self.uses, self.host, self.recorded)
    }
}

/// What names a link that `is_told`, or an ifindex that no link has. The calling thread is inside the host's namespace.
fn read(host: &NetState, is_told: impl Fn(&Link) -> bool) -> IndexUses {
    let (mut known, mut sockets) = kernel::read(&host.links);
    sockets.retain(|socket| socket.index != 0);
    let links = host.links.iter();
    let links: BTreeMap<_, _> = links.map(|link| (link.index, is_told(link))).collect();
    let is_told = |index: u32| links.get(&index).is_none_or(|is_told| *is_told);
    let place = |socket: &BoundSocket| (socket.protocol, socket.port);
    let told = sockets.iter().filter(|one| is_told(one.index));
    let told: BTreeSet<_> = told.map(place).collect();
    // A program may have bound another one to the present link.
    sockets.retain(|socket| told.contains(&place(socket)));
    let programs = holders(&sockets.iter().map(|socket| socket.inode).collect());
    for socket in sockets {
        let user = IndexUser::Socket {
            name: name(&socket),
            programs: programs.get(&socket.inode).cloned().unwrap_or_default(),
        };
        known.add(socket.index, user);
    }
    known
}

fn name(socket: &BoundSocket) -> String {
    let BoundSocket { protocol, port, .. } = socket;
    match *protocol {
        "raw" => format!("raw protocol {port}"),
        _ => format!("{protocol} port {port}"),
    }
}

/// The programs of the host that have these sockets.
fn holders(inodes: &BTreeSet<u64>) -> BTreeMap<u64, Vec<Program>> {
    let mut found: BTreeMap<u64, Vec<Program>> = BTreeMap::new();
    if inodes.is_empty() {
        return found;
    }
    // systemd listens for its units.
    for pid in loaders::of_host().chain([1]) {
        let files = procfs::open_files(pid);
        let own = files.filter_map(|(_, target)| socket_inode(target.as_os_str()));
        let own: BTreeSet<u64> = own.filter(|inode| inodes.contains(inode)).collect();
        if let Some(program) = (!own.is_empty()).then(|| program(pid)).flatten() {
            for inode in own {
                found.entry(inode).or_default().push(program.clone());
            }
        }
    }
    found
}

//! The host and a pod, and how each is read into plain data.

use std::path::PathBuf;

use crate::inventory::cgroup::CgroupOwner;
use crate::inventory::procfs;
use crate::inventory::sockets::loaders;
use crate::kernel::address::neighbour_probe::AnsweredNeighbour;
use crate::kernel::conf::sysfs;
use crate::kernel::dump::{HostView, Names};
use crate::kernel::netns::nsid;
use crate::kernel::netns::nsid::HostId;
use crate::kernel::route::ways;
use crate::kernel::{Errno, Error, Netns, Socket, devices, state};
use crate::matching::PodFacts;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::net::way::Packet;
use crate::model::{Link, NetState, NetnsIdentity, Parent, PodInfo};

/// The host's own namespace, with a socket in it and what it held when it was last read.
#[derive(Debug)]
pub struct Host {
    /// The namespace that netfix runs in.
    pub netns: Netns,
    /// A socket in it.
    pub socket: Socket,
    pub state: NetState,
    /// The neighbour settings of every new link of this machine, once they were read.
    pub initial_settings: Sysctls,
    /// The packets whose ways are looked up each time that it is read.
    packets: Vec<Packet>,
    /// Whether it is read what is set on its NICs.
    reads_nics: bool,
    names: Names,
}

impl Host {
    /// Opens and reads the host's namespace.
    pub fn observe() -> Result<Self, Error> {
        Self::of(Netns::host()?)
    }

    /// The namespace of the calling thread in the place of the host's.
    pub(crate) fn here() -> Result<Self, Error> {
        Self::of(Netns::here()?)
    }

    /// `netns` is that of the calling thread.
    fn of(netns: Netns) -> Result<Self, Error> {
        let mut host = Self {
            netns,
            socket: Socket::open_here()?,
            state: NetState::default(),
            initial_settings: Sysctls::default(),
            packets: Vec::new(),
            reads_nics: false,
            names: Names::new(),
        };
        host.refresh()?;
        Ok(host)
    }

    /// A copy as it was last read, with a socket of its own.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        Ok(Self {
            netns: Netns::host()?,
            socket: Socket::open_here()?,
            state: self.state.clone(),
            initial_settings: self.initial_settings.clone(),
            packets: self.packets.clone(),
            reads_nics: self.reads_nics,
            names: self.names.clone(),
        })
    }

    /// Reads it again.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.state = state::whole(&mut self.socket, None)?;
        sysfs::complete(&mut self.state.links)?;
        loaders::find(&mut self.state);
        if self.reads_nics {
            devices::complete(&mut self.state);
        }
        self.names = self
            .state
            .links
            .iter()
            .map(|link| (link.index, link.name.clone()))
            .collect();
        self.look_up_ways()
    }

    /// Looks up the ways of these packets, now and each time that it is read again.
    pub(crate) fn follow(&mut self, packets: Vec<Packet>) -> Result<(), Error> {
        self.packets = packets;
        self.look_up_ways()
    }

    fn look_up_ways(&mut self) -> Result<(), Error> {
        ways::look_up(&mut self.socket, &mut self.state, &self.packets)
    }

    /// Reads what is set on its NICs, now and each time that it is read again. A restore or check needs that only where it is recorded.
    pub(crate) fn read_nics(&mut self) {
        if !std::mem::replace(&mut self.reads_nics, true) {
            devices::complete(&mut self.state);
        }
    }

    /// Reads the neighbour settings that a new link gets: to be called before links are created.
    pub(crate) fn learn_initial_settings(&mut self) -> Result<(), Error> {
        self.initial_settings = state::initial_neighbour_settings(&mut self.socket)?;
        Ok(())
    }
}

/// A pod's namespace with a socket in it.
#[derive(Debug)]
pub struct Pod {
    pub netns: Netns,
    pub info: PodInfo,
    /// What distinguishes it from every other namespace.
    pub identity: NetnsIdentity,
    /// Every path known to lead to it.
    pub paths: Vec<PathBuf>,
    /// Whose cgroup its oldest process is in.
    pub(crate) owner: CgroupOwner,
    /// A socket in it; `None` while it is closed.
    pub(super) socket: Option<Socket>,
    /// Its whole state, where one observation serves several purposes: it is not read again.
    pub(super) seen: Option<NetState>,
    /// The neighbours that had answered it when a snapshot read it.
    pub(crate) answered: Vec<AnsweredNeighbour>,
    pub(super) host_id: HostId,
    /// How many entries of each of its tables are read; `None`: all.
    pub(super) most: Option<usize>,
}

/// How many entries of a table of a pod are read where many pods are observed: none of them delays the others. A pod of Kubernetes
/// has a dozen.
pub(super) const MOST: usize = 5000;

impl Pod {
    /// The namespace of the calling thread in the place of a pod's.
    pub(crate) fn here(info: PodInfo) -> Result<Self, Error> {
        let (netns, socket) = (Netns::here()?, Socket::open_here()?);
        Ok(Self {
            identity: netns.identity(socket.netns_cookie()?),
            netns,
            info,
            paths: Vec::new(),
            owner: CgroupOwner::default(),
            socket: Some(socket),
            seen: None,
            answered: Vec::new(),
            host_id: HostId::Unassigned,
            most: None,
        })
    }

    /// Limits what is read of its tables, or reads them whole however long they are.
    pub(crate) fn read_all(&mut self, is_all: bool) {
        self.most = (!is_all).then_some(MOST);
        if let Some(socket) = &mut self.socket {
            socket.read_at_most(self.most);
        }
    }

    /// Reads the pod's namespace; the calling thread must be inside it.
    pub fn observe_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        self.read(host, |socket, view| state::whole(socket, Some(view)))
    }

    /// Reads the links alone; the calling thread must be inside the pod's namespace.
    pub fn observe_links_inside(&mut self, host: &Host) -> Result<NetState, Error> {
        self.read(host, |socket, view| state::links(socket, Some(view)))
    }

    /// Reads, and reads again what was read before the namespace had an id for the host's: its first link on a host link
    /// assigns one, and without it that link seems to be on another namespace's.
    pub(crate) fn read(
        &mut self,
        host: &Host,
        read: impl Fn(&mut Socket, HostView<'_>) -> Result<NetState, Error>,
    ) -> Result<NetState, Error> {
        if let Some(seen) = &self.seen {
            return Ok(seen.clone());
        }
        self.learn_host_id(host)?;
        loop {
            let view = HostView {
                id: self.host_id,
                names: &host.names,
            };
            let state = read(self.socket()?, view)?;
            let elsewhere = Some(Parent::Elsewhere);
            let is_elsewhere = |link: &Link| link.parent == elsewhere || link.peer == elsewhere;
            if self.host_id != HostId::Unassigned || !state.links.iter().any(is_elsewhere) {
                return Ok(state);
            }
            self.learn_host_id(host)?;
            if self.host_id == HostId::Unassigned {
                return Ok(state);
            }
        }
    }

    /// Whether a link of it was ever connected with the host's namespace. The kernel keeps the id that it then assigned.
    pub(crate) fn was_on_host(&self) -> bool {
        matches!(self.host_id, HostId::Known(_))
    }

    /// An id that is assigned stays.
    fn learn_host_id(&mut self, host: &Host) -> Result<(), Error> {
        if self.host_id == HostId::Unassigned {
            self.host_id = nsid::of(self.socket()?, &host.netns)?;
        }
        Ok(())
    }

    /// Keeps its whole state: it is not read again.
    pub(crate) fn keep(&mut self, state: NetState) {
        self.seen = Some(state);
    }

    /// What was kept of its state.
    pub(crate) fn take_kept(&mut self) -> Option<NetState> {
        self.seen.take()
    }

    /// What is kept of its state.
    pub(crate) fn kept(&self) -> Option<&NetState> {
        self.seen.as_ref()
    }

    /// A copy without a socket, whose namespace is not open.
    pub(super) fn closed_copy(&self) -> Self {
        Self {
            answered: Vec::new(),
            netns: self.netns.closed_copy(),
            info: self.info.clone(),
            identity: self.identity.clone(),
            paths: self.paths.clone(),
            owner: self.owner.clone(),
            socket: None,
            seen: self.seen.clone(),
            host_id: self.host_id,
            most: self.most,
        }
    }

    /// What stored records are matched with.
    pub(crate) fn facts(&self) -> PodFacts {
        PodFacts {
            info: self.info.clone(),
            identity: self.identity.clone(),
            paths: self.paths.clone(),
        }
    }

    /// Opens the socket again where it was closed; the calling thread must be inside the namespace.
    ///
    /// # Errors
    /// `ESTALE` if this is not the namespace from before.
    pub(super) fn connect(&mut self) -> Result<(), Error> {
        if self.socket.is_none() {
            let mut socket = Socket::open_here()?;
            socket.read_at_most(self.most);
            prove(&self.netns, &self.identity, socket.netns_cookie()?)?;
            self.socket = Some(socket);
        }
        Ok(())
    }

    /// Closes what cannot stay open.
    pub(crate) fn release(&mut self) {
        if self.netns.is_transient {
            self.socket = None;
            self.netns.close();
        }
    }

    /// Gives its socket away; `None` while it is closed.
    pub(crate) fn take_socket(&mut self) -> Option<Socket> {
        self.socket.take()
    }

    /// The socket in the pod's namespace; only while there is work in it.
    pub(crate) fn socket(&mut self) -> Result<&mut Socket, Error> {
        self.socket.as_mut().ok_or(Error::Kernel(Errno::EBADF))
    }
}

impl AsMut<Pod> for Pod {
    fn as_mut(&mut self) -> &mut Pod {
        self
    }
}

/// Proves that a namespace that was closed meanwhile is the known one.
pub(super) fn prove(
    netns: &Netns,
    known: &NetnsIdentity,
    cookie: Option<u64>,
) -> Result<(), Error> {
    let inode = netns.key().1;
    let holder = netns.holder.filter(|one| procfs::is_in(*one, inode));
    let now = NetnsIdentity {
        holder,
        ..netns.identity(cookie)
    };
    if now.is_same(known) {
        return Ok(());
    }
    Err(Errno::ESTALE.into())
}

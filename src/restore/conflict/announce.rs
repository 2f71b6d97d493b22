//! Announces restored pods to the network: ARP announcements (RFC 5227, section 2.3) and unsolicited neighbour advertisements
//! (RFC 4861, section 7.2.6), each twice.
//!
//! A new link sends nothing for IPv4, so switches do not know its port, and neighbours may know the MAC of another machine that
//! had the address meanwhile.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::context::Pending;
use crate::inventory::observe::Host;
use crate::kernel::wire::frame;
use crate::kernel::wire::packet::Sender;
use crate::kernel::{Socket, state};
use crate::model::net::address::{DADFAILED, TENTATIVE};
use crate::model::problem::RestoreCause;
use crate::model::{Address, Link, Mac, Parent, Problem};
use crate::restore::conflict::pace::Pace;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::PodJob;

/// Between both announcements. A switch may lose the first one, when the NIC has just come up.
const INTERVAL: Duration = Duration::from_secs(1);

/// An address to announce.
struct Announcement {
    /// The ifindex of the host's link to send through.
    parent: u32,
    mac: Mac,
    address: Address,
    is_router: bool,
}

/// Addresses of one pod that duplicate address detection still probes. Their owner may be another machine (RFC 4862, section
/// 5.4), so they are not announced before its end.
struct Tentative {
    /// A socket in the pod's namespace.
    socket: Socket,
    addresses: Vec<Announcement>,
}

/// Announces the addresses that were restored, and again a second later. A failure never fails a restore.
pub(in crate::restore) fn announce(
    pods: &mut [&mut PodJob],
    host: &Host,
    pace: Pace,
    _: Permit<'_>,
    pending: &mut Pending,
) -> Option<Problem> {
    let (mut all, mut tentative) = (Vec::new(), Vec::new());
    for pod in pods {
        let restored = pod.restored_addresses().into_iter();
        let (usable, addresses): (Vec<_>, Vec<_>) = restored
            .filter_map(|(link, address, is_router)| of_address(link, address, is_router, host))
            .partition(|one| one.address.flags & TENTATIVE == 0);
        all.extend(usable);
        if !addresses.is_empty()
            && let Some(socket) = pod.matched.pod.take_socket()
        {
            tentative.push(Tentative { socket, addresses });
        }
    }
    if all.is_empty() && tentative.is_empty() {
        return None;
    }
    let count = all.len();
    let (failed, error) = match Sender::open() {
        Ok(sender) => {
            // No pod waits for the announcements of others.
            let (at_once, failed) = send_at_once(&sender, &all, pace);
            pending.extend(send_later(sender, (all, at_once), tentative, pace));
            failed?
        }
        Err(error) => (count, error),
    };
    let cause = RestoreCause::NotAnnounced {
        failed,
        all: count,
        error: error.to_string(),
    };
    Some(cause.info("announce"))
}

/// The announcement of one address of a pod; `None` for one that is not for its neighbours, or that they cannot be reached for.
fn of_address(
    link: &Link,
    address: &Address,
    is_router: bool,
    host: &Host,
) -> Option<Announcement> {
    // A frame that leaves through a VLAN's parent has no tag, and reaches other neighbours than the pod's.
    let (true, Some(Parent::Host(parent)), Some(mac)) =
        (link.kind.shares_parent(), &link.parent, link.mac)
    else {
        return None;
    };
    // An ipvlan in a mode of layer 3 answers no ARP.
    if link.flags.noarp || address.flags & DADFAILED != 0 || address.is_shared() {
        return None;
    }
    Some(Announcement {
        parent: host.state.link(parent)?.index,
        mac,
        address: address.clone(),
        is_router,
    })
}

impl Announcement {
    fn send(&self, sender: &Sender) -> io::Result<()> {
        let frame = match self.address.local {
            IpAddr::V4(local) => frame::arp_announcement(self.mac, local),
            IpAddr::V6(local) => frame::advertisement(self.mac, local, self.is_router),
        };
        sender.send(self.parent, &frame)
    }
}

impl Tentative {
    /// The addresses that have passed duplicate address detection meanwhile; none where the pod cannot be read.
    fn passed(mut self) -> Vec<Announcement> {
        /// For one pod: it may have tens of thousands of addresses.
        const LIMIT: Duration = Duration::from_millis(100);
        self.socket.limit(Some(Instant::now() + LIMIT));
        let state = state::links_and_addresses(&mut self.socket, None);
        let usable: HashSet<_> = state
            .iter()
            .flat_map(|state| &state.addresses)
            .filter(|now| now.flags & (TENTATIVE | DADFAILED) == 0)
            .map(Address::key)
            .collect();
        let mut passed = self.addresses;
        passed.retain(|one| usable.contains(&one.address.key()));
        passed
    }
}

/// Sends as many as the pace allows at once; returns how many, and how many of them could not be sent, with the last errno.
fn send_at_once(
    sender: &Sender,
    all: &[Announcement],
    pace: Pace,
) -> (usize, Option<(usize, io::Error)>) {
    let (mut count, mut failed) = (0, None);
    for sent in all
        .iter()
        .map_while(|one| pace.send(|| one.send(sender)).ok())
    {
        count += 1;
        if let Err(error) = sent {
            failed = Some((failed.map_or(1, |(n, _)| n + 1), error));
        }
    }
    (count, failed)
}

/// Sends those that are left after the first `at_once`, and all once more after the interval, with those that became usable
/// meanwhile, from a thread in the host's namespace like this one. The restore continues.
fn send_later(
    sender: Sender,
    (mut all, at_once): (Vec<Announcement>, usize),
    tentative: Vec<Tentative>,
    pace: Pace,
) -> Option<JoinHandle<()>> {
    let due = Instant::now() + INTERVAL;
    // What fails here costs no pod its network.
    let send_paced = move |one: &Announcement| drop(pace.send_later(|| one.send(&sender)));
    thread::Builder::new()
        .spawn(move || {
            let mut early = at_once;
            for one in &all[at_once..] {
                send_paced(one);
                early += usize::from(Instant::now() < due);
            }
            // The others were sent as late as the second ones.
            all.truncate(early);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            all.extend(tentative.into_iter().flat_map(Tentative::passed));
            all.iter().for_each(send_paced);
        })
        .ok()
}

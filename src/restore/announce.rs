//! Announces restored pods to the network: ARP announcements (RFC 5227, section 2.3) and unsolicited neighbour advertisements
//! (RFC 4861, section 7.2.6), each twice.
//!
//! A new link sends nothing for IPv4, so switches do not know its port, and neighbours may know the MAC of another machine that
//! had the address meanwhile.

use std::io;
use std::net::IpAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::job::Job;
use crate::inventory::observe::Host;
use crate::kernel::frame;
use crate::kernel::packet::Sender;
use crate::model::address::{DADFAILED, TENTATIVE};
use crate::model::problem::RestoreCause;
use crate::model::{Address, Link, LinkKind, Parent, Problem};

/// Between both announcements. A switch may lose the first one, when the NIC has just come up.
const INTERVAL: Duration = Duration::from_secs(1);

/// A frame for one address.
struct Announcement {
    /// The ifindex of the host's link to send through.
    parent: u32,
    frame: Vec<u8>,
}

/// Second announcements that are still to be sent, by threads of their own.
#[derive(Debug, Default)]
pub(crate) struct Pending(Vec<JoinHandle<()>>);

impl Pending {
    /// Adds those of another restore.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Waits until all are sent.
    pub(crate) fn wait(&mut self) {
        for thread in self.0.drain(..) {
            // One that panicked has sent nothing, and the first announcement has been sent.
            let _ = thread.join();
        }
    }
}

/// Announces the addresses that were restored, and again a second later. A failure never fails a restore.
pub(super) fn announce(jobs: &[&mut Job], host: &Host, pending: &mut Pending) -> Option<Problem> {
    let all: Vec<Announcement> = jobs.iter().flat_map(|job| of_job(job, host)).collect();
    if all.is_empty() {
        return None;
    }
    let count = all.len();
    let (failed, error) = match Sender::open() {
        Ok(sender) => {
            let failed = send(&sender, &all);
            pending.0.extend(send_again(sender, all));
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

fn of_job<'a>(job: &'a Job, host: &'a Host) -> impl Iterator<Item = Announcement> + 'a {
    let restored = job.restored_addresses().into_iter();
    restored.filter_map(|(link, address)| {
        let is_router = job.is_router(&link.name);
        of_address(link, address, is_router, host)
    })
}

/// The announcement of one address of a pod; `None` for one that is not for its neighbours, or that they cannot be reached for.
fn of_address(
    link: &Link,
    address: &Address,
    is_router: bool,
    host: &Host,
) -> Option<Announcement> {
    // A frame that leaves through a VLAN's parent has no tag, and reaches other neighbours than the pod's.
    let (LinkKind::Macvlan(_), Some(Parent::Host(parent)), Some(mac)) =
        (&link.kind, &link.parent, link.mac)
    else {
        return None;
    };
    // The owner of an address that duplicate address detection still probes may be another machine (RFC 4862, section 5.4).
    let is_usable = address.flags & (TENTATIVE | DADFAILED) == 0;
    if !is_usable || address.is_shared() {
        return None;
    }
    Some(Announcement {
        parent: host.state.link(parent)?.index,
        frame: match address.local {
            IpAddr::V4(local) => frame::arp_announcement(mac, local),
            IpAddr::V6(local) => frame::advertisement(mac, local, is_router),
        },
    })
}

/// Sends all announcements through one socket; returns how many could not be sent, with the last errno.
fn send(sender: &Sender, all: &[Announcement]) -> Option<(usize, io::Error)> {
    let failed = all
        .iter()
        .filter_map(|one| sender.send(one.parent, &one.frame).err());
    failed.fold(None, |count, error| {
        Some((count.map_or(1, |(n, _)| n + 1), error))
    })
}

/// Sends them once more after the interval, from a thread in the host's namespace like this one. The restore continues.
fn send_again(sender: Sender, all: Vec<Announcement>) -> Option<JoinHandle<()>> {
    let due = Instant::now() + INTERVAL;
    let work = move || {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // The first ones were sent, or their failure is reported.
        let _ = send(&sender, &all);
    };
    thread::Builder::new().spawn(work).ok()
}

//! Namespaces of a rehearsal, and the links in them that stand in for others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::inventory::observe::{Host, Pod};
use crate::kernel::conf::sysctl;
use crate::kernel::link::{self, Placement};
use crate::kernel::{Errno, Error, Netns, Request, Socket, netns, state};
use crate::model::net::link::sysctl::{Folder, SysctlKey};
use crate::model::raw_object::{RawKind, RawObject};
use crate::model::{IfName, Link, NetState, PodInfo};
use crate::rehearsal::survivors;

/// New namespaces in the place of pods, each with the loopback device alone.
///
/// # Errors
/// A namespace, or a file for it, cannot be had.
pub(super) fn pods(infos: Vec<PodInfo>) -> Result<Vec<Pod>, Error> {
    netns::each_in_new(infos, Pod::here)
}

/// Adds the stand-ins for the devices of the host, and for its links that stay.
///
/// # Errors
/// Those of the kernel: it refuses the first of them.
pub(super) fn add_to_host(
    host: &mut Host,
    devices: &[Link],
    stay: &NetState,
    data: &LinkData,
    sink: &Sink,
) -> Result<(), Error> {
    let links = devices.iter().chain(stay.links_but_loopback());
    let requests: Vec<Request> = links.map(|link| request(link, data, sink)).collect();
    add(&mut host.socket, &requests)?;
    host.refresh()
}

/// Adds the stand-ins for the links of a pod that stay.
///
/// # Errors
/// As above.
pub(super) fn add_to_pod(
    pod: &mut Pod,
    stay: &NetState,
    data: &LinkData,
    sink: &Sink,
) -> Result<(), Error> {
    let links = stay.links_but_loopback();
    let requests: Vec<Request> = links.map(|link| request(link, data, sink)).collect();
    if requests.is_empty() {
        return Ok(());
    }
    add(pod.socket()?, &requests)
}

fn add(socket: &mut Socket, requests: &[Request]) -> Result<(), Error> {
    for result in socket.run(requests)? {
        result?;
    }
    Ok(())
}

fn request(link: &Link, data: &LinkData, sink: &Sink) -> Request {
    let place = Placement {
        name: Some(&link.name),
        index: Some(link.index),
        netns: None,
        parent: None,
    };
    if survivors::is_kept(link) {
        let data = data.get(&link.name);
        return link::add_empty(link, place, data.map_or(&[], Vec::as_slice));
    }
    let other_end = Placement {
        name: None,
        index: Some(sink.next.fetch_add(1, Ordering::Relaxed)),
        netns: Some(sink.netns.raw_fd()),
        parent: None,
    };
    link::add_stand_in(link, place, other_end)
}

/// Where everything goes that is sent on stand-ins: a namespace without an address, with the other end of each.
pub(super) struct Sink {
    netns: Netns,
    socket: Socket,
    /// The index of the next end.
    next: AtomicU32,
}

impl Sink {
    /// # Errors
    /// As above.
    pub(super) fn open() -> Result<Self, Error> {
        netns::in_new(|| {
            // The ends of the pairs send nothing. A kernel without IPv6 has no such setting.
            let key = SysctlKey::known("disable_ipv6");
            let of_new_links = "default".parse().map_err(|_| Errno::EINVAL)?;
            let _ = sysctl::write(Folder::Ipv6Conf, &of_new_links, &key, "1");
            Ok(Self {
                netns: Netns::here()?,
                socket: Socket::open_here()?,
                next: AtomicU32::new(2 * Link::FIRST_STAND_IN),
            })
        })?
    }

    /// Takes all ends up that are down: the stand-ins have carrier then.
    ///
    /// # Errors
    /// As above.
    pub(super) fn give_carrier(&mut self) -> Result<(), Error> {
        let links = state::links(&mut self.socket, None)?.links;
        let down = links.iter().filter(|link| !link.flags.up);
        let requests: Vec<Request> = down.map(|link| link::set_up(link.index, true)).collect();
        add(&mut self.socket, &requests)
    }
}

/// The data of links whose kind netfix does not interpret, by their name.
pub(super) type LinkData = BTreeMap<IfName, Vec<u8>>;

/// The data of those among `reported`.
pub(super) fn link_data(reported: &[RawObject]) -> LinkData {
    let links = reported.iter().filter(|one| one.what == RawKind::Link);
    let data = links.filter_map(|one| {
        let data = one.attributes.get("IFLA_INFO_DATA")?;
        Some((one.devs.first()?.clone(), data.clone()))
    });
    data.collect()
}

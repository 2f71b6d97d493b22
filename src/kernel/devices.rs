//! What is set on devices, and what is attached to links that are lost with them.

use netlink_packet_route::RouteNetlinkMessage;

use super::{Error, Socket, attached, dump, ethtool, link};
use crate::model::net::limits::FORWARDING;
use crate::model::{Link, LinkKind, NetState};

/// Adds it to what was read of the calling thread's namespace. What netfix cannot read or put back is unsupported.
pub(crate) fn complete(state: &mut NetState) {
    ethtool::complete(state);
    state.unsupported.extend(attached::read(&state.links));
    let mut links = state.links.iter();
    if links.any(|link| link.kind == LinkKind::Physical && link.hardware.is_some()) {
        let macs =
            Socket::open_here().and_then(|mut socket| read_macs(&mut socket, &mut state.links));
        if let Err(error) = macs {
            let text = format!("forwarding entries of devices cannot be read: {error}");
            state.unsupported.push(text);
        }
    }
}

/// Reads the MACs for which devices take packets besides their own (`bridge fdb add ... self`). A link on a device adds its own, too:
/// those of the same namespace are left out.
fn read_macs(socket: &mut Socket, links: &mut [Link]) -> Result<(), Error> {
    let dump = dump::whole(socket, link::fdb::list())?;
    let (names, macs) = (dump::Names::new(), dump::macs_of(links));
    for object in dump.objects {
        let RouteNetlinkMessage::NewNeighbour(message) = object else {
            continue;
        };
        let mut devices = links.iter_mut();
        let device = devices
            .find(|link| link.index == message.header.ifindex && link.kind == LinkKind::Physical);
        let entry = link::fdb::parse(&message, &names).and_then(Result::ok);
        let entry = entry
            .filter(|one| !one.master && !one.lladdr.is_group() && !macs.contains(&one.lladdr));
        if let (Some(device), Some(entry)) = (device, entry)
            && device.fdb.len() < FORWARDING
        {
            device.fdb.push(entry);
        }
    }
    Ok(())
}

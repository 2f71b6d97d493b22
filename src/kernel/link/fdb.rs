//! Forwarding entries (`bridge fdb`): between rtnetlink messages and the model.

use std::net::IpAddr;

use netlink_packet_core::{DefaultNla, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE, Nla};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::codec::Dump;
use crate::kernel::codec::nested::word;
use crate::kernel::codec::text;
use crate::kernel::dump::Names;
use crate::kernel::{Errno, Request};
use crate::model::fidelity::form::IP;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::{IfName, Mac};

/// The request for a dump of all entries of a namespace.
pub(in crate::kernel) fn list() -> RouteNetlinkMessage {
    let mut request = NeighbourMessage::default();
    request.header.family = AddressFamily::Bridge;
    RouteNetlinkMessage::GetNeighbour(request)
}

/// The MACs that bridges have learnt behind these ports.
pub(in crate::kernel) fn learned<'a>(
    dump: &'a Dump,
    ports: &'a Names,
) -> impl Iterator<Item = (IfName, Mac)> + 'a {
    dump.objects.iter().filter_map(|object| {
        let RouteNetlinkMessage::NewNeighbour(message) = object else {
            return None;
        };
        let port = ports.get(&message.header.ifindex)?;
        let state = u16::from(message.header.state);
        let is_learned = state & (FdbEntry::NOARP | FdbEntry::PERMANENT) == 0;
        let mut attributes = message.attributes.iter().filter(|_| is_learned);
        let mac = attributes.find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => Mac::from_slice(bytes),
            _ => None,
        });
        Some((port.clone(), mac?))
    })
}

/// Reads one entry of a dump; `None` for what the kernel learnt, and for what refers to a link that is gone. The kernel's own are
/// among the others. Fails for an entry via a link of another namespace, which has no name here.
pub(in crate::kernel) fn parse(
    message: &NeighbourMessage,
    names: &Names,
) -> Option<Result<FdbEntry, FdbEntry>> {
    let state = u16::from(message.header.state);
    let flags = message.header.flags.bits();
    let is_kept = state & (FdbEntry::NOARP | FdbEntry::PERMANENT) != 0;
    if !is_kept && flags & FdbEntry::EXTERN_LEARN == 0 {
        return None;
    }
    let mut entry = FdbEntry {
        lladdr: Mac([0; 6]),
        master: false,
        vlan: None,
        dst: None,
        port: None,
        vni: None,
        source_vni: None,
        via: None,
        nexthop: None,
        state,
        flags: flags & FdbEntry::SETTABLE,
    };
    let (mut is_elsewhere, mut via) = (false, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::LinkNetNsId(_) => is_elsewhere = true,
            NeighbourAttribute::LinkLayerAddress(bytes) => entry.lladdr = Mac::from_slice(bytes)?,
            NeighbourAttribute::Controller(_) => entry.master = true,
            NeighbourAttribute::Vlan(vlan) => entry.vlan = Some(*vlan).filter(|vlan| *vlan != 0),
            NeighbourAttribute::Destination(address) => entry.dst = destination(address),
            NeighbourAttribute::Port(port) => entry.port = Some(*port),
            NeighbourAttribute::Vni(vni) => entry.vni = Some(*vni),
            NeighbourAttribute::SourceVni(vni) => entry.source_vni = Some(*vni),
            NeighbourAttribute::IfIndex(index) => via = Some(index),
            NeighbourAttribute::Other(raw) if raw.kind() == NDA_NH_ID => {
                entry.nexthop = word(&text::stored(raw).value, 0);
            }
            _ => {}
        }
    }
    match via {
        Some(_) if is_elsewhere => return Some(Err(entry)),
        Some(index) => entry.via = Some(names.get(index)?.clone()),
        None => {}
    }
    Some(Ok(entry))
}

/// `linux/neighbour.h`.
const NDA_NH_ID: u16 = 13;

/// The kernel has addresses of both families in messages of this one.
fn destination(address: &NeighbourAddress) -> Option<IpAddr> {
    match address {
        NeighbourAddress::Inet(ip) => Some((*ip).into()),
        NeighbourAddress::Inet6(ip) => Some((*ip).into()),
        NeighbourAddress::Other(bytes) => (IP.read)(bytes),
        _ => None,
    }
}

/// `bridge fdb replace`, or `append` for a MAC that may have several entries: an entry that is there stays. A filter of a link has no
/// entry to replace (`macvlan_fdb_add`).
pub fn put(
    index: u32,
    entry: &FdbEntry,
    at: impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    let FdbEntry {
        lladdr,
        master,
        vlan,
        dst,
        port,
        vni,
        source_vni,
        via,
        nexthop,
        state,
        flags,
    } = entry;
    let is_in_filter = !master && dst.is_none() && nexthop.is_none();
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = index;
    message.header.state = (*state).into();
    let table = if *master {
        NeighbourFlags::Controller
    } else {
        NeighbourFlags::Own
    };
    message.header.flags = NeighbourFlags::from_bits_retain(*flags) | table;
    let mut attributes = vec![NeighbourAttribute::LinkLayerAddress(lladdr.0.to_vec())];
    attributes.extend(dst.map(|dst| NeighbourAttribute::Destination(dst.into())));
    attributes.extend(vlan.map(NeighbourAttribute::Vlan));
    attributes.extend(port.map(NeighbourAttribute::Port));
    attributes.extend(vni.map(NeighbourAttribute::Vni));
    attributes.extend(source_vni.map(NeighbourAttribute::SourceVni));
    if let Some(via) = via {
        attributes.push(NeighbourAttribute::IfIndex(at(via)?));
    }
    let nexthop = nexthop.map(|id| DefaultNla::new(NDA_NH_ID, id.to_ne_bytes().to_vec()));
    attributes.extend(nexthop.map(NeighbourAttribute::Other));
    message.attributes = attributes;
    let how = if entry.is_of_many() {
        NLM_F_APPEND
    } else if is_in_filter {
        0
    } else {
        NLM_F_REPLACE
    };
    let message = RouteNetlinkMessage::NewNeighbour(message);
    Ok(Request::new(message, NLM_F_CREATE | how))
}

//! From messages to objects: addresses and neighbours here, links and routes in their own files.

use super::attributes::{Collected, index, value};
use super::{Macs, link, route};
use crate::kernel::admission;
use crate::kernel::codec::message::RTM_NEWNEXTHOP;
use crate::kernel::dump::Names;
use crate::model::Mac;
use crate::model::fidelity::form::IP;
use crate::model::fidelity::{ADDRESS, NEIGHBOUR};
use crate::model::raw_object::{RawKind, RawObject};

/// `struct ifaddrmsg` and `struct ndmsg` in bytes.
const ADDRESS_HEADER: usize = 8;
const NEIGHBOUR_HEADER: usize = 12;
/// `IFA_*` (`linux/if_addr.h`).
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
/// `IFA_F_*` that are states: `OPTIMISTIC`, `DADFAILED`, `DEPRECATED`, `TENTATIVE`.
const STATES: u32 = 0x04 | 0x08 | 0x20 | 0x40;
/// `NDA_*` (`linux/neighbour.h`).
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_FLAGS_EXT: u16 = 15;
/// `NTF_PROXY`, `NTF_ROUTER`, `NTF_EXT_MANAGED`.
const PROXY: u8 = 0x08;
const ROUTER: u8 = 0x80;
const MANAGED: u32 = 0x1;

/// The objects of these messages.
pub(super) fn each(messages: &[(u16, Vec<u8>)], names: &Names, macs: &Macs) -> Vec<RawObject> {
    let objects = messages.iter().filter_map(|(kind, body)| match *kind {
        libc::RTM_NEWLINK => link::read(body, names),
        libc::RTM_NEWADDR => address(body, names),
        libc::RTM_NEWROUTE => route::read(body, names),
        RTM_NEWNEXTHOP => route::nexthop(body, names),
        libc::RTM_NEWNEIGH => neighbour(body, names, macs),
        _ => None,
    });
    objects.collect()
}

fn address(body: &[u8], names: &Names) -> Option<RawObject> {
    let [family, length, flags, scope, ..] = *body else {
        return None;
    };
    let number = index(body.get(4..ADDRESS_HEADER)?);
    let dev = names.get(&number)?;
    let attributes = &body[ADDRESS_HEADER..];
    let mut address = Collected::default();
    address.devs.insert(dev.clone());
    address.add_field("ifa_scope", scope.into());
    if value(attributes, IFA_FLAGS).is_none() {
        address.add_field("IFA_FLAGS", u32::from(flags) & !STATES);
    }
    address.table(&ADDRESS, names, attributes, special);
    let ip = |number| value(attributes, number).and_then(IP.read);
    let local = admission::address(family.into(), ip(IFA_LOCAL), ip(IFA_ADDRESS))?;
    Some(RawObject {
        what: RawKind::Address,
        name: format!("address {local}/{length} dev {dev}"),
        devs: address.devs,
        source: Some(local),
        route: None,
        attributes: address.attributes,
    })
}

fn special(address: &mut Collected, _: &Names, name: &str, number: u16, value: &[u8]) -> bool {
    match number {
        IFA_FLAGS => address.add_field(name, index(value) & !STATES),
        // The preferred and the valid lifetime, which count down.
        IFA_CACHEINFO => {
            for (name, at) in [("preferred_lft", 0), ("valid_lft", 4)] {
                let seconds = value.get(at..at + 4).map_or(u32::MAX, index);
                address.add_field(name, u32::from(seconds != u32::MAX));
            }
        }
        _ => return false,
    }
    true
}

/// An entry that was added ([`admission::is_neighbour`]).
fn neighbour(body: &[u8], names: &Names, macs: &Macs) -> Option<RawObject> {
    let family = *body.first()?;
    let number = index(body.get(4..8)?);
    let state = u16::from_ne_bytes(body.get(8..10)?.try_into().ok()?);
    let flags = *body.get(10)?;
    let dev = names.get(&number)?;
    let attributes = body.get(NEIGHBOUR_HEADER..)?;
    let to = admission::ip(family.into(), value(attributes, NDA_DST)?)?;
    let is_proxy = flags & PROXY != 0;
    let is_managed = value(attributes, NDA_FLAGS_EXT).map_or(0, index) & MANAGED != 0;
    let lladdr = value(attributes, NDA_LLADDR).and_then(Mac::from_slice);
    let own = macs.get(&number).copied();
    if !admission::is_neighbour(state, is_proxy || is_managed, to, lladdr, own) {
        return None;
    }
    let mut neighbour = Collected::default();
    neighbour.devs.insert(dev.clone());
    neighbour.plain(&NEIGHBOUR, "", attributes);
    // The kernel resolves one that is managed.
    let resolved = if is_managed { ROUTER } else { 0 };
    neighbour.add_field("ndm_flags", u32::from(flags & !resolved));
    if is_managed {
        neighbour.attributes.remove("NDA_LLADDR");
    } else if !is_proxy {
        neighbour.add_field("ndm_state", state.into());
    }
    let proxy = if is_proxy { "proxy " } else { "" };
    Some(RawObject {
        what: RawKind::Neighbour,
        name: format!("neighbour {proxy}{to} dev {dev}"),
        devs: neighbour.devs,
        source: None,
        route: None,
        attributes: neighbour.attributes,
    })
}

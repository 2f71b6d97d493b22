//! Addresses: between rtnetlink messages and the model (`ip address`).

pub(crate) mod connected;
pub mod neighbour;
pub mod neighbour_probe;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::time::Duration;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, CacheInfo,
};

use crate::clock;
use crate::kernel::codec::text;
use crate::kernel::{Request, admission};
use crate::model::net::address::REQUESTED_FLAGS;
use crate::model::{Address, Bytes, IfName};

/// `INFINITY_LIFE_TIME`: valid forever.
const FOREVER: u32 = u32::MAX;

/// Reads one address of a dump; `None` for one that is not read ([`admission::address`]). Its `Maker` is to be found out.
pub(crate) fn parse(message: &AddressMessage, dev: &IfName) -> Option<Address> {
    const UNSET: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let mut address = Address::plain(dev.clone(), UNSET, message.header.prefix_len);
    address.scope = message.header.scope.into();
    address.flags = message.header.flags.bits().into();
    for attribute in &message.attributes {
        let raw = text::stored(attribute);
        address.read(raw.number, &raw.value);
        if let AddressAttribute::CacheInfo(info) = attribute {
            address.valid_lft = Some(info.ifa_valid).filter(|s| *s != FOREVER);
            address.preferred_lft = Some(info.ifa_preferred).filter(|s| *s != FOREVER);
            if address.valid_lft.is_some() || address.preferred_lft.is_some() {
                address.lft_elapsed = elapsed(clock::running(), info.tstamp);
            }
        }
    }
    let (family, local) = (message.header.family, Some(address.local));
    address.local = admission::address(family, local, address.peer)?;
    address.peer = address.peer.filter(|ip| *ip != address.local);
    address.label = address
        .label
        .filter(|label| label.as_slice() != dev.as_bytes());
    address.metric = address.metric.filter(|metric| *metric != 0);
    Some(address)
}

/// So long after it was added the kernel has made the routes of an address: longer even than its workers take on a busy machine.
pub(crate) const NEW: Duration = Duration::from_millis(500);

/// Whether an address was added a moment ago.
pub(crate) fn is_new(message: &AddressMessage) -> bool {
    let now = clock::running();
    message.attributes.iter().any(|attribute| match attribute {
        AddressAttribute::CacheInfo(info) => since(now, info.cstamp).is_none_or(|age| age < NEW),
        _ => false,
    })
}

/// Whole seconds since lifetimes were set, at `tstamp`.
fn elapsed(now: Duration, tstamp: u32) -> Option<u32> {
    let seconds = since(now, tstamp)?.as_secs();
    u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)
}

/// The time since a stamp in hundredths of a second since boot, of which the kernel reports 32 bits; `None`: its clock is a moment
/// ahead.
fn since(now: Duration, stamp: u32) -> Option<Duration> {
    let now = u32::try_from(now.as_millis() / 10 % (1 << 32)).ok()?;
    let hundredths = u32::try_from(now.wrapping_sub(stamp).cast_signed()).ok()?;
    Some(Duration::from_millis(u64::from(hundredths) * 10))
}

/// Whether this kernel reports the origin of addresses (`IFA_PROTO`), as far as its release shows.
pub(crate) fn reports_origin() -> bool {
    const SINCE: (u32, u32) = (5, 18);
    static IS_NEW: LazyLock<bool> = LazyLock::new(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(['.', '-']).map(str::parse);
        let mut next = || numbers.next()?.ok();
        next().zip(next()).is_some_and(|release| release >= SINCE)
    });
    *IS_NEW
}

/// `ip address add` on the link with that index.
pub fn add(index: u32, address: &Address) -> Request {
    put(index, address, NLM_F_CREATE | NLM_F_EXCL)
}

/// `ip address change`: the address exists, with other attributes.
pub fn change(index: u32, address: &Address) -> Request {
    put(index, address, NLM_F_REPLACE)
}

/// `ip address del`: only of an address that is added again at once, or that this run has added.
pub fn del(index: u32, address: &Address) -> Request {
    let message = message(index, address);
    Request::new(RouteNetlinkMessage::DelAddress(message), 0)
}

fn put(index: u32, address: &Address, request_flags: u16) -> Request {
    let message = message(index, address);
    Request::new(RouteNetlinkMessage::NewAddress(message), request_flags)
}

fn message(index: u32, address: &Address) -> AddressMessage {
    let dev = || Bytes::from(address.dev.as_bytes().to_vec());
    let label = address.label.clone().unwrap_or_else(dev);
    let sent = Address {
        peer: address.peer.or(Some(address.local)),
        flags: address.flags & REQUESTED_FLAGS,
        label: Some(label).filter(|_| address.local.is_ipv4()),
        ..address.clone()
    };
    let mut message = AddressMessage::default();
    message.header.family = sent.local.into();
    message.header.prefix_len = sent.prefix_len;
    message.header.scope = sent.scope.into();
    message.header.index = index;
    message.header.flags = AddressHeaderFlags::from_bits_retain(sent.flags.to_le_bytes()[0]);
    let attributes = sent.attributes();
    message.attributes = attributes
        .map(|raw| AddressAttribute::Other(text::restored(&raw, 0)))
        .collect();
    if sent.valid_lft.is_some() || sent.preferred_lft.is_some() {
        let mut info = CacheInfo::default();
        info.ifa_valid = sent.valid_lft.unwrap_or(FOREVER);
        info.ifa_preferred = sent.preferred_lft.unwrap_or(FOREVER);
        message.attributes.push(AddressAttribute::CacheInfo(info));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_lifetimes_is_right_when_the_kernels_number_has_wrapped_around() {
        let days = |count: u64| Duration::from_secs(count * 86_400);
        assert_eq!(elapsed(Duration::from_millis(12_340), 1134), Some(1));
        assert_eq!(elapsed(Duration::from_millis(12_340), 1135), None);
        assert_eq!(elapsed(Duration::from_millis(12_340), 1240), None, "ahead");
        let then = u32::try_from(499 * 8_640_000_u64 % (1 << 32)).unwrap();
        assert_eq!(elapsed(days(500), then), Some(86_400));
        let before = u32::try_from(497 * 8_640_000_u64).unwrap();
        assert_eq!(elapsed(days(498), before), Some(86_400));
    }
}

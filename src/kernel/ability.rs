//! What this kernel and this process can do, found by tests that change nothing.

use std::fs;
use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};

use super::{Errno, Error, Request, Socket, netns};

/// The capabilities(7) that a restore needs: to change networks, and to enter namespaces.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// `CAP_NET_RAW`, without which no ping can be sent.
const NET_RAW: u32 = 13;

/// Whether this process may send pings; where that cannot be read, it may.
pub(crate) fn may_ping() -> bool {
    effective().map_or(true, |effective| effective & (1 << NET_RAW) != 0)
}

fn effective() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.ok_or_else(|| io::Error::other("no CapEff in /proc/self/status"))
}

/// The capabilities that a restore needs and this process lacks.
pub fn missing_capabilities() -> io::Result<Vec<&'static str>> {
    let effective = effective()?;
    Ok(NEEDED
        .iter()
        .filter(|(bit, _)| effective & (1 << bit) == 0)
        .map(|(_, name)| *name)
        .collect())
}

/// Those of `kinds` (`macvlan`, `vlan`, `bond`, as in `ip link`) that this kernel does not support.
///
/// A thread in a new namespace sends an incomplete request for each kind. The kernel first tries to load the
/// kind's module; `EOPNOTSUPP` means that there is none, every other errno comes from the kind itself.
pub fn missing_kinds<'a>(kinds: &[&'a str]) -> Result<Vec<&'a str>, Error> {
    let requests: Vec<Request> = kinds.iter().map(|kind| incomplete(kind)).collect();
    let results = netns::in_new(|| Socket::open_here()?.run(&requests))??;
    Ok(kinds
        .iter()
        .zip(&results)
        .filter(|(_, result)| **result == Err(Errno::EOPNOTSUPP))
        .map(|(kind, _)| *kind)
        .collect())
}

fn incomplete(kind: &str) -> Request {
    let mut message = LinkMessage::default();
    let info = LinkInfo::Kind(InfoKind::from(kind));
    message
        .attributes
        .push(LinkAttribute::IfName("netfix".to_owned()));
    message.attributes.push(LinkAttribute::LinkInfo(vec![info]));
    Request::new(
        RouteNetlinkMessage::NewLink(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_no_kernel_has_is_missing_and_macvlan_is_not() {
        assert_eq!(
            missing_kinds(&["macvlan", "no-such-kind"]).unwrap(),
            ["no-such-kind"]
        );
    }
}

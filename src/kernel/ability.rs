//! What this kernel and this process can do, found by tests that change nothing.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};

use super::{Errno, Error, Request, Socket, netns};
use crate::model::problem::KeptIndex;

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

/// The release of this kernel, such as `6.1.0-56-amd64`.
pub(crate) fn release() -> &'static str {
    static RELEASE: OnceLock<String> = OnceLock::new();
    RELEASE.get_or_init(|| fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default())
}

/// Whether this kernel has at least this version.
pub(crate) fn is_kernel(version: (u32, u32)) -> bool {
    is_at_least(release(), version)
}

fn is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor) >= version,
        _ => false,
    }
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

/// Why no device of the host can get a certain ifindex, if so. `IFLA_NEW_IFINDEX` exists since Linux 5.13. A file that only the first
/// namespace has shows whether this is the first.
pub(crate) fn kept_index() -> Option<KeptIndex> {
    let is_first = || Path::new("/proc/sys/net/core/netdev_max_backlog").exists();
    match is_kernel((5, 13)) {
        true if is_first() => None,
        true => Some(KeptIndex::Container),
        false => Some(KeptIndex::OldKernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_the_first_gives_no_ifindex_back() {
        let found = netns::in_new(kept_index);
        assert_eq!(found.unwrap(), Some(KeptIndex::Container));
    }

    #[test]
    fn a_kind_that_no_kernel_has_is_missing_and_macvlan_is_not() {
        assert_eq!(
            missing_kinds(&["macvlan", "no-such-kind"]).unwrap(),
            ["no-such-kind"]
        );
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (release, expected) in [
            ("6.16.0", true),
            ("6.18.44-fc-v657", true),
            ("7.0-rc1", true),
            ("6.1.0-56-amd64", false),
            ("5.14.0-503.el9", false),
            ("", false),
        ] {
            assert_eq!(is_at_least(release, (6, 16)), expected, "{release}");
        }
    }
}

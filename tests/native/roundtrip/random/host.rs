//! What the host has, besides its addresses and default routes.

use super::routes::{route, rule};
use super::{Numbers, address, neighbour, owners, setting};

/// The lines of a pod with the host's own addresses.
pub(super) fn lines(n: &mut Numbers) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..n.below(3) {
        lines.push(address(n));
    }
    for (count, make) in [
        (3, owners::manager as fn(&mut Numbers) -> Vec<String>),
        (4, owners::router),
    ] {
        if n.one_in(count) {
            lines.extend(make(n));
        }
    }
    for _ in 0..n.below(3) {
        lines.push(route(n));
    }
    for (limit, make) in [
        (2, rule as fn(&mut Numbers) -> String),
        (2, neighbour),
        (2, setting),
    ] {
        for _ in 0..n.below(limit) {
            lines.push(make(n));
        }
    }
    lines.into_iter().map(own).collect()
}

/// A line with addresses of the host in the place of a pod's.
pub(super) fn own(line: String) -> String {
    let others = [
        ("10.88.1.", "10.88.2."),
        ("10.9.", "10.19."),
        ("10.77.0.5", "10.77.0.6"),
        ("fd88::1:", "fd88::2:"),
        ("fd78::5", "fd78::6"),
        ("addr add fd1", "addr add fd3"),
        ("addr add fd88::", "addr add fd88::3:"),
    ];
    others
        .iter()
        .fold(line, |line, (pod, host)| line.replace(pod, host))
}

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
    let others = [
        ("10.88.1.", "10.88.2."),
        ("10.9.", "10.19."),
        ("fd88::1:", "fd88::2:"),
        ("addr add fd1", "addr add fd3"),
        ("addr add fd88::", "addr add fd88::3:"),
    ];
    let own = |line: String| {
        others
            .iter()
            .fold(line, |line, (pod, host)| line.replace(pod, host))
    };
    lines.into_iter().map(own).collect()
}

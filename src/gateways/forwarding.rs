//! Ports of the host's bridges that do not forward yet (spanning tree), and of its bonds that do not send yet (802.3ad): all behind them
//! is silent until they do.

use std::time::Duration;

use crate::kernel::conf::sysfs::{PortState, Sysfs};
use crate::model::problem::GatewayCause;
use crate::model::{IfName, LinkGraph, LinkKind, NetState, Problem, Tie};

/// How long the protocol of 802.3ad takes, also if no switch answers: then the kernel sends without one.
const AGGREGATION: Duration = Duration::from_secs(10);

/// How long it may take until the ports of the host's bridges and bonds forward; names each that does not yet.
pub(super) fn awaited(host: &NetState, problems: &mut Vec<Problem>) -> Duration {
    let graph = LinkGraph::new(&host.links);
    let masters = host.links.iter();
    let masters = masters.filter(|link| link.is_bridge() || matches!(link.kind, LinkKind::Bond(_)));
    let mut masters = masters.peekable();
    let sysfs = masters.peek().map(|_| Sysfs::here());
    // Without a sysfs, before Linux 5.2, it is not known.
    let Some(Ok(sysfs)) = sysfs else {
        return Duration::ZERO;
    };
    let mut longest = Duration::ZERO;
    for master in masters {
        let below = graph.below(&master.name).iter();
        let ports = below.filter(|(tie, _)| *tie == Tie::Port);
        let ports: Vec<&IfName> = ports.map(|(_, port)| *port).collect();
        let wait = if master.is_bridge() {
            of_bridge(&sysfs, &master.name, &ports, problems)
        } else {
            let open = ports.iter().filter_map(|port| sysfs.negotiates(port));
            of_bond(&master.name, &open.collect::<Vec<_>>(), problems)
        };
        longest = longest.max(wait);
    }
    longest
}

fn of_bridge(
    sysfs: &Sysfs,
    bridge: &IfName,
    ports: &[&IfName],
    problems: &mut Vec<Problem>,
) -> Duration {
    let mut longest = Duration::ZERO;
    let Some(delay) = sysfs.spanning_tree(bridge) else {
        return longest;
    };
    for port in ports {
        let (state, wait) = match sysfs.port_state(port) {
            PortState::Listening => ("listening", 2 * delay),
            PortState::Learning => ("learning", delay),
            PortState::Other => continue,
        };
        longest = longest.max(wait);
        let bridge = bridge.clone();
        let cause = GatewayCause::PortAwaited {
            bridge,
            state,
            wait,
        };
        problems.push(cause.info(*port));
    }
    longest
}

/// `open` has whether each port that speaks with a switch still negotiates: one that does not is enough. The bond has its carrier before
/// that.
fn of_bond(bond: &IfName, open: &[bool], problems: &mut Vec<Problem>) -> Duration {
    if open.is_empty() || open.contains(&false) {
        return Duration::ZERO;
    }
    let wait = AGGREGATION;
    problems.push(GatewayCause::AggregateAwaited { wait }.info(bond));
    wait
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bond_is_awaited_until_one_port_has_negotiated() {
        let of = |open: &[bool]| {
            let mut problems = Vec::new();
            let wait = of_bond(&"bond4".parse().unwrap(), open, &mut problems);
            (wait, problems.len())
        };
        assert_eq!(of(&[]), (Duration::ZERO, 0));
        assert_eq!(of(&[true, false]), (Duration::ZERO, 0));
        assert_eq!(of(&[true, true]), (AGGREGATION, 1));
    }
}

//! Ports of the host's bridges that do not forward yet (spanning tree): all behind them is silent until they do.

use std::time::Duration;

use crate::kernel::conf::sysfs::{PortState, Sysfs};
use crate::model::problem::GatewayCause;
use crate::model::{LinkGraph, NetState, Problem, Tie};

/// How long it may take until the ports of the host's bridges forward; names each that does not yet.
pub(super) fn awaited(host: &NetState, problems: &mut Vec<Problem>) -> Duration {
    let graph = LinkGraph::new(&host.links);
    let bridges = host.links.iter().filter(|link| link.is_bridge());
    let ports = bridges.flat_map(|bridge| {
        let below = graph.below(&bridge.name).iter();
        let ports = below.filter(|(tie, _)| *tie == Tie::Port);
        ports.map(|(_, port)| (&bridge.name, *port))
    });
    let mut ports = ports.peekable();
    let sysfs = ports.peek().map(|_| Sysfs::here());
    let mut longest = Duration::ZERO;
    // Without a sysfs, before Linux 5.2, it is not known.
    let Some(Ok(sysfs)) = sysfs else {
        return longest;
    };
    for (bridge, port) in ports {
        let Some(delay) = sysfs.spanning_tree(bridge) else {
            continue;
        };
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
        problems.push(cause.info(port));
    }
    longest
}

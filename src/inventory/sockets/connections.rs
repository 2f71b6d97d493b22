//! Connections of the host and of pods whose translated source goes with a link.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::inventory::observe::Pod;
use crate::inventory::visit::visit;
use crate::kernel;
use crate::kernel::attached::connections::{Connections, translated_to};
use crate::model::problem::SocketCause;
use crate::model::{IfName, LinkGraph, NetState, Problem};

/// Those of the host and of the pods.
#[derive(Debug)]
pub(crate) struct Translated {
    host: NamespaceConnections,
    pods: Vec<PodConnections>,
}

/// Those of one namespace.
#[derive(Debug)]
struct NamespaceConnections {
    /// The addresses that can be lost, each with the index of its link.
    lost: BTreeMap<IpAddr, u32>,
    /// What the kernel reported, or why it did not.
    found: Result<Connections, String>,
}

#[derive(Debug)]
struct PodConnections {
    pod: Pod,
    own: NamespaceConnections,
}

impl AsMut<Pod> for PodConnections {
    fn as_mut(&mut self) -> &mut Pod {
        &mut self.pod
    }
}

impl NamespaceConnections {
    fn new(lost: BTreeMap<IpAddr, u32>) -> Self {
        let found = Ok(Connections::default());
        Self { lost, found }
    }

    /// The calling thread is inside the namespace.
    fn read(&mut self) {
        self.found = translated_to(&self.lost).map_err(|error| kernel::words(&error));
    }

    fn problem(&self) -> Option<Problem> {
        let connections = self.found.as_ref().map_or(0, |found| found.count);
        let cause = SocketCause::ConnectionsEnd { connections };
        self.unread()
            .or_else(|| (connections > 0).then(|| cause.info("conntrack")))
    }

    fn unread(&self) -> Option<Problem> {
        let error = self.found.as_ref().err()?.clone();
        Some(SocketCause::ConnectionsUnknown { error }.info("conntrack"))
    }

    /// How many were made again, and how many were not; the calling thread is inside the namespace.
    fn make_again(&self) -> (usize, usize) {
        self.found.as_ref().map_or((0, 0), Connections::make_again)
    }
}

impl Translated {
    /// Reads those of the host, which can lose these devices, and of the pods that can lose an address with the host's links. The calling
    /// thread is inside the host's namespace.
    pub(crate) fn read<'a>(
        host: &NetState,
        devices: &BTreeSet<IfName>,
        pods: impl IntoIterator<Item = (&'a Pod, &'a NetState)>,
    ) -> Self {
        let lost = LinkGraph::new(&host.links).lost_with(devices);
        let mut host = NamespaceConnections::new(host.addresses_on(&lost));
        host.read();
        let of_pod = |(pod, state): (&Pod, &NetState)| {
            let lost = state.addresses_on(&LinkGraph::new(&state.links).lost_with_host());
            (!lost.is_empty()).then(|| PodConnections {
                pod: pod.closed_copy(),
                own: NamespaceConnections::new(lost),
            })
        };
        let mut pods: Vec<_> = pods.into_iter().filter_map(of_pod).collect();
        let read = visit(&mut pods, |one| one.own.read());
        for (one, read) in pods.iter_mut().zip(read) {
            if let Err(error) = read {
                one.own.found = Err(error.to_string());
            }
        }
        Self { host, pods }
    }

    /// How many the host and each pod have.
    pub(crate) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.each(NamespaceConnections::problem)
    }

    /// Where the kernel did not say which it has.
    pub(crate) fn unread(&self) -> impl Iterator<Item = Problem> {
        self.each(NamespaceConnections::unread)
    }

    fn each(
        &self,
        problem: impl Fn(&NamespaceConnections) -> Option<Problem>,
    ) -> impl Iterator<Item = Problem> {
        let of_host = problem(&self.host);
        let of_pods = self.pods.iter();
        let of_pods = of_pods.filter_map(move |one| Some(problem(&one.own)?.of(&one.pod.info.id)));
        of_host.into_iter().chain(of_pods)
    }

    /// Makes those again whose link is gone: returns how many were made, and how many were not. The calling thread is inside the host's
    /// namespace.
    pub(crate) fn make_again(mut self) -> (usize, usize) {
        let of_host = self.host.make_again();
        let of_pods = visit(&mut self.pods, |one| one.own.make_again());
        let all = of_pods.into_iter().flatten().chain([of_host]);
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

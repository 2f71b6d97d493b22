//! What programs lost with the links that are restored: no restore brings it back, but the programs can.

use crate::inventory::observe::Host;
use crate::inventory::sockets::{self, Suspects, named};
use crate::inventory::visit::visit_without_socket;
use crate::kernel::link::sockets as kernel;
use crate::model::net::link::socket::LinkSocket;
use crate::model::{NetState, Problem};
use crate::plan::HostLinks;
use crate::records::stored::load_node;
use crate::restore::pods::pod::PodJob;
use crate::store::Store;

/// The problems with what programs lost and still count on. Only the pods are read whose record has something of programs; of those
/// in which this run has created links, the packet sockets: these show by themselves that they lost their link.
pub(in crate::restore) fn find_lost(
    pods: &mut [PodJob],
    host: &Host,
    recorded: Option<&NetState>,
) -> Vec<Problem> {
    let mut jobs: Vec<_> = pods.iter_mut().filter(|job| is_concerned(job)).collect();
    let suspects = visit_without_socket(&mut jobs, |job| suspects(job));
    let mut suspects: Vec<_> = suspects.into_iter().flatten().flatten().collect();
    if let Some(recorded) = recorded.filter(|recorded| recorded.has_sockets())
        && let Ok(sockets) = kernel::read(&host.state.links, &host.state.addresses)
    {
        let now = with(&host.state, sockets);
        let gone = recorded.sockets_gone(&now);
        suspects.push(Suspects::of_host(host, Vec::new(), gone));
    }
    let found = sockets::find(&suspects).into_iter();
    found.flat_map(|one| one.problems).collect()
}

/// What of the host still names a link that was recreated by its former ifindex.
pub(in crate::restore) fn find_dead(store: &Store) -> Vec<Problem> {
    let recorded = load_node(store, &mut Vec::new()).ok().flatten();
    named::dead(recorded.as_ref())
}

fn is_concerned(job: &PodJob) -> bool {
    let Some(view) = job.view() else {
        return false;
    };
    let (recorded, _) = job.matched.wanted(&view.state, &HostLinks::default(), &[]);
    !job.created.is_empty() || recorded.has_sockets()
}

/// What is missing in a pod; `None` where it cannot be read. The calling thread must be inside its namespace.
fn suspects(job: &PodJob) -> Option<Suspects> {
    let state = &job.view()?.state;
    let (recorded, _) = job.matched.wanted(state, &HostLinks::default(), &[]);
    let sockets = if recorded.has_sockets() {
        kernel::read(&state.links, &state.addresses)
    } else {
        kernel::read_packet(&state.links)
    };
    let gone = recorded.sockets_lost(&with(state, sockets.ok()?));
    Some(Suspects::of_pod(&job.matched.pod, Vec::new(), gone))
}

/// The links of a state, with what programs have on them.
fn with(state: &NetState, sockets: Vec<LinkSocket>) -> NetState {
    NetState {
        links: state.links.clone(),
        sockets,
        ..NetState::default()
    }
}

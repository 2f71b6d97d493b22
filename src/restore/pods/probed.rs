//! Pods whose lost addresses are probed before they get them, with those of the host.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{mem, thread};

use crate::kernel::Error;
use crate::matching::NetnsKey;
use crate::model::{Address, IfName, Problem};
use crate::plan::{AwaitedEvent, HostLinks};
use crate::progress::Listener;
use crate::restore::conflict::pace::Pace;
use crate::restore::conflict::probe::{Probing, Search};
use crate::restore::host::links::HostJob;
use crate::restore::pods::pod::PodJob;
use crate::restore::pods::{batch, round};
use crate::restore::turns::{self, Turn};

/// What the work on the pods depends on besides them.
#[derive(Clone, Copy)]
pub(in crate::restore) struct Scene<'a> {
    pub probing: Probing<'a>,
    /// The namespaces of all pods with a record.
    pub recorded: &'a BTreeSet<NetnsKey>,
    pub links: &'a HostLinks,
}

impl Scene<'_> {
    /// With the pace for the addresses of these pods and of the host, at least that of the earlier turns.
    pub(in crate::restore) fn paced(self, pods: &[&mut PodJob], host: &HostJob<'_>) -> Self {
        let of_pods = pods.iter().map(|pod| pod.targets.len()).sum::<usize>();
        // What was probed in an earlier turn is announced in this one.
        let of_pods = of_pods.max(pods.len());
        let (rate, all) = (host.limit.limits.probe_rate, of_pods + host.own.count());
        let pace = Pace::new(rate, all, is_leased(pods, host));
        let probing = Probing {
            pace: self.probing.pace.or(pace),
            ..self.probing
        };
        Self { probing, ..self }
    }
}

/// Whether a pod, or the host on a link under them, has an address by DHCP.
fn is_leased(pods: &[&mut PodJob], host: &HostJob<'_>) -> bool {
    let parents: BTreeSet<&IfName> = pods
        .iter()
        .flat_map(|pod| &pod.targets)
        .map(|target| target.claim.parent())
        .collect();
    let mut of_host = host.baseline.state.addresses.iter();
    let mut of_pods = pods.iter();
    of_host.any(|one| one.is_leased() && parents.contains(&one.dev))
        || of_pods.any(|pod| {
            pod.matched
                .claims()
                .addresses
                .iter()
                .any(Address::is_leased)
        })
}

/// Whose address is probed.
#[derive(Clone, Copy)]
enum Getting {
    Host,
    /// The pod at this place among those of the search.
    Pod(usize),
}

/// Restores the pods of a turn, in parts whose addresses can be probed together. The host's addresses are probed beside the first.
pub(in crate::restore) fn restore(
    pods: &mut [&mut PodJob],
    turn: Turn,
    scene: Scene<'_>,
    host: &mut HostJob<'_>,
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    let mut notes = Vec::new();
    for part in turns::parts(pods, scene.probing.pace.most()) {
        // Probe the lost addresses: what another machine or pod has is withheld.
        let is_awaited = part.iter().any(|pod| !pod.targets.is_empty());
        let mut search = search(part, scene.probing, host, false);
        if let Some(search) = search.take_if(|_| is_awaited) {
            notes.extend(probe(search, part, turn, scene, host, progress)?);
        }
        // No pod waits for the probe of the host's addresses alone.
        if let Some(search) = &mut search {
            search.start(host.host, host.awaited_carrier());
        }
        // Create the missing links, and observe, plan and apply inside each pod in rounds.
        batch::restore(part, turn, host.host, scene.links, host.permit, progress)?;
        if let Some(search) = search {
            notes.extend(finish(search, part, scene, host));
        }
    }
    Ok(notes)
}

/// The probe of the addresses that these pods are to get, and of those of the host that can be probed beside them: at last, of all on
/// links that are up.
fn search(
    pods: &mut [&mut PodJob],
    probing: Probing<'_>,
    host: &mut HostJob<'_>,
    is_last: bool,
) -> Option<Search<Getting>> {
    let mut targets = Vec::new();
    for (at, pod) in pods.iter_mut().enumerate() {
        let of_pod = mem::take(&mut pod.targets).into_iter();
        targets.extend(of_pod.map(|target| (Getting::Pod(at), target)));
    }
    let parents = targets.iter().map(|(_, target)| target.parent.clone());
    let parents: BTreeSet<_> = parents.collect();
    let is_awaited = |link: &IfName| is_last || parents.contains(link);
    let own = host.own.take_probes(&host.host.state, is_awaited);
    targets.extend(own.into_iter().map(|target| (Getting::Host, target)));
    Search::of(targets, host.host, probing)
}

/// Creates the links while the probes are under way; without probes they are created later, while there is work in other pods.
fn probe(
    mut search: Search<Getting>,
    pods: &mut [&mut PodJob],
    turn: Turn,
    scene: Scene<'_>,
    host: &mut HostJob<'_>,
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    if search.has_carrier(host.host) {
        search.start(host.host, host.awaited_carrier());
    }
    batch::create(pods, turn, host.host, host.permit)?;
    let mut notes = Vec::new();
    if !search.is_started() {
        // A probe without carrier reaches no other machine.
        notes.extend(host.wait_for_carrier(scene.links, progress)?);
        search.start(host.host, host.awaited_carrier());
    }
    notes.extend(finish(search, pods, scene, host));
    Ok(notes)
}

/// Ends a probe: what others have is withheld, and the host gets its other addresses.
fn finish(
    search: Search<Getting>,
    pods: &mut [&mut PodJob],
    scene: Scene<'_>,
    host: &mut HostJob<'_>,
) -> Vec<Problem> {
    let is_own = |of: &Getting, mac| match of {
        Getting::Host => false,
        Getting::Pod(_) => pods.iter().any(|pod| pod.has_mac(mac)),
    };
    let (conflicts, notes) = search.finish(host.host, scene.recorded, is_own);
    let mut of_host = Vec::new();
    for conflict in conflicts {
        match conflict.of {
            Getting::Host => of_host.push((conflict.target, conflict.cause)),
            Getting::Pod(at) => pods[at].withhold(conflict.target.claim, conflict.cause),
        }
    }
    host.add_probed(of_host, scene.links);
    notes
}

/// Restores the host's addresses on links that got carrier late, and those that cannot be probed.
pub(in crate::restore) fn finish_host(
    scene: Scene<'_>,
    host: &mut HostJob<'_>,
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    let scene = scene.paced(&[], host);
    let mut notes = Vec::new();
    if let Some(mut late) = search(&mut [], scene.probing, host, true) {
        late.start(host.host, host.awaited_carrier());
        notes.extend(finish(late, &mut [], scene, host));
    }
    host.add_unprobed(progress)?;
    Ok(notes)
}

/// What had to wait for this event, and comes within a moment. Carrier spreads from the NIC to VLANs and macvlans by separate
/// events. The kernel asks for a router once it has carrier and a link-local address, a second after these, and again after four.
pub(in crate::restore) fn await_event(
    event: AwaitedEvent,
    pods: &mut [&mut PodJob],
    host: &mut HostJob<'_>,
    links: &HostLinks,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    const PAUSE: Duration = Duration::from_millis(50);
    let moment = match event {
        AwaitedEvent::Carrier => Duration::from_secs(2),
        AwaitedEvent::Router => Duration::from_secs(6),
    };
    let deadline = Instant::now() + moment;
    loop {
        if host.waits(event) {
            host.host.refresh()?;
            host.restore(progress)?;
        }
        for pod in pods.iter_mut() {
            pod.reopen(event);
        }
        batch::visit(pods, None, |pod| {
            round::resume(pod, host.host, links, host.permit)
        });
        let mut all = pods.iter();
        let waits = host.waits(event) || all.any(|pod| pod.waits(event));
        if !waits || Instant::now() > deadline {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

//! Takes down what runs now and what is stored: everything that a snapshot's decisions depend on.

use std::collections::BTreeSet;
use std::path::Path;

use super::accept::Accept;
use super::facts::{Archive, Moment, Observation, PodObservation, Reading};
use super::neighbours;
use crate::inventory::look::Look;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::pods::{ObservedPod, ways};
use crate::inventory::private;
use crate::inventory::procfs::machine;
use crate::inventory::sockets::named::IndexLook;
use crate::inventory::sockets::{self, Suspects};
use crate::inventory::{Inventory, cannot_observe, nics, unread};
use crate::kernel::{Error, dump};
use crate::matching::Selection;
use crate::matching::claims::{Claimant, contests};
use crate::model::{
    Bytes, ChainLink, Hardware, HostSide, IfName, Link, LinkGraph, Mac, NetState, NodeIdentity,
    Problem, stack,
};
use crate::plan::IndexMode;
use crate::plan::snapshot_quality::{host_loss, pod_loss, unsupported_and_lost};
use crate::records::cni_cache;
use crate::records::contest;
use crate::records::contest::CNI_CACHE;
use crate::records::evidence::Witnesses;
use crate::records::stored::load_node;
use crate::runtime::RuntimeAnswer;
use crate::store::Store;

/// Takes down what was seen of the host and the selected pods; returns these too, without their problems.
pub(super) fn observe(
    look: Look,
    selection: &Selection,
    (accept, index): (Accept<'_>, IndexMode),
    store: &Store,
) -> Result<(Observation, Archive, Inventory), Problem> {
    let Look {
        at,
        stored,
        mut inventory,
        mut observed,
        claims,
    } = look;
    let mut complete = inventory.is_complete;
    let mut problems = std::mem::take(&mut inventory.problems);
    let Inventory {
        node,
        host,
        pods,
        answer,
        ..
    } = &mut inventory;
    let answers = neighbours::answers(accept.answers, (pods, &observed), host, &at.wall);
    host.read_nics();
    leave_to_pods(&mut host.state, &observed, &claims);
    let files = stored.into_iter();
    let checkpoints = files.map(|(id, file)| (id, file.map_err(|error| error.problem())));
    let mut archive = Archive::new(checkpoints.collect(), load_node(store, &mut problems)?);
    let links_after = complete_host(host, &observed, &archive).unwrap_or_else(|error| {
        problems.push(cannot_observe("host", &error));
        complete = false;
        Vec::new()
    });
    problems.extend(contested(pods, &observed, &host.state, node, store));
    if needs_past(pods, &observed, &host.state, &archive, node) {
        archive.past = store.past();
    }
    let (host_now, indexes, found) = find_sockets(pods, &mut observed, host, &archive, node);
    problems.extend(found.into_iter().chain(indexes.named(index)));
    let moment = Moment {
        created: at.wall,
        created_boottime: at.boottime,
        node: node.clone(),
        netns: machine::host(),
        host: host_now,
        answers,
        former_indexes: indexes.former(),
        links_after,
        devices_inside: devices_inside(&observed).filter(|_| selection.is_everything()),
        everything: selection.is_everything(),
        complete,
    };
    let now = Observation {
        pods: read(pods, observed, &archive, node, answer.as_ref()),
        moment,
        problems,
        accept: accept.names.to_vec(),
    };
    Ok((now, archive, inventory))
}

/// Looks up the ways of the host's packets, and of those of pods that it forwards; returns its links after everything else was read.
fn complete_host(
    host: &mut Host,
    observed: &[ObservedPod],
    archive: &Archive,
) -> Result<Vec<Link>, Error> {
    let recorded = archive.node.as_ref();
    let mut known = recorded.map_or_else(Vec::new, |node| node.known_packets(&host.state));
    let own = archive
        .readable()
        .filter_map(|(_, one)| one.netfix.as_ref());
    let chains = own.flat_map(|own| &own.chain);
    known.extend(chains.flat_map(ChainLink::packets));
    let pods = observed.iter().filter_map(|pod| pod.as_ref().ok());
    let side = HostSide::new(&host.state);
    known.extend(pods.flat_map(|(state, _)| side.forwarded(state)));
    ways(&mut host.socket, &mut host.state, &known)?;
    dump::links(&mut host.socket, None, &mut Vec::new())
}

/// The devices inside pods; `None` where one could not be read.
fn devices_inside(observed: &[ObservedPod]) -> Option<Vec<Hardware>> {
    let mut devices = Vec::new();
    for pod in observed {
        let (state, _) = pod.as_ref().ok()?;
        let links = state.links.iter();
        devices.extend(links.filter_map(|link| link.hardware.clone()));
    }
    Some(devices)
}

/// What programs have on links that can be lost, and what they lost and still count on: that stays in the record. Returns the host's
/// state with it, and what names its links by their ifindex.
fn find_sockets<'a>(
    pods: &[Pod],
    observed: &mut [ObservedPod],
    host: &'a Host,
    archive: &'a Archive,
    node: &NodeIdentity,
) -> (NetState, IndexLook<'a>, Vec<Problem>) {
    let mut host_now = host.state.clone();
    let graph = LinkGraph::new(&host.state.links);
    let mut devices = BTreeSet::new();
    let (mut suspects, mut states) = (Vec::new(), Vec::new());
    for (pod, observed) in pods.iter().zip(observed) {
        let Ok((state, _)) = observed else { continue };
        let under = graph.under(&state.links);
        devices.extend(stack::devices(&under).cloned());
        let good = archive.good(node, &pod.identity, &pod.info);
        let gone = good.map(|good| good.own.state.sockets_lost(state));
        let at_risk = state.sockets_at_risk();
        suspects.push(Suspects::of_pod(pod, at_risk, gone.unwrap_or_default()));
        states.push(state);
    }
    let recorded = archive.node.as_ref();
    let gone = recorded.map(|recorded| recorded.state.sockets_gone(&host.state));
    let at_risk = host.state.host_sockets_at_risk(&devices);
    suspects.push(Suspects::of_host(host, at_risk, gone.unwrap_or_default()));
    states.push(&mut host_now);
    let indexes = IndexLook::with_risk(&host.state, recorded, &devices);
    let mut problems = nics::at_risk(&host.state);
    for (state, found) in states.into_iter().zip(sockets::find(&suspects)) {
        problems.extend(found.problems);
        state.keep_sockets(found.lost);
    }
    (host_now, indexes, problems)
}

/// What several of the pods that could be read and the host have.
fn contested(
    pods: &[Pod],
    observed: &[ObservedPod],
    host: &NetState,
    node: &NodeIdentity,
    store: &Store,
) -> Vec<Problem> {
    let running = pods.iter().zip(observed).filter_map(|(pod, observed)| {
        let (state, _) = observed.as_ref().ok()?;
        let claimant = Claimant::pod(&pod.info, &pod.identity, &pod.netns.path, state);
        Some(claimant.now(state))
    });
    let claimants: Vec<_> = running.chain([Claimant::host(host, host)]).collect();
    let cni_cache = Path::new(CNI_CACHE);
    let sources = contest::Sources { store, cni_cache };
    let rulings = contest::decide(&contests(&claimants), &claimants, node, sources);
    rulings.into_iter().map(|ruling| ruling.problem).collect()
}

/// Removes the MACs of pods' links from what was added to the filters of links: each link adds its own again.
fn leave_to_pods(host: &mut NetState, observed: &[ObservedPod], claims: &[NetState]) {
    let states = observed.iter().flatten().map(|(pod, _)| pod);
    let links = states.chain(claims).flat_map(|pod| &pod.links);
    // The parent of a link has what was added to the filter of the link, too.
    let added = links.clone().flat_map(|link| &link.fdb);
    let added = added
        .filter(|entry| !entry.master)
        .map(|entry| entry.lladdr);
    let macs: BTreeSet<Mac> = links.filter_map(|link| link.mac).chain(added).collect();
    for link in host.links.iter_mut().filter(|link| link.has_filter()) {
        link.fdb
            .retain(|entry| entry.master || !macs.contains(&entry.lladdr));
    }
}

/// Whether something of the generations is needed: of a running pod without a readable checkpoint, of what is lost, or, with the
/// host's state, of what was there before.
fn needs_past(
    pods: &[Pod],
    observed: &[ObservedPod],
    host: &NetState,
    archive: &Archive,
    node: &NodeIdentity,
) -> bool {
    let recorded = archive.node.as_ref();
    let side = HostSide::new(host);
    let has_host_lost = || {
        let under: BTreeSet<&IfName> = archive.stacks(node).map(|(_, link)| &link.name).collect();
        recorded.is_some_and(|old| {
            !unsupported_and_lost(&old.state, host, &under).is_empty()
                || host_loss(&old.state, &old.answers.of_host(), host, under).is_some()
        })
    };
    let mut both = pods.iter().zip(observed);
    both.any(|(pod, observed)| {
        let good = archive.good(node, &pod.identity, &pod.info);
        match (good, observed) {
            (None, _) => true,
            (Some(good), Ok((state, torn))) => {
                let beside = good.own.beside(archive.answers_of(&pod.info.id));
                torn.is_some() || pod_loss(&good.own.state, beside, state, &side).is_some()
            }
            (Some(_), Err(_)) => false,
        }
    }) || has_host_lost()
}

/// What was read of each namespace, but for those of users who are no pods: they are known by their owner, and there may be
/// any number of them.
fn read(
    pods: &mut [Pod],
    observed: Vec<ObservedPod>,
    archive: &Archive,
    node: &NodeIdentity,
    answer: Option<&RuntimeAnswer>,
) -> Vec<PodObservation> {
    let private = private_among(pods, &observed, archive, node, answer);
    let mut read = Vec::new();
    let (mut bare, mut young) = (Vec::new(), Vec::new());
    let all = pods.iter_mut().enumerate();
    for (((of, pod), observed), is_private) in all.zip(observed).zip(private) {
        let reading = match observed {
            _ if is_private && pod.netns.is_foreign => continue,
            Ok(_) if is_private => Reading::NoPod,
            Ok((state, None)) => Reading::Whole(state),
            Ok((state, Some(link))) => Reading::Torn { state, link },
            Err(error) => Reading::Failed(unread(&pod.netns.shown(), &error)),
        };
        let one = PodObservation {
            info: pod.info.clone(),
            identity: pod.identity.clone(),
            path: Bytes::from(pod.netns.path.as_path()),
            reading,
            evidence: None,
            lacks: None,
        };
        let good = archive.good(node, &pod.identity, &pod.info);
        if one.is_bare() && good.is_none() {
            bare.push((read.len(), pod));
        } else if good.is_none_or(|good| good.own.cut_off) {
            young.push((read.len(), of));
        }
        read.push(one);
    }
    let (places, mut bare): (Vec<usize>, Vec<&mut Pod>) = bare.into_iter().unzip();
    let cni_cache = Path::new(CNI_CACHE);
    let evidence = Witnesses { answer, cni_cache }.about(&mut bare);
    for (at, evidence) in places.into_iter().zip(evidence) {
        read[at].evidence = evidence;
    }
    // Where no runtime answers, a path alone does not prove that it is still the same sandbox.
    young.retain(|(_, of)| answer.is_some() || pods[*of].info.sandbox.is_some());
    find_lacking(&mut read, &young, pods, node);
    read
}

/// Finds what these pods lack of libcni's results for them; each is a place among those that were read, and among the pods.
fn find_lacking(
    read: &mut [PodObservation],
    young: &[(usize, usize)],
    pods: &[Pod],
    node: &NodeIdentity,
) {
    let whole = young
        .iter()
        .filter_map(|(at, of)| match &read[*at].reading {
            Reading::Whole(state) => Some((*at, (&pods[*of], state))),
            Reading::Torn { .. } | Reading::NoPod | Reading::Failed(_) => None,
        });
    let (places, whole): (Vec<usize>, Vec<(&Pod, &NetState)>) = whole.unzip();
    if places.is_empty() {
        return;
    }
    let Ok(cache) = cni_cache::read(Path::new(CNI_CACHE)) else {
        return;
    };
    let lacking = cache.lacking(node, &whole);
    for (at, lacks) in places.into_iter().zip(lacking) {
        read[at].lacks = lacks;
    }
}

/// Which of these namespaces belong to no pod.
fn private_among(
    pods: &[Pod],
    observed: &[ObservedPod],
    archive: &Archive,
    node: &NodeIdentity,
    answer: Option<&RuntimeAnswer>,
) -> Vec<bool> {
    let pods = pods.iter().zip(observed).map(|(pod, observed)| {
        let read = observed.as_ref().ok();
        let is_torn = read.is_some_and(|(_, torn)| torn.is_some());
        let good = archive.good(node, &pod.identity, &pod.info);
        let is_damaged = matches!(archive.get(&pod.info.id), Some(Err(_)));
        let is_bare = private::may_be(pod, read.map(|(state, _)| state))
            && (!is_torn || pod.netns.is_foreign)
            && good.is_none()
            && !is_damaged;
        (pod, is_bare)
    });
    private::among(pods, &[], answer)
}

//! Which running pods have their network, and which links of the host under them do not work.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::inventory::Inventory;
use crate::inventory::observe::Host;
use crate::kernel::link;
use crate::matching::Selection;
use crate::model::next::{LostPod, LostPods};
use crate::model::{IfName, LinkFault, Loss, NetState, Problem, StackLink};
use crate::plan::{HostLinks, PodVerdict};
use crate::records::fallback::FallbackRequest;
use crate::records::rejected::Reason;
use crate::records::stored::load_in_part;
use crate::records::survey::{Finding, Surveyed, Unmatched, survey};
use crate::refusal::Refusal;
use crate::situation::{Comparison, Depth, Situation, lost_of_host};
use crate::store::Store;

/// The network of the running pods.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PodNetworks {
    /// Running pods.
    pub pods: usize,
    /// Running pods that have lost nothing of what carries their network.
    pub complete: usize,
    /// Running pods that have lost it, or have no interface and no checkpoint.
    pub lost: usize,
    /// Running pods that reach nothing, and of which no good checkpoint shows that they ever did.
    pub cut_off: usize,
    /// Running pods that could not be compared with a checkpoint.
    pub unknown: usize,
    /// Devices of the host and links under the pods that do not work, without those on such a link.
    pub links: Vec<FaultyLink>,
    /// What the host has lost of its own.
    #[serde(serialize_with = "in_words")]
    pub host: Option<Loss>,
    /// The pods that have lost it.
    #[serde(rename = "lost_pods", serialize_with = "each")]
    pub which: LostPods,
}

fn each<S: Serializer>(lost: &LostPods, to: S) -> Result<S::Ok, S::Error> {
    lost.pods.serialize(to)
}

#[allow(clippy::ref_option, reason = "serde calls it")]
fn in_words<S: Serializer>(loss: &Option<Loss>, to: S) -> Result<S::Ok, S::Error> {
    let words = |loss: &Loss| {
        let what = loss.what.word().to_string();
        BTreeMap::from([("link", loss.link.clone()), ("what", what)])
    };
    loss.as_ref().map(words).serialize(to)
}

/// A link of the host that worked when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultyLink {
    /// Its recorded name.
    pub name: IfName,
    /// What is wrong with it now.
    pub state: LinkFault,
    /// Its recorded driver, where it is a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// The running pods that have lost their network. The kernel and what is stored show that without the runtimes, which may have
/// stopped with kubelet.
pub(crate) fn lost_pods(store: &Store) -> Result<LostPods, Refusal> {
    let selection = Selection::everything();
    let stored = load_in_part(store, &selection)?;
    let inventory = Inventory::open(&selection)?;
    let running = inventory.pods.len();
    let surveyed = survey(inventory, stored, &selection, store, FallbackRequest::ALL)?;
    let mut seen = Situation::of(surveyed, Depth::Loss)?;
    Ok(PodNetworks::of(&mut seen, running).0.which)
}

impl PodNetworks {
    /// By a look of [`Depth::Loss`]. `running` are the namespaces that were entered, of pods and others. Returns also why pods are unknown.
    pub(crate) fn of(seen: &mut Situation, running: usize) -> (Self, Vec<Problem>) {
        let Situation { surveyed, compared } = seen;
        surveyed.confirm_cut_off();
        let mut problems = Vec::new();
        let mut all = Vec::new();
        for (matched, compared) in surveyed.matched.iter().zip(&compared.pods) {
            all.push(match &compared.verdict {
                PodVerdict::Lost(_) => NetworkState::Lost,
                PodVerdict::InSync | PodVerdict::Drifted => NetworkState::Complete,
                PodVerdict::CutOff { what, .. } => {
                    problems.push(what.problem().of(&matched.info.id));
                    NetworkState::CutOff
                }
                PodVerdict::Unknown(problem) => {
                    problems.push(problem.clone().of(&matched.info.id));
                    NetworkState::Unknown
                }
            });
        }
        let unmatched = without_record(surveyed);
        // A namespace to which several records lead is not among the unmatched ones.
        let private = surveyed.unmatched.len() - unmatched.len();
        let entered = running.saturating_sub(private);
        let bare = unmatched
            .iter()
            .filter(|(state, _)| *state == NetworkState::Lost);
        let mut lost = lost_pods_of(surveyed, compared);
        let with_record = lost.len();
        lost.extend(bare.map(|(_, one)| LostPod {
            info: one.pod.info.clone(),
            loss: None,
        }));
        problems.extend(surveyed.cut_off());
        all.extend(unmatched.into_iter().map(|(state, _)| state));
        all.resize(all.len().max(entered), NetworkState::Unknown);
        let closed = surveyed.rejected.iter();
        let closed = closed.filter(|one| matches!(one.reason, Reason::NetnsClosed));
        all.extend(closed.map(|_| NetworkState::Unknown));
        let count = |wanted| all.iter().filter(|one| **one == wanted).count();
        let networks = Self {
            pods: all.len(),
            complete: count(NetworkState::Complete),
            lost: count(NetworkState::Lost),
            cut_off: count(NetworkState::CutOff),
            unknown: count(NetworkState::Unknown),
            links: faulty_links(surveyed, &compared.links),
            host: lost_of_host(surveyed),
            which: LostPods {
                without_checkpoint: lost.len() - with_record,
                pods: lost,
                unknown: count(NetworkState::Unknown),
            },
        };
        if networks.unknown > 0 {
            problems.extend(surveyed.doubts().map(Problem::demoted));
        }
        (networks, problems)
    }
}

/// The pods without a record. One that was rebuilt has a record about the former pod of its name.
fn without_record(surveyed: &Surveyed) -> Vec<(NetworkState, &Unmatched)> {
    let rejected = surveyed.rejected.iter();
    let gone: Vec<_> = rejected.filter(|one| surveyed.is_gone(one)).collect();
    let is_rebuilt = |one: &Unmatched| {
        let mut gone = gone.iter();
        gone.any(|then| then.pod.info.id == one.pod.info.id)
    };
    let unmatched = surveyed.unmatched.iter();
    let pods = unmatched.filter(|one| one.finding != Finding::Private);
    pods.map(|one| (NetworkState::of(one, is_rebuilt(one)), one))
        .collect()
}

/// The pods with a record that have lost their network.
fn lost_pods_of(surveyed: &Surveyed, compared: &Comparison) -> Vec<LostPod> {
    let both = surveyed.matched.iter().zip(&compared.pods);
    let lost = both.filter_map(|(matched, compared)| match &compared.verdict {
        PodVerdict::Lost(loss) => Some(LostPod {
            info: matched.info.clone(),
            loss: Some(loss.clone()),
        }),
        _ => None,
    });
    lost.collect()
}

/// The network of a running pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkState {
    Complete,
    Lost,
    CutOff,
    Unknown,
}

impl NetworkState {
    /// That of a pod without a record; of one that was rebuilt, the record is about the former pod of its name.
    fn of(one: &Unmatched, is_rebuilt: bool) -> Self {
        match one.finding {
            Finding::Bare => Self::Lost,
            Finding::CutOff(_) => Self::CutOff,
            _ if one.state.links.is_empty() => Self::Unknown,
            // The record of one that has lost everything cannot be read.
            Finding::Nothing if one.has_record && one.is_bare() && !is_rebuilt => Self::Lost,
            Finding::Nothing | Finding::HasInterfaces if one.has_record && !is_rebuilt => {
                Self::Unknown
            }
            Finding::Nothing | Finding::Private | Finding::HasInterfaces => Self::Complete,
        }
    }
}

/// The recorded devices and links under the pods that do not work; of those on each other, the lowest. A device under no pod counts
/// if it had carrier.
fn faulty_links(surveyed: &mut Surveyed, links: &HostLinks) -> Vec<FaultyLink> {
    let Surveyed {
        host,
        baseline,
        matched,
        ..
    } = surveyed;
    let extensions = matched
        .iter()
        .filter_map(|one| one.checkpoint.netfix.as_ref());
    let stack = extensions.flat_map(|extension| &extension.stack);
    let under: BTreeMap<&IfName, &StackLink> = stack.map(|link| (&link.name, link)).collect();
    let mut faults = BTreeMap::new();
    let devices = baseline.devices.iter();
    let working = devices.filter(|name| {
        let then = baseline.state.link(name);
        then.is_some_and(|link| link.flags.up && link.flags.carrier)
    });
    let names: BTreeSet<&IfName> = under.keys().copied().chain(working).collect();
    for name in names {
        if let Some(fault) = fault(name, &links.name_now(name), &baseline.state, host) {
            faults.insert((*name).clone(), fault);
        }
    }
    let is_lowest = |name: &IfName| {
        let over = under.get(name).map_or(&[][..], |link| &link.over);
        !over.iter().any(|lower| faults.contains_key(lower))
    };
    let lowest = faults.iter().filter(|(name, _)| is_lowest(name));
    let lowest = lowest.map(|(name, state)| FaultyLink {
        name: name.clone(),
        state: *state,
        driver: driver(name, &baseline.state),
    });
    lowest.collect()
}

/// The recorded driver of a device.
fn driver(name: &IfName, recorded: &NetState) -> Option<String> {
    let hardware = recorded.link(name)?.hardware.as_ref()?;
    hardware.driver.clone()
}

/// What is wrong with a link that is recorded as `then` and is `now`.
fn fault(then: &IfName, now: &IfName, recorded: &NetState, host: &mut Host) -> Option<LinkFault> {
    let Some(link) = host.state.link(now) else {
        return Some(LinkFault::Missing);
    };
    let was_up = recorded.link(then).is_some_and(|link| link.flags.up);
    match (link.flags.up, link.flags.carrier) {
        _ if !was_up => None,
        (false, _) => Some(LinkFault::Down),
        (true, true) => None,
        (true, false) => {
            let index = link.index;
            let is_coming = link::is_coming_up(&mut host.socket, index).unwrap_or_default();
            (!is_coming).then_some(LinkFault::NoCarrier)
        }
    }
}

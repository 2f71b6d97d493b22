//! What a namespace has lost since its good record, and what only changed.
//!
//! Lost is what carried its network and is not there any more: a whole link, its being up, all addresses of a family, the
//! default route, all routes with a gateway; and any way that packets had by the kernel's lookups. What a daemon withdraws, what comes
//! without netfix and what has moved is no loss.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::checkpoint::Extension;
use crate::model::net::route::KIND_UNICAST;
use crate::model::{
    Address, ChainLink, Hardware, IfName, Indexed, IpFamily, Link, LinkGraph, LinkKind, Loss,
    LossCause, NetState, Parent, Route, StackLink, stack,
};
use crate::plan::daemons;

/// What a namespace has lost since its good record.
#[must_use]
pub fn loss(good: &NetState, now: &NetState) -> Option<Loss> {
    let kept = daemons::without_withdrawn(good, now);
    let both = Since::new(good, &kept, now);
    let good = &*kept;
    let mut links = good.links.iter();
    let loss = links
        .find_map(|link| Some(Loss::new(link, both.of_link(link)?)))
        .or_else(|| {
            let (link, what) = both.default_route()?;
            Some(Loss::new(link, what))
        })
        .or_else(|| both.gateway_routes())
        .or_else(|| {
            let (dev, what) = both.lost_way(|_| true)?;
            Some(Loss::new(good.link(&dev)?, what))
        })?;
    // Another program made a link again, and did not complete it.
    let is_another = |link: &&Link| {
        let now = both.now.link(&link.name);
        now.is_some_and(|now| is_another(link, now))
    };
    let replaced = good.links_but_loopback().find(is_another);
    let replaced = replaced.filter(|_| !matches!(loss.what, LossCause::LinkGone));
    Some(replaced.map_or(loss, |link| Loss::new(link, LossCause::LinkReplaced)))
}

/// What a pod has lost since its good record, inside it or of the host's links under it.
#[must_use]
pub fn pod_loss(
    good: &NetState,
    (stack, chain): UnderPod<'_>,
    now: &NetState,
    host: &NetState,
) -> Option<Loss> {
    loss(good, now)
        .or_else(|| uplink_loss(good, stack, host))
        .or_else(|| chain_loss(chain, host))
}

/// The link of the host that carried a pod's packets, of the `chain` of its good record, and does not any more.
#[must_use]
pub fn chain_loss(chain: &[ChainLink], host: &NetState) -> Option<Loss> {
    chain.iter().find_map(|then| {
        let (link, what) = (then.name.to_string(), then.fault(host)?);
        Some(Loss { link, what })
    })
}

/// The host's links under a pod, by its good record: all of them, and those that carried its packets.
pub type UnderPod<'a> = (&'a [StackLink], &'a [ChainLink]);

impl Extension {
    /// The host's links under the pod's: all, and those that carried its packets.
    pub(crate) fn under(&self) -> UnderPod<'_> {
        (&self.stack, &self.chain)
    }
}

/// What a pod has lost of the host's links under it, the `stack` of its good record: a bridge that its packets pass has no uplink any
/// more. Its own links are unharmed.
#[must_use]
pub fn uplink_loss(pod: &NetState, stack: &[StackLink], host: &NetState) -> Option<Loss> {
    stack::lost_uplink(stack, host)?;
    let is_on_host = |link: &&Link| {
        let ends = [&link.parent, &link.peer];
        ends.iter().any(|end| matches!(end, Some(Parent::Host(_))))
    };
    let link = pod.links.iter().find(is_on_host)?;
    Some(Loss::new(link, LossCause::Uplink))
}

/// What the host has lost since its good record: a link with addresses, or these, if it is a device, carries pods (`under`) or is on
/// top of such a link; what went with a device that was made anew; or the default route. Other links belong to other programs.
#[must_use]
pub fn host_loss(
    good: &NetState,
    now: &NetState,
    under: BTreeSet<&IfName>,
) -> Option<(IfName, LossCause)> {
    let kept = daemons::without_withdrawn(good, now);
    let both = Since::new(good, &kept, now);
    let good = &*kept;
    let remade = remade(good, now, under.iter().copied());
    let graph = LinkGraph::new(&good.links);
    let mut own = graph.devices();
    own.extend(under.into_iter().cloned());
    let carrying = graph.all_above(&own);
    let of_links = good
        .links_but_loopback()
        .filter(|link| carrying.contains(&link.name));
    // A device that is missing may have been moved.
    let is_there = |name: &IfName| {
        let link = good.link(name);
        link.is_some_and(|link| now.present(&link.name, link.hardware.as_ref()).is_some())
    };
    let with_device = graph.changed_with(remade.iter().filter(|name| is_there(name)));
    let mut lost = of_links.filter_map(|link| {
        let what = both.of_host_link(link, with_device.contains(&link.name))?;
        Some((link, what))
    });
    let lost = lost.next().or_else(|| both.default_route());
    let lost = lost.map(|(link, what)| (link.name.clone(), what));
    lost.or_else(|| both.lost_way(|dev| carrying.contains(dev)))
        .or_else(|| below_ways(&graph, now, &carrying, |_, now| !now.flags.up))
}

/// What carried the packets of the host below the links that they still go out of, and has no carrier any more.
#[must_use]
pub fn silent_below_host(good: &NetState, now: &NetState) -> Option<IfName> {
    let is_silent = |then: &Link, now: &Link| then.flags.carrier && !now.flags.carrier;
    let graph = LinkGraph::new(&good.links);
    let carrying = graph.all_above(&graph.devices());
    // A link that is down takes the carrier of those above it: that is the loss.
    if below_ways(&graph, now, &carrying, |_, now| !now.flags.up).is_some() {
        return None;
    }
    let lost = below_ways(&graph, now, &carrying, is_silent);
    lost.map(|(name, _)| name)
}

/// What carried the packets of the host out of links that they still go out of, of these `carrying` ones, and does not any more.
fn below_ways(
    good: &LinkGraph<'_>,
    now: &NetState,
    carrying: &BTreeSet<IfName>,
    is_broken: fn(&Link, &Link) -> bool,
) -> Option<(IfName, LossCause)> {
    let out = now.ways.iter().filter_map(|way| Some(way.exit.hop()?.0));
    let out: BTreeSet<&IfName> = out.filter(|dev| carrying.contains(*dev)).collect();
    let mut out = out.into_iter().filter_map(|dev| good.link(dev));
    out.find_map(|link| {
        let broken = now
            .present(&link.name, link.hardware.as_ref())
            .filter(|now| is_broken(link, now));
        let own = broken.map(|now| (now.name.clone(), LossCause::LinkDown));
        own.or_else(|| fault_below(good, link, (now, is_broken), 0))
    })
}

/// Why nothing carries the packets of a link of the host any more, which is there: what is below it, by the good state.
fn fault_below(
    good: &LinkGraph<'_>,
    link: &Link,
    (now, is_broken): (&NetState, fn(&Link, &Link) -> bool),
    depth: usize,
) -> Option<(IfName, LossCause)> {
    /// More than the kernel nests means a loop.
    const DEEPEST: usize = 8;
    let lower = good.carriers(link);
    let lower = lower.into_iter().filter_map(|name| good.link(name));
    let faults = lower.map(|then| {
        let is_port = |lower: &Link| lower.master.as_ref() == Some(&link.name);
        let what = match now.present(&then.name, then.hardware.as_ref()) {
            None => LossCause::LinkGone,
            Some(now) if then.flags.up && is_broken(then, now) => LossCause::LinkDown,
            Some(now) if is_port(then) && !is_port(now) => LossCause::NoPort,
            Some(_) if depth < DEEPEST => {
                return fault_below(good, then, (now, is_broken), depth + 1);
            }
            Some(_) => return None,
        };
        Some((then.name.clone(), what))
    });
    faults.collect::<Option<Vec<_>>>()?.into_iter().next()
}

/// The recorded devices of the host, with those `under` pods, that are missing, or were made anew since: their drivers were reloaded.
pub(crate) fn remade<'a>(
    good: &NetState,
    now: &NetState,
    under: impl Iterator<Item = &'a IfName>,
) -> BTreeSet<IfName> {
    let mut devices = LinkGraph::new(&good.links).devices();
    devices.extend(under.cloned());
    devices.retain(|name| {
        let then = good.link(name).filter(|then| !then.kind.can_be_made());
        then.is_some_and(|then| {
            let now = now.present(&then.name, then.hardware.as_ref());
            now.is_none_or(|now| now.index != then.index || then.is_made_anew(now))
        })
    });
    devices
}

/// The recorded devices of the host that have another ifindex now, with their present state.
pub(crate) fn renumbered<'a>(
    good: &'a NetState,
    now: &'a NetState,
) -> impl Iterator<Item = (&'a Link, &'a Link)> {
    let devices = good.links.iter().filter(|link| link.is_device());
    let pairs =
        devices.filter_map(|then| Some((then, now.present(&then.name, then.hardware.as_ref())?)));
    pairs.filter(|(then, now)| then.index != now.index)
}

/// A recorded NIC of the host that is missing, and not among the devices `inside` pods.
#[must_use]
pub fn missing_nic<'a>(
    good: &'a NetState,
    now: &NetState,
    inside: &[Hardware],
) -> Option<&'a IfName> {
    let mut missing = good.links.iter().filter(|link| {
        let known = link.hardware.as_ref().filter(|device| device.is_known());
        let is_inside = |device: &Hardware| inside.iter().any(|one| one.is_same(device));
        known.is_some_and(|device| {
            !is_inside(device) && now.present(&link.name, Some(device)).is_none()
        })
    });
    missing.next().map(|link| &link.name)
}

/// The good state of a namespace, and the present one.
pub(super) struct Since<'a> {
    /// With what daemons withdrew.
    pub(super) whole: &'a NetState,
    pub(super) good: Indexed<'a>,
    pub(super) now: Indexed<'a>,
    /// Two links that have addresses of a family now, where there are as many.
    bearers: [(IpFamily, Vec<&'a IfName>); 2],
}

impl<'a> Since<'a> {
    fn new(whole: &'a NetState, good: &'a NetState, now: &'a NetState) -> Self {
        let (good, now) = (Indexed::new(good), Indexed::new(now));
        let bearers = IpFamily::BOTH.map(|family| {
            let links = now.state.links_but_loopback().map(|link| &link.name);
            let bearing = links.filter(|name| owned(&now, name, family).next().is_some());
            (family, bearing.take(2).collect())
        });
        Self {
            whole,
            good,
            now,
            bearers,
        }
    }

    /// What a link of the good state has lost.
    fn of_link(&self, link: &Link) -> Option<LossCause> {
        match self.now.link(&link.name) {
            None => Some(LossCause::LinkGone),
            Some(now) if link.flags.up && !now.flags.up => Some(LossCause::LinkDown),
            Some(_) if link.kind == LinkKind::Loopback => None,
            Some(_) => self.addresses(link, &link.name),
        }
    }

    /// What a link of the host has lost, which may have another name now. One that had no addresses may go, or go down, unless that
    /// came with the loss of its device.
    fn of_host_link(&self, link: &Link, with_device: bool) -> Option<LossCause> {
        let had = |family: &IpFamily| owned(&self.good, &link.name, *family).next().is_some();
        match self.now.state.present(&link.name, link.hardware.as_ref()) {
            Some(now) if with_device && link.flags.up && !now.flags.up => Some(LossCause::LinkDown),
            Some(now) => self.addresses(link, &now.name),
            None if with_device => Some(LossCause::LinkGone),
            None => IpFamily::BOTH
                .iter()
                .any(had)
                .then_some(LossCause::LinkGone),
        }
    }

    /// The addresses that a link has lost, which has the name `now` in the present state.
    fn addresses(&self, link: &Link, now: &IfName) -> Option<LossCause> {
        let had = |family| owned(&self.good, &link.name, family).next().is_some();
        let has_lost = |family: &IpFamily| {
            let mut then = owned(&self.good, &link.name, *family);
            let moves = then.all(Address::is_of_one_host) && self.is_elsewhere(now, *family);
            had(*family) && owned(&self.now, now, *family).next().is_none() && !moves
        };
        let kept = |family: IpFamily| had(family) && !has_lost(&family);
        let lost = IpFamily::BOTH.into_iter().find(has_lost)?;
        if self.has_moved_ways_of(&link.name, lost) {
            return None;
        }
        Some(if IpFamily::BOTH.into_iter().any(kept) {
            LossCause::FamilyAddresses(lost)
        } else {
            LossCause::Addresses
        })
    }

    /// Whether another link than this one has addresses of the family now.
    fn is_elsewhere(&self, but: &IfName, family: IpFamily) -> bool {
        let mut bearers = self.bearers.iter().filter(|(of, _)| *of == family);
        bearers.any(|(_, links)| links.iter().any(|link| *link != but))
    }

    /// The default route that is lost: the namespace had one of that family, and has none any more.
    fn default_route(&self) -> Option<(&'a Link, LossCause)> {
        IpFamily::BOTH.into_iter().find_map(|family| {
            let is_default = |route: &&Route| route.family() == family && route.is_default();
            let has_moved = |route: &&Route| {
                let is_unicast = route.nature().0 == KIND_UNICAST;
                let is_wide = route.destination().prefix_len() == 0;
                route.family() == family && is_unicast && is_wide
            };
            let then = self.good.state.routes.iter().filter(is_default);
            let mut devs = then.filter(|route| route.is_owned()).flat_map(Route::devs);
            let link = devs.find_map(|dev| self.good.link(dev))?;
            if self.now.state.routes.iter().any(|now| is_default(&now)) {
                return None;
            }
            let new = self.new_destinations(has_moved);
            new.is_empty()
                .then_some((link, LossCause::DefaultRoute(family)))
        })
    }

    /// A link whose routes with a gateway of a family are all gone, and none of which goes another way.
    fn gateway_routes(&self) -> Option<Loss> {
        let ways = |route: &'a Route| {
            let gateways = route.gateways().into_iter();
            gateways.map(|(_, dev)| (dev, route.family()))
        };
        let now: HashSet<_> = self.now.state.routes.iter().flat_map(ways).collect();
        let mut gone: BTreeMap<_, HashSet<IpNet>> = BTreeMap::new();
        for route in self.good.state.routes.iter().filter(|one| one.is_owned()) {
            for way in ways(route).filter(|way| !now.contains(way)) {
                gone.entry(way).or_default().insert(route.destination());
            }
        }
        if gone.is_empty() {
            return None;
        }
        let new = self.new_destinations(|_| true);
        let lost = gone.iter().find(|(_, routes)| routes.is_disjoint(&new));
        let ((dev, family), _) = lost?;
        let link = self.good.link(dev)?;
        Some(Loss::new(link, LossCause::GatewayRoutes(*family)))
    }

    /// The destinations of those of these routes that go another way than in the good state.
    fn new_destinations(&self, of: impl Fn(&&Route) -> bool) -> HashSet<IpNet> {
        let place = |route: &Route| (route.destination(), route.nature().1);
        let mut good: HashMap<_, Vec<&Route>> = HashMap::new();
        for route in self.good.state.routes.iter().filter(&of) {
            good.entry(place(route)).or_default().push(route);
        }
        let is_new = |now: &&Route| {
            let then = good.get(&place(now)).map_or(&[][..], Vec::as_slice);
            !then.iter().any(|then| {
                let hops = then.hops();
                now.hops().iter().all(|hop| hops.contains(hop))
            })
        };
        let now = self.now.state.routes.iter().filter(of).filter(is_new);
        now.map(Route::destination).collect()
    }
}

/// Whether a link on one of the host's is another device now. A rebuilt one with the same MAC is the same, and so is one whose MAC
/// was changed.
fn is_another(then: &Link, now: &Link) -> bool {
    let has_other_mac = matches!((then.mac, now.mac), (Some(then), Some(now)) if then != now);
    then.is_on_host() && then.index != 0 && then.index != now.index && has_other_mac
}

/// The addresses of a link whose absence is a loss: that of a group is no source of a packet, and a link-local one reaches no other
/// network.
fn owned<'a>(
    state: &'a Indexed<'_>,
    dev: &IfName,
    family: IpFamily,
) -> impl Iterator<Item = &'a Address> {
    let addresses = state.addresses_of(dev).iter().copied();
    let reaches = |ip: IpAddr| {
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        !ip.is_multicast() && !is_link_local
    };
    let addresses = addresses.filter(move |one| one.is_owned() && reaches(one.local));
    addresses.filter(move |one| IpFamily::of(one.local.is_ipv4()) == family)
}

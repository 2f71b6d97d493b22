//! What a namespace has lost since its good record, and what only changed.
//!
//! Lost is what carried its network and is not there any more: a whole link, its being up, all addresses of a family, the
//! default route, all routes with a gateway; and any way that packets had by the kernel's lookups. What a daemon withdraws, what comes
//! without netfix and what has moved is no loss.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::checkpoint::Extension;
use crate::model::net::route::KIND_UNICAST;
use crate::model::{
    Address, AnswerRecord, ChainLink, HostSide, IfName, Indexed, IpFamily, Link, LinkKind, Loss,
    LossCause, NetState, Parent, Route, StackLink, chain, stack,
};
use crate::plan::daemons;

/// What a namespace has lost since its good record, and since neighbours gave it these `answers`.
#[must_use]
pub fn loss(good: &NetState, answers: &[AnswerRecord], now: &NetState) -> Option<Loss> {
    let kept = daemons::without_withdrawn(good, now);
    let both = Since::new(good, answers, &kept, now);
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
            let (dev, what) = both.lost_ways(|_| true).into_iter().next()?;
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
    beside: BesideState<'_>,
    now: &NetState,
    host: &HostSide<'_>,
) -> Option<Loss> {
    loss(good, beside.answers, now)
        .or_else(|| uplink_loss(good, beside, host))
        .or_else(|| chain_loss(beside.chain, host))
}

/// The link of the host that carried a pod's packets, of the `chain` of its good record, and does not any more.
#[must_use]
pub fn chain_loss(chain: &[ChainLink], host: &HostSide<'_>) -> Option<Loss> {
    let (name, what) = chain::broken(chain, host)?;
    let link = name.to_string();
    Some(Loss { link, what })
}

/// What netfix has recorded of a pod beside its own state.
#[derive(Debug, Clone, Copy, Default)]
pub struct BesideState<'a> {
    /// The host's links under it.
    pub stack: &'a [StackLink],
    /// Those of them that carried its packets.
    pub chain: &'a [ChainLink],
    /// What has answered it.
    pub answers: &'a [AnswerRecord],
}

impl Extension {
    /// What is recorded beside the pod's state, with these answers.
    pub(crate) fn beside<'a>(&'a self, answers: &'a [AnswerRecord]) -> BesideState<'a> {
        BesideState {
            stack: &self.stack,
            chain: &self.chain,
            answers,
        }
    }
}

/// What a pod has lost of the host's links under it, by its good record: a bridge that its packets pass has no uplink any
/// more. Its own links are unharmed.
#[must_use]
pub fn uplink_loss(pod: &NetState, beside: BesideState<'_>, host: &HostSide<'_>) -> Option<Loss> {
    stack::lost_uplink(beside.stack, beside.answers, host)?;
    let is_on_host = |link: &&Link| {
        let ends = [&link.parent, &link.peer];
        ends.iter().any(|end| matches!(end, Some(Parent::Host(_))))
    };
    let link = pod.links.iter().find(is_on_host)?;
    Some(Loss::new(link, LossCause::Uplink))
}

/// The good state of a namespace, and the present one.
pub(super) struct Since<'a> {
    /// What has answered it.
    pub(super) answers: &'a [AnswerRecord],
    /// With what daemons withdrew.
    pub(super) whole: &'a NetState,
    pub(super) good: Indexed<'a>,
    pub(super) now: Indexed<'a>,
    /// Two links that have addresses of a family now, where there are as many.
    bearers: [(IpFamily, Vec<&'a IfName>); 2],
}

impl<'a> Since<'a> {
    pub(super) fn new(
        whole: &'a NetState,
        answers: &'a [AnswerRecord],
        good: &'a NetState,
        now: &'a NetState,
    ) -> Self {
        let (good, now) = (Indexed::new(good), Indexed::new(now));
        let bearers = IpFamily::BOTH.map(|family| {
            let links = now.state.links_but_loopback().map(|link| &link.name);
            let bearing = links.filter(|name| owned(&now, name, family).next().is_some());
            (family, bearing.take(2).collect())
        });
        Self {
            answers,
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

    /// The addresses that a link has lost, which has the name `now` in the present state.
    pub(super) fn addresses(&self, link: &Link, now: &IfName) -> Option<LossCause> {
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
    pub(super) fn default_route(&self) -> Option<(&'a Link, LossCause)> {
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
pub(super) fn owned<'a>(
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

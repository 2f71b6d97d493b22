//! Where the kernel sends the packets of a namespace to a gateway and beyond.

use std::net::IpAddr;

use ipnet::IpNet;

use super::question::{Lack, LackKind, Question, is_source};
use super::rules::refuses;
use crate::inventory::observe::Host;
use crate::kernel::dump;
use crate::kernel::route::lookup::{Found, Selector, is_refusal, lookup};
use crate::kernel::{Errno, Error, Socket};
use crate::model::problem::GatewayCause;
use crate::model::{Mac, NetState, Parent};

/// How many addresses of a pod's interface are looked up on the host.
const MOST_BACK: usize = 8;

/// How packets get to a gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub selector: Selector,
    /// The link on which the gateway is a neighbour; `None` where packets to it go over another gateway.
    pub index: Option<u32>,
}

/// Why no packet of the namespace gets to a gateway, or beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// It has no address to send from.
    NoAddress(Lack),
    /// The kernel has no route, or one that refuses packets.
    NoRoute {
        to: Destination,
        errno: Errno,
        /// The priority of the rule that refuses them.
        rule: Option<u32>,
    },
    /// The kernel refuses to send.
    Refused(Errno),
    /// The interface is down.
    LinkDown,
    /// The host is the gateway, and has no route to this address of the pod, or another one.
    NoWayBack {
        address: IpAddr,
        errno: Option<Errno>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    Gateway,
    Behind(IpNet, IpAddr),
}

/// The answer of the kernel, or what it lacks.
type Searched = Result<Way, Obstacle>;

/// Finds the way to a gateway by which packets get beyond it too.
pub(super) fn find(socket: &mut Socket, question: &Question) -> Result<Searched, Error> {
    let path = &question.path;
    if !question.is_up {
        return Ok(Err(Obstacle::LinkDown));
    }
    if let Some(lack) = path.lack.filter(|_| !path.is_waiting()) {
        return Ok(Err(Obstacle::NoAddress(lack)));
    }
    let (mut failure, mut other_way) = (None, None);
    for (at, selector) in path.selectors.iter().enumerate() {
        if socket.is_late() {
            return Err(Error::Late);
        }
        match try_one(socket, question, *selector, at == 0)? {
            Ok(way) if way.index == question.index => return Ok(Ok(way)),
            Ok(way) => other_way = other_way.or(Some(way)),
            // A socket that is not bound sends like this.
            Err(obstacle) if path.is_common && at == 0 => return Ok(Err(obstacle)),
            Err(obstacle) => failure = failure.or(Some(obstacle)),
        }
    }
    Ok(match (other_way, failure) {
        (Some(way), _) => Ok(way),
        // Packets of a source or mark that was not looked up may get through.
        (None, Some(_)) if path.is_decisive && path.has_more => return Err(Error::Late),
        (None, Some(obstacle)) if path.is_decisive => Err(obstacle),
        _ => Ok(Way {
            selector: Selector::default(),
            index: question.index,
        }),
    })
}

fn try_one(
    socket: &mut Socket,
    question: &Question,
    selector: Selector,
    is_first: bool,
) -> Result<Searched, Error> {
    let path = &question.path;
    let mut way = Way {
        selector,
        index: question.index,
    };
    if !path.is_of_other_family && !question.is_any_router() {
        let found = match look(socket, question.gateway, selector)? {
            Ok(found) => found,
            Err(errno) => return Ok(Err(Obstacle::missing(Destination::Gateway, errno))),
        };
        let is_neighbour = found.gateway.is_none_or(|via| via == question.gateway);
        way.index = found.index.filter(|_| is_neighbour);
    }
    // A sender that is bound needs no route of all packets.
    if path.is_common && !is_first {
        return Ok(Ok(way));
    }
    for (net, target) in &path.behind {
        let found = match look(socket, *target, selector)? {
            Ok(found) => found,
            Err(errno) => {
                let awaited = path.lack.filter(|lack| lack.kind == LackKind::Awaited);
                let missing = Obstacle::missing(Destination::Behind(*net, *target), errno);
                return Ok(Err(awaited.map_or(missing, Obstacle::NoAddress)));
            }
        };
        if let Some(lack) = path.lack.filter(|_| has_no_source(found)) {
            return Ok(Err(Obstacle::NoAddress(lack)));
        }
    }
    Ok(Ok(way))
}

fn has_no_source(found: Found) -> bool {
    found
        .source
        .is_none_or(|source| matches!(source, IpAddr::V6(ip) if ip.is_unicast_link_local()))
}

/// The way of a packet. A program that connects looks it up once more with the address that IPv4 has chosen.
fn look(
    socket: &mut Socket,
    to: IpAddr,
    selector: Selector,
) -> Result<Result<Found, Errno>, Error> {
    let found = lookup(socket, to, selector)?;
    let source = found.ok().and_then(|found| found.source);
    let found = if to.is_ipv4() && selector == Selector::default() && source.is_some() {
        lookup(socket, to, Selector { source, ..selector })?
    } else {
        found
    };
    // What else fails shows nothing about routes.
    Ok(found.or_else(|errno| {
        if is_refusal(errno) {
            Err(errno)
        } else {
            Ok(Found::default())
        }
    }))
}

/// Adds to an obstacle the rule that is one; the calling thread must be inside the socket's namespace.
pub(super) fn with_rule(
    socket: &mut Socket,
    question: &Question,
    obstacle: Obstacle,
) -> Result<Obstacle, Error> {
    let Obstacle::NoRoute { to, errno, rule: _ } = obstacle else {
        return Ok(obstacle);
    };
    let target = match to {
        Destination::Gateway => question.gateway,
        Destination::Behind(_, target) => target,
    };
    let rules = dump::rules(socket, &mut Vec::new())?;
    let rule = rules.iter().find(|rule| refuses(rule, target, errno));
    let rule = rule.map(|rule| rule.priority);
    Ok(Obstacle::NoRoute { to, errno, rule })
}

/// What is in the way of the answers to a pod with this state, where the host's end of its pair is the gateway, by the MAC that
/// answered: the host must send the pod's packets there.
pub(super) fn back(
    host: &mut Host,
    state: &NetState,
    question: &Question,
    lladdr: Mac,
) -> Option<Obstacle> {
    let link = state.link(&question.dev)?;
    let Some(Parent::Host(end)) = &link.peer else {
        return None;
    };
    let end = host.state.link(end)?;
    // Another program sends the packets of a port.
    if end.mac != Some(lladdr) || end.master.is_some() {
        return None;
    }
    let (end, family) = (end.index, question.gateway.is_ipv4());
    let addresses = state.addresses.iter();
    let own = addresses.filter(|one| one.dev == question.dev && one.local.is_ipv4() == family);
    let own = own.filter(|one| is_source(one)).take(MOST_BACK);
    own.map(|one| one.local).find_map(|address| {
        let found = lookup(&mut host.socket, address, Selector::default());
        let errno = match found.ok()? {
            Err(errno) => Some(errno),
            Ok(found) if found.index == Some(end) => return None,
            // A program of the host takes the packets of all pods there, as Cilium's does.
            Ok(Found {
                gateway: Some(via), ..
            }) if has_address(&host.state, via) => return None,
            Ok(_) => None,
        };
        Some(Obstacle::NoWayBack { address, errno })
    })
}

fn has_address(state: &NetState, address: IpAddr) -> bool {
    state.addresses.iter().any(|one| one.local == address)
}

impl Obstacle {
    fn missing(to: Destination, errno: Errno) -> Self {
        Self::NoRoute {
            to,
            errno,
            rule: None,
        }
    }

    /// What is wrong with a gateway.
    pub(super) fn cause(self, question: &Question) -> GatewayCause {
        match self {
            Self::NoAddress(Lack { address, kind }) => match kind {
                LackKind::Missing => GatewayCause::NoAddress { address },
                LackKind::Duplicate => GatewayCause::AddressDuplicate { address },
                LackKind::Tentative => GatewayCause::AddressTentative { address },
                LackKind::Awaited => GatewayCause::NotAdvertised { address },
            },
            Self::NoRoute { to, errno, rule } => {
                let to = match to {
                    Destination::Gateway => question.gateway.to_string(),
                    Destination::Behind(net, _) => net.to_string(),
                };
                let error = format!("{errno:?}");
                match (rule, errno) {
                    (Some(rule), _) => GatewayCause::RuleRefuses { to, rule, error },
                    (None, Errno::ENETUNREACH) => GatewayCause::NoRoute { to, error },
                    (None, _) => GatewayCause::RouteRefuses { to, error },
                }
            }
            Self::Refused(errno) => GatewayCause::SendRefused {
                error: Error::from(errno).to_string(),
            },
            Self::LinkDown => GatewayCause::InterfaceDown,
            Self::NoWayBack { address, errno } => {
                let error = errno.map(|errno| format!("{errno:?}"));
                GatewayCause::NoWayBack { address, error }
            }
        }
    }
}

//! What programs have on links and lose with them: which program it is, and whether it still counts on what is gone.

pub(crate) mod connections;
mod holders;
pub(crate) mod loaders;
pub(crate) mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::inventory::observe::{Host, Pod};
use crate::inventory::sockets::holders::SocketPlace;
use crate::inventory::{cgroup, procfs};
use crate::model::net::link::socket::{LinkSocket, Program, SocketKind};
use crate::model::problem::{Object, SocketCause};
use crate::model::{IfName, PodId, Problem};

/// A namespace, and what programs may have in it.
#[derive(Debug)]
pub(crate) struct Suspects {
    /// `None` for the host.
    pod: Option<PodId>,
    inode: u64,
    cookie: Option<u64>,
    /// What is there, on links that can be lost.
    pub at_risk: Vec<LinkSocket>,
    /// What was there, on links that are there again.
    pub gone: Vec<LinkSocket>,
}

/// What programs of a namespace have and have lost.
#[derive(Debug, Default)]
pub(crate) struct SocketFindings {
    pub problems: Vec<Problem>,
    /// What a program lost and still counts on.
    pub lost: Vec<LinkSocket>,
}

impl Suspects {
    pub(crate) fn of_pod(pod: &Pod, at_risk: Vec<LinkSocket>, gone: Vec<LinkSocket>) -> Self {
        Self {
            pod: Some(pod.info.id.clone()),
            inode: pod.netns.key().1,
            cookie: pod.identity.cookie,
            at_risk,
            gone,
        }
    }

    pub(crate) fn of_host(host: &Host, at_risk: Vec<LinkSocket>, gone: Vec<LinkSocket>) -> Self {
        Self {
            pod: None,
            inode: host.netns.key().1,
            cookie: host.socket.netns_cookie().ok().flatten(),
            at_risk,
            gone,
        }
    }

    /// Those at risk, then those that are gone.
    fn all(&self) -> impl Iterator<Item = &LinkSocket> {
        self.at_risk.iter().chain(&self.gone)
    }
}

/// Finds the programs: a note for what is at risk, a warning for what a program has lost. One finding for each namespace.
pub(crate) fn find(all: &[Suspects]) -> Vec<SocketFindings> {
    let held = holders::find(all);
    let found = all.iter().enumerate().map(|(namespace, one)| {
        let programs = |first: usize, sockets: &[LinkSocket]| {
            let numbered = sockets.iter().cloned().enumerate();
            let held = numbered.filter_map(|(at, socket)| {
                let place = SocketPlace {
                    namespace,
                    socket: first + at,
                };
                Some((socket, held.get(&place)?.clone()))
            });
            held.collect::<Vec<_>>()
        };
        let at_risk = programs(0, &one.at_risk);
        let lost = programs(one.at_risk.len(), &one.gone);
        let of = |problem: Problem| match &one.pod {
            Some(pod) => problem.of(pod),
            None => problem,
        };
        let ends = grouped(&at_risk)
            .into_iter()
            .map(|(dev, sort)| of(sort.ends().info(object(dev))));
        let ended = grouped(&lost)
            .into_iter()
            .map(|(dev, sort)| of(sort.ended().warning(object(dev))));
        SocketFindings {
            problems: ended.chain(ends).collect(),
            // What cannot be asked is told as long as nothing newer is recorded.
            lost: lost
                .into_iter()
                .filter(|(_, programs)| !programs.is_empty())
                .map(|(socket, _)| socket)
                .collect(),
        }
    });
    found.collect()
}

/// A program that runs.
pub(super) fn program(pid: u32) -> Option<Program> {
    let unit = cgroup::units(pid).pop();
    Some(Program {
        pid,
        name: procfs::comm(pid).ok()?,
        unit: unit.filter(|unit| unit.ends_with(".service")),
    })
}

/// What of one kind programs have on one link.
#[derive(Debug)]
struct Sort<'a> {
    kind: &'a SocketKind,
    groups: BTreeSet<IpAddr>,
    programs: BTreeSet<&'a Program>,
}

/// One for each link and kind.
fn grouped(held: &[(LinkSocket, Vec<Program>)]) -> Vec<(Option<&IfName>, Sort<'_>)> {
    let mut sorts: BTreeMap<_, Sort<'_>> = BTreeMap::new();
    for (LinkSocket { dev, kind }, programs) in held {
        let sort = sorts.entry((dev.as_ref(), kind.place())).or_insert(Sort {
            kind,
            groups: BTreeSet::new(),
            programs: BTreeSet::new(),
        });
        sort.groups.extend(kind.group());
        sort.programs.extend(programs);
    }
    let sorts = sorts.into_iter();
    sorts.map(|((dev, _), sort)| (dev, sort)).collect()
}

fn object(dev: Option<&IfName>) -> Object {
    dev.map_or_else(|| Object::from("packet socket"), Object::from)
}

impl Sort<'_> {
    fn parts(&self) -> (Vec<IpAddr>, Vec<Program>) {
        let groups = self.groups.iter().copied();
        let programs = self.programs.iter().copied();
        (groups.collect(), programs.cloned().collect())
    }

    /// Before a loss.
    fn ends(&self) -> SocketCause {
        let (groups, programs) = self.parts();
        match self.kind {
            SocketKind::Group { .. } => SocketCause::GroupsEnd { groups, programs },
            SocketKind::Anycast { .. } => SocketCause::AnycastEnds { groups, programs },
            SocketKind::Packet { .. } => SocketCause::PacketEnds { programs },
            SocketKind::Routing { .. } => SocketCause::RoutingEnds { programs },
            SocketKind::Tap { .. } => SocketCause::TapEnds { programs },
        }
    }

    /// After it.
    fn ended(&self) -> SocketCause {
        let (groups, programs) = self.parts();
        match self.kind {
            SocketKind::Group { .. } => SocketCause::GroupsEnded { groups, programs },
            SocketKind::Anycast { .. } => SocketCause::AnycastEnded { groups, programs },
            SocketKind::Packet { .. } => SocketCause::PacketEnded { programs },
            SocketKind::Routing { .. } => SocketCause::RoutingEnded { programs },
            SocketKind::Tap { .. } => SocketCause::TapEnded { programs },
        }
    }
}

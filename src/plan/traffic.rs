//! The steps for the qdiscs, classes and filters of a link. They are added and changed, and never deleted.

use std::collections::{HashMap, HashSet};

use crate::model::net::traffic::{ObjectKind, TrafficObject};
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::text::escape;
use crate::model::{IfName, Indexed, Link, Problem};
use crate::plan::link::queues;
use crate::plan::{NetlinkStep, Plan};

/// The steps for what is missing or differs, each object after those that it needs.
pub(crate) fn steps(wanted: &Link, now: &Link, present: &Indexed<'_>, plan: &mut Plan) {
    let there: HashMap<_, _> = now
        .traffic
        .objects
        .iter()
        .map(|object| (object.key(), object))
        .collect();
    // Handles of what another object has the place of: nothing below them can be restored.
    let mut blocked: HashSet<u32> = HashSet::new();
    let mut gone = Vec::new();
    for object in &wanted.traffic.objects {
        if blocked.contains(&object.parent) || blocked.contains(&object.above()) {
            blocked.extend(Some(object.handle).filter(|_| object.object != ObjectKind::Filter));
            continue;
        }
        let same = there.get(&object.key()).copied();
        if same.is_some_and(|now| object.is_as(now)) {
            continue;
        }
        if queues::is_qdisc_of_missing(object, wanted, now) {
            blocked.insert(object.handle);
            gone.push(object);
        } else if let Some(other) = in_its_place(object, same, &now.traffic.objects) {
            blocked.insert(object.handle);
            let (now_is, then) = (other.to_string(), object.to_string());
            let cause = ConflictCause::OtherTraffic { now: now_is, then };
            plan.problems.push(cause.error(&wanted.name));
        } else if let Some(problem) = moved_link(object, wanted, present) {
            plan.problems.push(problem);
        } else {
            let (dev, mut object) = (now.name.clone(), Box::new(object.clone()));
            plan.push(match same {
                Some(same) => {
                    object.table = same.table;
                    NetlinkStep::ChangeTraffic { dev, object }
                }
                None if is_broken(&object, now) => {
                    let filter = object;
                    NetlinkStep::ChangeActions { dev, filter }
                }
                None => NetlinkStep::AddTraffic { dev, object },
            });
        }
    }
    let number = now.queues.map(|queues| queues.tx.into());
    queues::report(&wanted.name, number, &gone, plan);
}

/// The steps for the filters of a link that stays which sent packets to one of the links that `were_lost`.
pub(crate) fn redirects(
    wanted: &Link,
    now: &Link,
    were_lost: impl Fn(&IfName) -> bool,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let objects = wanted.traffic.objects.iter();
    let broken = objects.filter(|object| {
        let mut targets = object.links.iter();
        targets.any(|target| were_lost(&target.name)) && is_broken(object, now)
    });
    for object in broken {
        if let Some(problem) = moved_link(object, wanted, present) {
            plan.problems.push(problem);
        } else {
            let (dev, filter) = (now.name.clone(), Box::new(object.clone()));
            plan.push(NetlinkStep::ChangeActions { dev, filter });
        }
    }
}

/// Whether the filter is there, without the link to which it sent packets: the kernel forgets that when it is lost.
fn is_broken(object: &TrafficObject, now: &Link) -> bool {
    let mut broken = now.traffic.broken.iter();
    object.object == ObjectKind::Filter && broken.any(|now| object.is_same_filter(now))
}

/// Another object that would have to be deleted first.
fn in_its_place<'a>(
    object: &TrafficObject,
    same: Option<&'a TrafficObject>,
    present: &'a [TrafficObject],
) -> Option<&'a TrafficObject> {
    match (same, object.object) {
        (Some(now), _) if (&now.kind, now.parent) != (&object.kind, object.parent) => Some(now),
        (None, ObjectKind::Qdisc) => present
            .iter()
            .find(|now| now.object == ObjectKind::Qdisc && now.parent == object.parent),
        (Some(_) | None, _) => None,
    }
}

/// A filter sends packets to a link that has another ifindex now, or is missing.
fn moved_link(object: &TrafficObject, wanted: &Link, present: &Indexed<'_>) -> Option<Problem> {
    let link = object.links.iter().find(|link| {
        let now = present.link(&link.name);
        now.is_none_or(|now| now.index != link.index)
    })?;
    let cause = PlanCause::RedirectLost {
        filter: object.to_string(),
        link: link.name.clone(),
    };
    Some(cause.error(&wanted.name))
}

/// The default qdisc of software links.
const NO_QDISC: &str = "noqueue";

/// Reports what no step restores: another default qdisc, other kinds of qdisc and filter, programs.
pub(crate) fn cannot_restore(wanted: &Link, now: Option<&Link>, plan: &mut Plan) {
    // A link that is down has no qdisc yet, and one that is missing will get the plain one.
    if !wanted.flags.up || now.is_some_and(|now| !now.flags.up) {
        return;
    }
    let has_root = |link: &Link| link.traffic.has_root();
    // A new tap gets the qdisc that is the default of its namespace.
    let of_new = (!wanted.kind.is_tap()).then_some(NO_QDISC);
    let current = now.map_or(of_new, |now| now.qdisc.as_deref());
    if let (Some(then), Some(current)) = (wanted.qdisc.as_deref(), current)
        && then != current
        && !has_root(wanted)
        && !now.is_some_and(has_root)
    {
        let (now, then) = (current.to_owned(), then.to_owned());
        let cause = PlanCause::QdiscLost { now, then };
        plan.problems.push(cause.error(&wanted.name));
    }
    for lost in &wanted.traffic.lost {
        if now.is_some_and(|now| now.traffic.lost.contains(lost)) {
            continue;
        }
        let what = escape(&lost.what);
        let cause = if let Some(owner) = wanted.traffic.owner_of(&lost.what) {
            let owner = escape(owner);
            let cause = PlanCause::ProgramLeft { what, owner };
            plan.problems.push(cause.warning(&wanted.name));
            continue;
        } else if lost.is_program {
            PlanCause::ProgramLost { what }
        } else {
            PlanCause::TrafficLost { what }
        };
        plan.problems.push(cause.error(&wanted.name));
    }
}

/// The objects that the checkpoint lacks, each with its link.
pub(crate) fn surplus(wanted: &Link, now: &Link) -> Vec<String> {
    let known: HashSet<_> = wanted
        .traffic
        .objects
        .iter()
        .map(TrafficObject::key)
        .collect();
    now.traffic
        .objects
        .iter()
        .filter(|object| !known.contains(&object.key()))
        .map(|object| format!("{object} dev {}", now.name))
        .collect()
}

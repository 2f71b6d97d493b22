//! The lower device of a link that is still there without it.

use crate::model::net::link::lower::WithoutLower;
use crate::model::problem::PlanCause;
use crate::model::{IfName, Link, Parent};
use crate::plan::{Change, Plan, Step};

/// Gives a link that has lost its lower device the one that it had; `name_now` returns the present name of a link of its namespace
/// that is there or will be. A device that was removed from it or replaced by hand stays so.
pub(in crate::plan) fn steps(
    wanted: &Link,
    now: &Link,
    name_now: impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) {
    let Some(then) = wanted.parent.as_ref().filter(|_| now.has_lost_lower()) else {
        return;
    };
    let cause = match (now.without_lower(), then) {
        (Some(WithoutLower::Kept), Parent::Own(then)) => match name_now(then) {
            Some(parent) => {
                let link = Box::new(now.clone());
                return plan.push(Step::set(&now.name, Change::Lower { link, parent }));
            }
            None => PlanCause::LowerMissing {
                parent: then.clone(),
            },
        },
        (_, then) => PlanCause::LowerLost {
            parent: then.name().cloned(),
        },
    };
    plan.problems.push(cause.error(&now.name));
}

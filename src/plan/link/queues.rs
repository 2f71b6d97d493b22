//! What belongs to queues that a device does not have any more: another driver or firmware may give it fewer. No step restores it.

use crate::model::net::link::nic::{NicGroup, NicKey, NicState, NicValue};
use crate::model::net::link::sysfs::SysfsKey;
use crate::model::net::traffic::{ObjectKind, TrafficObject};
use crate::model::problem::PlanCause;
use crate::model::window::SettingResult;
use crate::model::{IfName, Link};
use crate::plan::{NicStep, Plan, Step};

/// Reports all of them in one problem, with the number of queues that the device has now.
pub(crate) fn report<T: ToString>(dev: &IfName, now: Option<u64>, gone: &[T], plan: &mut Plan) {
    if let Some((first, rest)) = gone.split_first() {
        let (first, more) = (first.to_string(), rest.len());
        let cause = PlanCause::QueuesGone { now, first, more };
        plan.problems.push(cause.warning(dev));
    }
}

/// Reports the settings of a NIC that belong to them.
pub(super) fn report_settings(dev: &IfName, now: &NicState, gone: Vec<NicStep>, plan: &mut Plan) {
    let names: Vec<_> = gone.iter().map(NicStep::setting).collect();
    report(dev, number(now, "tx"), &names, plan);
    let gone = gone.into_iter();
    plan.left
        .extend(gone.map(|step| (step, SettingResult::Refused)));
}

/// Whether a qdisc is that of a transmit queue that the link does not have: `mq` has a class for each.
pub(crate) fn is_qdisc_of_missing(object: &TrafficObject, wanted: &Link, now: &Link) -> bool {
    let mut above = wanted.traffic.objects.iter();
    let is_in_mq = object.object == ObjectKind::Qdisc
        && above.any(|mq| mq.kind == "mq" && mq.handle != 0 && mq.handle == object.above());
    let queue = object.parent & 0xffff;
    is_in_mq && now.queues.is_some_and(|queues| queue > queues.tx)
}

/// The number of queues of the link, if the file is that of a further one.
pub(super) fn number_without(key: &SysfsKey, now: &Link, plan: &Plan) -> Option<u64> {
    let (direction, queue) = key.queue()?;
    let at_most = now.queues.map(|queues| match direction {
        "rx" => queues.rx.into(),
        _ => queues.tx.into(),
    });
    let mut steps = plan.steps.iter().filter_map(Step::nic);
    let grows = steps.any(|step| step.dev == now.name && adds_queues(step));
    let counted = now.nic.as_ref().filter(|_| !grows);
    let counted = counted.and_then(|nic| number(nic, direction));
    counted.or(at_most).filter(|number| queue >= *number)
}

/// Whether the setting is that of a queue or of an interrupt that the device does not have.
pub(super) fn is_setting_of_missing(now: &NicState, group: NicGroup, key: &NicKey) -> bool {
    match group {
        NicGroup::Irqs => {
            let vectors = now.limits.get(&group);
            vectors.is_some_and(|vectors| !vectors.contains_key(key))
        }
        NicGroup::Queues => {
            let queue = key.as_str().strip_prefix("tx-");
            let queue = queue.and_then(|queue| queue.split_once('/')?.0.parse::<u64>().ok());
            let both = queue.zip(number(now, "tx"));
            both.is_some_and(|(queue, number)| queue >= number)
        }
        _ => false,
    }
}

/// The number of queues of a device, as far as it was read.
fn number(now: &NicState, direction: &str) -> Option<u64> {
    let counts = now.limits.get(&NicGroup::Queues)?;
    let mut counts = counts.iter();
    match counts.find(|(key, _)| key.as_str() == direction)?.1 {
        NicValue::Number(number) => Some(*number),
        _ => None,
    }
}

/// Whether the step can give the device more queues than it has.
pub(super) fn adds_queues(step: &NicStep) -> bool {
    let is_possible = match (&step.value, &step.limit) {
        (NicValue::Number(then), Some(NicValue::Number(most))) => then <= most,
        _ => true,
    };
    step.group == NicGroup::Channels && is_possible
}

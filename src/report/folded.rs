//! Problems that come from one cause are in its line: what the kernel's log explains, and what a missing device of the host takes
//! along.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::problem::{Cause, PlanCause, SnapshotCause, WindowCause};
use crate::model::{Code, IfName, LossCause, PodId, Problem};
use crate::report::problems::{Group, Titles, named};
use crate::report::text::{count, escape, join};

/// The problems without those that another one explains.
pub(super) fn folded<'a>(groups: Vec<Group<'a>>, titles: &Titles<'a>) -> Vec<Group<'a>> {
    on_missing_devices(of_the_kernel(groups), titles)
}

/// The problems that one cause of the kernel's log explains are a count behind it.
fn of_the_kernel(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let is_cause = |group: &Group<'_>| group.problem.code() == Code::KernelLog;
    let (mut causes, mut others): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_cause);
    for cause in causes
        .iter_mut()
        .filter(|one| one.problem.because.is_some())
    {
        let all = others.len();
        others.retain(|other| other.problem.because != cause.problem.because);
        if let explained @ 1.. = all - others.len() {
            let explained = count(explained, "problem");
            let message = &cause.message;
            cause.message =
                format!("{message}. {explained} of the device come from that (-v lists them)");
        }
    }
    others.extend(causes);
    others
}

/// A missing device is one line: what also says that it is gone, or waits for it, is in that.
fn on_missing_devices<'a>(mut groups: Vec<Group<'a>>, titles: &Titles<'a>) -> Vec<Group<'a>> {
    let on = standing_on(&groups.iter().map(|group| group.problem));
    let mut waiting: BTreeMap<&IfName, (BTreeSet<&IfName>, Vec<&PodId>)> = BTreeMap::new();
    groups.retain(|group| {
        let Some(device) = waits_for(group.problem).and_then(|link| on.get(link)) else {
            return true;
        };
        let (links, pods) = waiting.entry(device).or_default();
        let own = group.problem.object.device();
        links.extend(own.filter(|own| group.pods.is_empty() && own != device));
        pods.extend(&group.pods);
        false
    });
    for group in &mut groups {
        let Some((links, pods)) = group
            .problem
            .missing_device()
            .and_then(|device| waiting.get(device))
        else {
            continue;
        };
        let links = links.iter().map(|link| escape(&link.to_string()));
        let on_it = join(links.chain(named(pods, titles)), ", ");
        if !on_it.is_empty() {
            group.message = format!("{}. On it: {on_it}", group.message);
        }
    }
    groups
}

/// The missing devices by the links of the host that stand on them, and by themselves.
fn standing_on<'a>(
    problems: &(impl Iterator<Item = &'a Problem> + Clone),
) -> BTreeMap<&'a IfName, &'a IfName> {
    let devices = problems.clone().filter_map(Problem::missing_device);
    let mut on: BTreeMap<_, _> = devices.map(|device| (device, device)).collect();
    loop {
        let more: Vec<_> = problems
            .clone()
            .filter(|problem| problem.pod.is_none())
            .filter_map(|problem| {
                let device = on.get(waits_for(problem)?)?;
                Some((problem.object.device()?, *device))
            })
            .filter(|(link, _)| !on.contains_key(link))
            .collect();
        if more.is_empty() {
            return on;
        }
        on.extend(more);
    }
}

/// The link of the host that has to be there first, or that is gone.
fn waits_for(problem: &Problem) -> Option<&IfName> {
    let is_of_host = problem.pod.is_none();
    match &*problem.cause {
        Cause::Plan(PlanCause::HostLinkMissing { parent }) => Some(parent),
        Cause::Plan(PlanCause::OwnLinkMissing { parent }) if is_of_host => Some(parent),
        Cause::Snapshot(
            SnapshotCause::HostLinkGone
            | SnapshotCause::HostLost {
                what: LossCause::LinkGone,
                ..
            },
        )
        | Cause::Window(WindowCause::NicAbsent)
            if is_of_host =>
        {
            problem.object.device()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::problems::{text, word};
    use crate::report::style::Style;

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    #[test]
    fn a_missing_device_is_one_line_with_what_was_on_it() {
        let pod = |at: usize| PodId::from_text(&format!("c0ffee{at:06}"));
        let waits = |at| {
            let parent = name("eth0.3");
            let cause = PlanCause::HostLinkMissing { parent };
            cause.error(name("eth0")).of(&pod(at))
        };
        let lost = SnapshotCause::HostLost {
            what: LossCause::LinkGone,
            generation: Some(3),
        };
        let parent = name("eth0");
        let other = PlanCause::OwnLinkMissing {
            parent: name("eth9"),
        };
        let problems = [
            waits(0),
            lost.warning(name("eth0")),
            PlanCause::OwnLinkMissing { parent }.error(name("eth0.3")),
            PlanCause::DeviceMissing { hardware: None }.error(name("eth0")),
            waits(1),
            other.error(name("eth9.7")),
        ];
        assert_eq!(
            text(problems.iter(), std::iter::empty(), word, Style::plain()),
            "error: parent-missing: eth0: the device is missing. Load its driver, then run `netfix restore`. On it: eth0.3, 2 pods \
                (c0ffee000000, c0ffee000001)\nerror: parent-missing: eth9.7: cannot be recreated: eth9 is missing\n"
        );
    }
}

//! One round of work in one pod, from inside its namespace: an observation, a plan, its steps, and an observation of the result.

use std::collections::{BTreeSet, HashSet};

use crate::inventory::observe::Host;
use crate::kernel::state::Needs;
use crate::kernel::{Error, state};
use crate::model::net::link::sysctl::Sysctls;
use crate::model::problem::PlanCause;
use crate::model::{Address, Claim, ConflictProbe, Indexed, NetState, Parent};
use crate::plan::{HostLinks, Step};
use crate::restore::apply::{self, Applied};
use crate::restore::conflict::targets;
use crate::restore::facts::Limits;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::{PodJob, PodState, View, is_from_host, link_names};

/// Reads the links once, which shows the missing ones, and for a probe the addresses. Of a pod without a missing link everything
/// is read: it may be correct.
pub(in crate::restore) fn survey(
    pod: &mut PodJob,
    host: &Host,
    links: &HostLinks,
    probe: ConflictProbe,
) -> Result<(), Error> {
    if pod.before.is_some() {
        return Ok(());
    }
    let state = pod.matched.pod.observe_links_inside(host)?;
    let before = link_names(&state);
    let missing = pod.matched.missing(&state, links);
    let state = if missing.is_empty() {
        let needs = pod.matched.needs(&state);
        pod.matched.complete_inside(state, needs)?
    } else if probe == ConflictProbe::Off {
        state
    } else {
        state::with_addresses(pod.matched.pod.socket()?, state)?
    };
    if probe != ConflictProbe::Off {
        pod.targets = targets::targets(&pod.matched, &state, links);
    }
    // One that was late at any of this is read again in its next turn: without it no address of it would be probed.
    (pod.before, pod.missing) = (Some(before), missing);
    if pod.missing.is_empty() {
        note(pod, state, links);
        if pod.is_open() {
            // The work in it comes later, and begins with a new observation.
            pod.state = PodState::Waiting;
        }
    }
    Ok(())
}

/// Ends the work on a pod that has the links and addresses of its large record, and a table that is not read whole.
pub(in crate::restore) fn spare(
    pod: &mut PodJob,
    host: &Host,
    limits: Limits,
) -> Result<(), Error> {
    if limits.reads_long || pod.before.is_some() || pod.matched.whole.is_none() {
        return Ok(());
    }
    let now = pod.matched.pod.read(host, |socket, view| {
        state::links_and_addresses(socket, Some(view))
    })?;
    if !now.has_claims_of(&pod.matched.claims()) {
        return Ok(());
    }
    let links = link_names(&now);
    pod.matched.pod.read_all(false);
    let read = state::complete(pod.matched.pod.socket()?, now, Needs::TABLES);
    pod.matched.pod.read_all(true);
    if matches!(read, Err(Error::TooMany(_))) {
        pod.before = Some(links);
    }
    read.map(drop)
}

/// Observes what is not known, carries out what is missing, and observes the result.
pub(in crate::restore) fn work(
    pod: &mut PodJob,
    host: &Host,
    links: &HostLinks,
    permit: Permit<'_>,
) -> Result<(), Error> {
    if matches!(pod.state, PodState::Waiting) {
        observe_created(pod, host, links)?;
    }
    apply_plan(pod, permit)?;
    if matches!(pod.state, PodState::Working(_)) {
        observe(pod, host, links)?;
    }
    Ok(())
}

/// Works on a pod for which something may have come, in rounds while they change what is missing: the kernel makes an address with
/// carrier, which may then be in the wrong place.
pub(in crate::restore) fn resume(
    pod: &mut PodJob,
    host: &Host,
    links: &HostLinks,
    permit: Permit<'_>,
) -> Result<(), Error> {
    const ROUNDS: usize = 4;
    let worked = observe(pod, host, links)
        .and_then(|()| (0..ROUNDS).try_for_each(|_| work(pod, host, links, permit)));
    pod.close();
    worked
}

/// Plans what is missing after links were created. In a pod that has no other links these have nothing yet, and the rest is taken
/// to be as recorded: whether it is, the next observation shows.
fn observe_created(pod: &mut PodJob, host: &Host, links: &HostLinks) -> Result<(), Error> {
    let state = links_inside(pod, host)?;
    let had_none = pod.before.as_ref().is_some_and(Vec::is_empty);
    let is_new = had_none && pod.has_only_created_or(|_| false);
    if is_new && pod.matched.has_only_links(&state, &pod.created) {
        let state = pod.matched.expected(state, &pod.created);
        let plan = pod.matched.plan(&state, None, links, &pod.created);
        pod.state = PodState::Working(View::new(state, plan));
        return Ok(());
    }
    complete(pod, state, links)
}

/// Observes as far as its record needs it, and plans.
fn observe(pod: &mut PodJob, host: &Host, links: &HostLinks) -> Result<(), Error> {
    let state = links_inside(pod, host)?;
    complete(pod, state, links)
}

fn links_inside(pod: &mut PodJob, host: &Host) -> Result<NetState, Error> {
    let mut state = pod.matched.pod.observe_links_inside(host)?;
    settle_new(pod, &mut state, host);
    Ok(state)
}

/// The neighbour settings of links that this run has created, and not changed since, are known.
fn settle_new(pod: &PodJob, state: &mut NetState, host: &Host) {
    if !pod.has_only_created_or(Step::is_addition) {
        return;
    }
    let initial = &host.initial_settings;
    for link in &mut state.links {
        let settings = &mut link.sysctls;
        if !pod.created.contains(&link.name) {
            continue;
        }
        // Without IPv6 a link has no settings for it.
        if !settings.ipv4.is_empty() {
            settings.neigh4.clone_from(&initial.neigh4);
        }
        if !settings.ipv6.is_empty() {
            settings.neigh6.clone_from(&initial.neigh6);
        }
    }
}

/// Reads the rest, and plans.
fn complete(pod: &mut PodJob, state: NetState, links: &HostLinks) -> Result<(), Error> {
    let needs = pod.matched.needs(&state);
    let state = pod.matched.complete_inside(state, needs)?;
    note(pod, state, links);
    Ok(())
}

/// Plans what is missing in this state.
fn note(pod: &mut PodJob, state: NetState, links: &HostLinks) {
    withhold_duplicates(pod, &state);
    let plan = pod.matched.plan(&state, None, links, &pod.created);
    let mut view = View::new(state, plan);
    if !is_over(pod.view(), &view) {
        pod.state = PodState::Working(view);
        return;
    }
    if view.plan.is_settled() {
        // Most of what a thousand pods would keep, and nothing is compared with them any more.
        forget_settings(&mut view.state);
        if let Some(recorded) = &mut pod.matched.checkpoint.netfix {
            forget_settings(&mut recorded.state);
        }
    }
    pod.state = PodState::Done(view);
}

/// Whether nothing is missing, or what is missing stays so: the steps are those of the round before, and duplicate address detection was
/// over before that. It refuses a route from an address until its end, which may be between a round's steps and its observation.
fn is_over(last: Option<&View>, now: &View) -> bool {
    let is_settled = |view: &View| !view.state.addresses.iter().any(Address::is_in_detection);
    let is_stuck = |last: &View| last.plan.steps == now.plan.steps && is_settled(last);
    now.plan.steps.is_empty() || is_settled(now) && last.is_some_and(is_stuck)
}

/// Leaves out the addresses that another machine has, although this run has added them: they are not added again.
fn withhold_duplicates(pod: &mut PodJob, state: &NetState) {
    if !state.addresses.iter().any(Address::has_failed_detection) {
        return;
    }
    let added = pod.done.iter().flat_map(Step::added_addresses);
    let added: HashSet<_> = added.map(Address::key).collect();
    let failed = state.addresses.iter().filter(|one| {
        let is_of_run = added.contains(&one.key()) || pod.created.contains(&one.dev);
        one.has_failed_detection() && is_of_run
    });
    let recorded = pod.matched.claims();
    let links = Indexed::new(&recorded);
    let claims = failed.filter_map(|one| match &links.link(&one.dev)?.parent {
        Some(Parent::Host(parent)) => Claim::of_address(one, parent),
        _ => None,
    });
    let claims: Vec<Claim> = claims.collect();
    for claim in claims {
        let problem = PlanCause::DuplicateAddress.error(&claim);
        if pod.matched.withheld.insert(claim) {
            pod.matched.contested.push(problem);
        }
    }
}

/// Applies what was planned from inside; links on the host's were created before. A pod of which links had to be taken back is
/// done.
pub(in crate::restore) fn apply_plan(pod: &mut PodJob, permit: Permit<'_>) -> Result<(), Error> {
    let PodState::Working(View { state, plan, .. }) = &pod.state else {
        return Ok(());
    };
    let steps = plan.steps.iter().filter(|step| !is_from_host(step));
    let steps: Vec<Step> = steps.cloned().collect();
    pod.failures.retain(|failure| is_from_host(&failure.step));
    let socket = pod.matched.pod.socket()?;
    let Applied { done, failures, .. } =
        apply::run(permit, socket, state, steps, apply::RESET_LIMIT);
    let gone = if socket.is_late() {
        BTreeSet::new()
    } else {
        apply::take_back(permit, socket, state, &failures, &pod.created)
    };
    pod.log_done(&done);
    pod.done.extend(done);
    if gone.is_empty() {
        pod.failures.extend(failures);
        return Ok(());
    }
    pod.failures.extend(failures.into_iter().filter(|failure| {
        let dev = failure.takes_up();
        dev.is_some_and(|dev| gone.contains(dev))
    }));
    pod.done
        .retain(|step| !step.devs().into_iter().any(|dev| gone.contains(dev)));
    if let PodState::Working(View { state, .. }) = &mut pod.state {
        state.links.retain(|link| !gone.contains(&link.name));
    }
    pod.close();
    Ok(())
}

fn forget_settings(state: &mut NetState) {
    for link in &mut state.links {
        link.sysctls = Sysctls::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NetState;
    use crate::model::net::address::{PERMANENT, TENTATIVE};
    use crate::plan::{NetlinkStep, Plan};

    /// A pod that misses an address, which is the same step each time, and has one with these flags.
    fn view(flags: u32) -> View {
        let address = |text: &str, flags| Address {
            flags,
            ..Address::plain("eth0".parse().unwrap(), text.parse().unwrap(), 64)
        };
        let state = NetState {
            addresses: vec![address("fd00::1", PERMANENT | flags)],
            ..NetState::default()
        };
        let plan = Plan {
            steps: vec![NetlinkStep::AddAddress(address("fd00::2", 0)).into()],
            ..Plan::default()
        };
        View::new(state, plan)
    }

    #[test]
    fn what_failed_while_an_address_was_probed_is_tried_once_more_after_the_probe() {
        let (probed, usable) = (view(TENTATIVE), view(0));
        assert!(!is_over(None, &usable));
        assert!(!is_over(Some(&probed), &probed));
        assert!(!is_over(Some(&probed), &usable));
        assert!(is_over(Some(&usable), &usable));
    }
}

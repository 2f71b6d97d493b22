//! Plans carried out on the model kernel: the result after a loss, also if a run was cut short.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use netfix::model::net::address::Maker;
use netfix::model::net::link::sysctl::Sysctls;
use netfix::model::{IfName, Link, LinkKind, NetState, Parent};
use netfix::plan::{Change, HostLinks, NetlinkStep, Plan, Step};

use super::kernel::{Errno, HostLink, Kernel};
use super::{About, Case, cases, in_short};

/// More rounds than any restore needs.
const ROUNDS: usize = 20;

/// The result of a run.
pub(super) struct Run {
    kernel: Kernel,
    taken: usize,
    refused: Vec<(Step, Errno)>,
    /// The last plan: empty when nothing is left to do.
    left: Plan,
    links: HostLinks,
}

/// Plans, takes the steps and observes again, as a restore does, until a round changes nothing or `limit` steps
/// are done.
fn run(case: &Case, mut kernel: Kernel, limit: usize) -> Run {
    let (mut taken, mut refused) = (0, Vec::new());
    let mut last: Option<Plan> = None;
    let mut rested: Option<NetState> = None;
    for _ in 0..ROUNDS {
        let now = kernel.observe();
        let (plan, links) = case.plan(&now, None);
        let is_idle =
            plan.steps.is_empty() || last.as_ref().is_some_and(|last| last.steps == plan.steps);
        let is_over = taken >= limit || (is_idle && rested.as_ref() == Some(&now));
        if is_over {
            return Run {
                kernel,
                taken,
                refused,
                left: plan,
                links,
            };
        }
        if is_idle {
            rested = Some(now);
            last = None;
            kernel.pass_time();
            continue;
        }
        for step in plan.steps.iter().take(limit - taken) {
            taken += 1;
            if let Err(errno) = take(&mut kernel, step) {
                refused.push((step.clone(), errno));
            }
        }
        last = Some(plan);
    }
    panic!("{}: no end after {ROUNDS} rounds", case.why);
}

/// One step, with the executor's second attempt: a link whose old index is taken gets another one.
fn take(kernel: &mut Kernel, step: &Step) -> Result<(), Errno> {
    match (kernel.take(step), step) {
        (Err(Errno::EEXIST | Errno::EBUSY), Step::AddLink(link)) if link.index != 0 => {
            let link = Link {
                index: 0,
                ..Link::clone(link)
            };
            kernel.take(&Step::AddLink(Box::new(link)))
        }
        (result, _) => result,
    }
}

/// A namespace with `state`, on the host and the network of the case.
pub(super) fn kernel(case: &Case, state: &NetState) -> Kernel {
    let mut kernel = Kernel::holding(state);
    let wanted = || {
        case.wanted
            .links
            .iter()
            .filter(|link| link.kind != LinkKind::Loopback)
    };
    if let About::Pod { present, renamed } = &case.about {
        let mtu = wanted().map(|link| link.mtu).max().unwrap_or(1500);
        let name_now = |then: &IfName| renamed.get(then).unwrap_or(then).clone();
        kernel.host = present
            .iter()
            .map(|then| (name_now(then), HostLink { mtu }))
            .collect();
    }
    kernel.new_link = new_link(case);
    let accepts = wanted().filter_map(|link| {
        let mut settings = link.sysctls.ipv6.iter();
        let (_, value) = settings.find(|(key, _)| key.as_str() == "accept_ra")?;
        Some(*value)
    });
    kernel.router = accepts.max() == Some(0);
    kernel
}

/// The initial values of new links: those of the case, or those of its bare link.
fn new_link(case: &Case) -> Sysctls {
    let of = |state: &NetState| {
        let mut links = state
            .links
            .iter()
            .filter(|link| link.kind != LinkKind::Loopback);
        links.next().map(|link| link.sysctls.clone())
    };
    let known = case.new_link.clone().or_else(|| of(&case.observed));
    known.or_else(|| of(&case.wanted)).unwrap_or_default()
}

/// The wanted state of the case, by the present names of the devices.
fn wanted_now(case: &Case, links: &HostLinks) -> NetState {
    let mut state = case.wanted.clone();
    let is_host = matches!(case.about, About::Host { .. });
    let own = |name: &mut IfName| {
        *name = if is_host {
            links.name_now(name)
        } else {
            name.clone()
        }
    };
    for link in &mut state.links {
        own(&mut link.name);
        link.master.as_mut().map(own);
        match &mut link.parent {
            Some(Parent::Own(name)) => own(name),
            Some(Parent::Host(name)) => *name = links.name_now(name),
            Some(Parent::Elsewhere) | None => {}
        }
    }
    state
        .addresses
        .iter_mut()
        .for_each(|address| own(&mut address.dev));
    state
        .neighbours
        .iter_mut()
        .for_each(|neighbour| own(&mut neighbour.dev));
    let renamed = |dev: &IfName| {
        if is_host {
            links.name_now(dev)
        } else {
            dev.clone()
        }
    };
    state.routes = state
        .routes
        .into_iter()
        .map(|route| route.renamed(renamed))
        .collect();
    state
}

/// How a state differs from the wanted one, one line for each difference.
fn differences(now: &NetState, wanted: &NetState) -> String {
    let (now, wanted) = (
        now.clone().lasting().timeless(),
        wanted.clone().lasting().timeless(),
    );
    let mut text = String::new();
    for link in &wanted.links {
        match now.link(&link.name) {
            Some(other) => text += &attributes(other, link),
            None => writeln!(text, "- link {}", link.name).expect("a string"),
        }
    }
    for link in now
        .links
        .iter()
        .filter(|link| wanted.link(&link.name).is_none())
    {
        writeln!(text, "+ link {}", link.name).expect("a string");
    }
    text += &objects("address", &now.addresses, &wanted.addresses);
    text += &objects("route", &now.routes, &wanted.routes);
    text += &objects("rule", &now.rules, &wanted.rules);
    text += &objects("neighbour", &now.neighbours, &wanted.neighbours);
    text += &objects("unsupported", &now.unsupported, &wanted.unsupported);
    text
}

fn attributes(now: &Link, wanted: &Link) -> String {
    let json = |link: &Link| serde_json::to_value(link).expect("a link");
    let (now, then) = (json(now), json(wanted));
    let keys = |value: &serde_json::Value| {
        value
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect::<Vec<_>>()
    };
    let keys: BTreeSet<String> = keys(&now).into_iter().chain(keys(&then)).collect();
    let differing = keys.iter().filter(|key| now[key] != then[key]);
    let line = |key: &String| {
        let (name, now, then) = (&wanted.name, &now[key], &then[key]);
        format!("~ link {name} {key}: {now}, not {then}\n")
    };
    differing.map(line).collect::<Vec<_>>().concat()
}

fn objects<T: serde::Serialize>(what: &str, now: &[T], wanted: &[T]) -> String {
    let texts = |items: &[T]| {
        items
            .iter()
            .map(|item| serde_json::to_string(item).expect("an object"))
            .collect::<Vec<_>>()
    };
    let (now, wanted) = (texts(now), texts(wanted));
    let lines = |sign, a: &[String], b: &[String]| {
        a.iter()
            .filter(|text| !b.contains(text))
            .map(|text| format!("{sign} {what} {text}\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    let mut text = lines('-', &wanted, &now) + &lines('+', &now, &wanted);
    if text.is_empty() && now != wanted {
        writeln!(text, "~ order of {what} objects: {now:?}, not {wanted:?}").expect("a string");
    }
    text
}

/// How the result of a run differs from the wanted state, and the steps that another run would take.
pub(super) fn end(case: &Case, run: &Run) -> String {
    let mut text = differences(
        &run.kernel.observe(),
        &Kernel::holding(&wanted_now(case, &run.links)).observe(),
    );
    let left = run.left.steps.iter().chain(&run.left.later);
    text.extend(left.map(|step| format!("left {step}\n")));
    text.extend(run.left.problems.iter().map(in_short));
    text
}

fn is_there(step: &Step, errno: Errno) -> bool {
    matches!(step, Step::Netlink(NetlinkStep::AddAddress(address)) if address.maker == Maker::Kernel)
        && errno == Errno::EEXIST
}

/// A step that the kernel refuses is in the wrong order, unless it waits for duplicate address detection, or the kernel has added its
/// own address meanwhile.
fn assert_none_refused(why: &str, run: &Run) {
    let refused: Vec<String> = run
        .refused
        .iter()
        .filter(|(step, errno)| *errno != Errno::TENTATIVE && !is_there(step, *errno))
        .map(|(step, errno)| format!("{step}: {errno:?}"))
        .collect();
    assert!(
        refused.is_empty(),
        "{why}: the kernel refused\n{}",
        refused.join("\n")
    );
}

pub(super) fn whole(case: &Case, kernel: Kernel) -> Run {
    let run = run(case, kernel, usize::MAX);
    assert_none_refused(&case.why, &run);
    run
}

#[test]
fn every_applied_plan_ends_as_in_testdata() {
    let cases = cases::read::<Case>("plan");
    cases::compare(
        &cases,
        "end.txt",
        |case| &case.why,
        |case| end(case, &whole(case, kernel(case, &case.observed))),
    );
}

#[test]
fn a_run_stopped_at_any_step_and_repeated_ends_the_same() {
    let mut cuts = 0;
    for (_, case) in cases::read::<Case>("plan") {
        let begin = || kernel(&case, &case.observed);
        let uncut = whole(&case, begin());
        for at in 0..uncut.taken {
            for rests in [false, true] {
                let mut first = run(&case, begin(), at).kernel;
                if rests {
                    first.pass_time();
                }
                let second = whole(&case, first);
                assert_eq!(
                    end(&case, &second),
                    end(&case, &uncut),
                    "{}: cut after {at} steps",
                    case.why
                );
                cuts += 1;
            }
        }
    }
    assert!(cuts > 60, "only {cuts} cuts");
}

/// The whole plan at once, as `netfix plan` prints it, and the state after its steps.
fn printed(case: &Case) -> Plan {
    let new_link = kernel(case, &case.observed).new_link;
    case.plan(&case.observed, Some(&new_link)).0
}

fn after<'s>(case: &Case, steps: impl IntoIterator<Item = &'s Step>) -> (NetState, Vec<Errno>) {
    let mut kernel = kernel(case, &case.observed);
    let results: Vec<_> = steps
        .into_iter()
        .map(|step| take(&mut kernel, step))
        .collect();
    kernel.pass_time();
    (
        kernel.observe(),
        results.into_iter().filter_map(Result::err).collect(),
    )
}

#[test]
fn a_printed_plan_is_complete() {
    for (_, case) in cases::read::<Case>("plan") {
        let plan = printed(&case);
        let (state, refused) = after(&case, &plan.steps);
        assert_eq!(refused, [], "{}", case.why);
        let rest = case.plan(&state, None).0.steps;
        let stuck = whole(&case, kernel(&case, &case.observed)).left.steps;
        // The initial options of a new bond or port are known only once it exists.
        let is_option = |step: &Step| {
            matches!(
                step,
                Step::Netlink(NetlinkStep::SetLink {
                    change: Change::BondOption(..) | Change::Port(_),
                    ..
                })
            )
        };
        let unexpected: Vec<&Step> = rest
            .iter()
            .filter(|step| !stuck.contains(step) && !plan.later.contains(step) && !is_option(step))
            .collect();
        assert!(unexpected.is_empty(), "{}: {unexpected:?}", case.why);
    }
}

#[test]
fn every_step_of_a_plan_is_needed() {
    let mut steps = 0;
    for (_, case) in cases::read::<Case>("plan") {
        let plan = printed(&case);
        let stuck = whole(&case, kernel(&case, &case.observed)).left.steps;
        let all = after(&case, &plan.steps);
        for (at, step) in plan
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| !stuck.contains(step))
        {
            let others = plan
                .steps
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            let without = after(&case, others.map(|(_, step)| step));
            assert_ne!(without, all, "{}: {step} changes nothing", case.why);
            steps += 1;
        }
    }
    assert!(steps > 40, "only {steps} steps");
}

#[test]
fn a_plan_in_reverse_order_is_refused_or_ends_differently() {
    for name in [
        "host-bond-made-and-bare",
        "host-nic-reloaded",
        "pod-all-lost-whole-plan",
        "pod-routes-in-order",
        "pod-stable-secret",
        "pod-vlan-inside",
    ] {
        let case = cases::read::<Case>("plan")
            .into_iter()
            .find(|(folder, _)| folder.ends_with(name));
        let (_, case) = case.unwrap_or_else(|| panic!("no case {name}"));
        let plan = printed(&case);
        assert_ne!(
            after(&case, plan.steps.iter().rev()),
            after(&case, &plan.steps),
            "{}",
            case.why
        );
    }
}

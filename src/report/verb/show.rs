//! `show`: everything about one pod.

use crate::model::checkpoint::{Extension, StackLink};
use crate::model::net::link::nic::FunctionOf;
use crate::model::{Hardware, Link, NetState, State, Traffic};
use crate::plan::Step;
use crate::report::document::{Document, Extra, PodView, ShowView};
use crate::report::screen::Screen;
use crate::report::text::{self, Facts, count, escape, list_or_dash, or_dash, seconds};

/// Printed with `--quiet` too.
pub(super) fn screen(document: &Document) -> Screen<'_> {
    let Some(Extra::Show(view)) = &document.extra else {
        return Screen::default();
    };
    let facts = document.pods.iter().flat_map(|pod| facts(pod, view));
    Screen::new(text::facts(facts.collect(), None), None)
}

/// The pod's names, its present state, and what is stored.
fn facts(pod: &PodView, show: &ShowView) -> Facts {
    let info = &pod.info;
    let known = |text: Option<&String>| or_dash(text.map(|text| escape(text)));
    let age = show.written_age;
    let age = age.map(|age| format!(" ({} ago)", seconds(age)));
    let written = known(pod.created.as_ref()) + &age.unwrap_or_default();
    let mut facts = vec![
        ("pod", escape(&info.title())),
        ("id", info.id.to_string()),
        ("uid", known(info.uid.as_ref())),
        ("sandbox", known(info.sandbox.as_ref())),
        ("attempt", or_dash(info.attempt)),
        ("source", escape(&info.source)),
        ("netns", or_dash(pod.netns.as_ref())),
        ("written", written),
        ("verified", known(pod.seen.as_ref())),
        ("now", now(pod, show)),
    ];
    let Some(checkpoint) = &pod.checkpoint else {
        return facts;
    };
    let Some(extension) = &checkpoint.netfix else {
        let format = "i40e_net_fix: addresses and routes only";
        facts.push(("format", format.to_owned()));
        return facts;
    };
    facts.extend(stored(extension));
    let settings = show.settings.iter();
    facts.extend(settings.map(|setting| ("setting", escape(setting))));
    facts
}

/// A setting in the checkpoint beside the value that a new link of the pod would have.
pub(crate) fn setting(step: &Step) -> Option<String> {
    let Step::Sysctl {
        dev,
        folder,
        key,
        value,
        now: of_new_link,
    } = step
    else {
        return None;
    };
    let new_link = match of_new_link.as_str() {
        "" => String::new(),
        known => format!(" (a new link has {known})"),
    };
    let folder = folder.as_str();
    Some(format!("net/{folder}/{dev}/{key} = {value}{new_link}"))
}

/// How the pod is, beside its checkpoint.
fn now(pod: &PodView, show: &ShowView) -> String {
    let id = &pod.info.id;
    match (
        show.alive,
        show.lost.as_ref().zip(show.lost_what),
        pod.state,
    ) {
        (Some(true), Some((lost, what)), _) => {
            let lost = escape(lost);
            format!("running, {lost} {what}. Run `netfix restore {id}`")
        }
        (Some(true), None, State::InSync) => "running, has everything that is stored".to_owned(),
        (Some(true), None, _) if pod.steps.is_empty() => {
            format!("running, differs from what is stored. Run `netfix diff {id}`")
        }
        (Some(true), None, _) => {
            let steps = count(pod.steps.len(), "step");
            format!("running, differs in {steps}. Run `netfix diff {id}`")
        }
        (Some(false), ..) => "not running any more".to_owned(),
        (None, ..) => "unknown: netfix could not read it".to_owned(),
    }
}

fn stored(extension: &Extension) -> Facts {
    let Extension {
        schema: _,
        created: _,
        created_boottime: _,
        node,
        identity,
        pod: _,
        cut_off: _,
        stack,
        chain: _,
        state,
    } = extension;
    let cookie = or_dash(identity.cookie);
    let mut facts = vec![
        (
            "identity",
            format!("cookie {cookie}, inode {}", identity.inode),
        ),
        ("boot", or_dash(node.boot_id.as_deref().map(escape))),
    ];
    facts.extend(stack.iter().flat_map(under));
    facts.extend(contents(state));
    facts
}

/// A link of the host under the pod's.
fn under(link: &StackLink) -> Facts {
    let on = match link.over.as_slice() {
        [] => String::new(),
        over => format!(" on {}", list_or_dash(over)),
    };
    let link_facts = format!("{} {}{on} mtu {}", link.kind, link.name, link.mtu);
    let mut facts = vec![("host", escape(&link_facts))];
    if let Some(hardware) = &link.hardware {
        let Hardware {
            permanent_mac,
            bus,
            driver,
            function,
            port: _,
            instance: _,
        } = hardware;
        let driver = or_dash(driver.as_deref().map(escape));
        let bus = or_dash(bus.as_deref().map(escape));
        let mac = or_dash(*permanent_mac);
        facts.push(("", format!("driver {driver} bus {bus} permaddr {mac}")));
        if let Some(FunctionOf { of, index }) = function {
            facts.push(("", format!("virtual function {index} of {}", escape(of))));
        }
    }
    facts
}

/// The qdiscs, classes and filters of a link, and what of them netfix cannot restore.
fn traffic(link: &Link) -> Vec<String> {
    let Traffic {
        objects,
        lost,
        broken: _,
        owners: _,
        programs: _,
    } = &link.traffic;
    let objects = objects.iter().map(|one| format!("{one} dev {}", link.name));
    let lost = lost.iter();
    let lost = lost.map(|one| format!("{} dev {} (not restored)", one.what, link.name));
    objects.chain(lost).collect()
}

/// What is set on a NIC.
fn nic(link: &Link) -> Vec<String> {
    let groups = link.nic.iter().flat_map(|nic| &nic.settings);
    let settings = groups.flat_map(|(group, values)| {
        let dev = &link.name;
        let group = group.as_str();
        let values = values.iter();
        values.map(move |(key, value)| format!("{dev} {group} {key} {}", value.short()))
    });
    settings.collect()
}

fn contents(state: &NetState) -> Facts {
    fn each<T: ToString>(
        about: &'static str,
        all: impl Iterator<Item = T>,
    ) -> impl Iterator<Item = (&'static str, String)> {
        all.map(move |one| (about, escape(&one.to_string())))
    }
    let links = state.links_but_loopback();
    let links = links.map(|link| Step::AddLink(Box::new(link.clone())).to_string());
    let links = links.map(|step| step.trim_start_matches("+ ").to_owned());
    // The kernel's own three are in every namespace.
    let rules = state.rules.iter().filter(|rule| !rule.is_made_by_kernel());
    let traffic = state.links.iter().flat_map(traffic);
    each("link", links)
        .chain(each("traffic", traffic))
        .chain(each("nic", state.links.iter().flat_map(nic)))
        .chain(each("address", state.addresses.iter()))
        .chain(each("route", state.routes.iter()))
        .chain(each("rule", rules))
        .chain(each("neighbour", state.neighbours.iter()))
        .chain(each("unsupported", state.unsupported.iter()))
        .collect()
}

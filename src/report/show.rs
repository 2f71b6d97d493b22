//! `show`: everything about one pod.

use std::io::{self, Write};

use super::text::{count, escape, fact, list_or_dash, or_dash, seconds};
use super::view::{PodView, ShowView};
use crate::model::checkpoint::{Extension, StackLink};
use crate::model::{Hardware, LinkKind, NetState, State};
use crate::plan::Step;

/// The pod's names, its present state, and what is stored.
pub(super) fn write(pod: &PodView, show: &ShowView, out: &mut dyn Write) -> io::Result<()> {
    let info = &pod.info;
    let known = |text: Option<&String>| or_dash(text.map(|text| escape(text)));
    fact(out, "pod", &escape(&info.title()))?;
    fact(out, "id", info.id.as_str())?;
    fact(out, "uid", &known(info.uid.as_ref()))?;
    fact(out, "sandbox", &known(info.sandbox.as_ref()))?;
    fact(out, "attempt", &or_dash(info.attempt))?;
    fact(out, "source", &escape(&info.source))?;
    fact(out, "netns", &known(pod.netns.as_ref()))?;
    let age = show
        .written_age
        .map(|age| format!(" ({} ago)", seconds(age)));
    let written = known(pod.created.as_ref());
    fact(out, "written", &(written + &age.unwrap_or_default()))?;
    fact(out, "verified", &known(pod.seen.as_ref()))?;
    fact(out, "now", &now(pod, show))?;
    let Some(checkpoint) = &pod.checkpoint else {
        return Ok(());
    };
    let Some(extension) = &checkpoint.netfix else {
        return fact(out, "format", "i40e_net_fix: addresses and routes only");
    };
    stored(extension, out)?;
    show.settings.iter().try_for_each(|setting| {
        fact(
            out,
            "setting",
            &escape(setting.trim_start_matches("~ sysctl ")),
        )
    })
}

/// How the pod is, beside its checkpoint.
fn now(pod: &PodView, show: &ShowView) -> String {
    let id = &pod.info.id;
    match (show.alive, &show.lost, pod.state) {
        (Some(true), Some(lost), _) => {
            format!(
                "running, has lost {}. Run `netfix restore {id}`",
                escape(lost)
            )
        }
        (Some(true), None, State::InSync) => "running, has everything that is stored".to_owned(),
        (Some(true), None, _) => {
            let steps = count(pod.steps.len(), "step");
            format!("running, differs in {steps}. Run `netfix diff {id}`")
        }
        (Some(false), ..) => "not running any more".to_owned(),
        (None, ..) => "unknown: netfix could not read it".to_owned(),
    }
}

fn stored(extension: &Extension, out: &mut dyn Write) -> io::Result<()> {
    let Extension {
        schema: _,
        created: _,
        node,
        identity,
        pod: _,
        stack,
        state,
    } = extension;
    let boot = or_dash(node.boot_id.as_deref().map(escape));
    let cookie = or_dash(identity.cookie);
    fact(
        out,
        "identity",
        &format!("cookie {cookie}, inode {}", identity.inode),
    )?;
    fact(out, "boot", &boot)?;
    stack.iter().try_for_each(|link| under(link, out))?;
    contents(state, out)
}

/// A link of the host under the pod's.
fn under(link: &StackLink, out: &mut dyn Write) -> io::Result<()> {
    let on = match link.over.as_slice() {
        [] => String::new(),
        over => format!(" on {}", list_or_dash(over)),
    };
    let facts = format!("{} {}{on} mtu {}", link.kind, link.name, link.mtu);
    fact(out, "host", &escape(&facts))?;
    let Some(hardware) = &link.hardware else {
        return Ok(());
    };
    let Hardware {
        permanent_mac,
        bus,
        driver,
    } = hardware;
    let driver = or_dash(driver.as_deref().map(escape));
    let bus = or_dash(bus.as_deref().map(escape));
    let mac = or_dash(*permanent_mac);
    fact(
        out,
        "",
        &format!("driver {driver} bus {bus} permaddr {mac}"),
    )
}

fn contents(state: &NetState, out: &mut dyn Write) -> io::Result<()> {
    let links = state
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Loopback);
    for link in links {
        let step = Step::AddLink(Box::new(link.clone())).to_string();
        fact(out, "link", &escape(step.trim_start_matches("+ ")))?;
    }
    let mut each = |about: &str, what: &dyn ToString| fact(out, about, &escape(&what.to_string()));
    state
        .addresses
        .iter()
        .try_for_each(|address| each("address", address))?;
    state
        .routes
        .iter()
        .try_for_each(|route| each("route", route))?;
    // The kernel's own three are in every namespace.
    let mut added = state.rules.iter().filter(|rule| !rule.is_made_by_kernel());
    added.try_for_each(|rule| each("rule", rule))?;
    state
        .neighbours
        .iter()
        .try_for_each(|neighbour| each("neighbour", neighbour))?;
    state
        .unsupported
        .iter()
        .try_for_each(|what| each("unsupported", what))
}

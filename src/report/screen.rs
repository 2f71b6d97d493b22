//! Answers that fill one screen: the state of everything, and everything about one pod.

use std::io::{self, Write};
use std::time::Duration;

use super::hold;
use super::human::{list_or_dash, or_dash, title};
use super::view::{Document, PodView, ShowView, StatusView};
use crate::model::checkpoint::{Extension, StackLink};
use crate::model::{Hardware, LinkKind, NetState, State};
use crate::plan::Step;

/// How things stand.
pub(super) fn status(document: &Document, status: &StatusView, out: &mut dyn Write) -> io::Result<()> {
    let last = match (&status.last_success, status.last_success_age) {
        (Some(time), Some(age)) => format!("{time}, {} ago", ago(age)),
        _ => "never in this boot".to_owned(),
    };
    writeln!(out, "node       {}", or_dash(document.node.hostname.as_ref()))?;
    writeln!(out, "snapshot   last complete one {last}; {} kept", status.generations)?;
    let damaged =
        if status.damaged == 0 { String::new() } else { format!(", {} cannot be read", status.damaged) };
    writeln!(
        out,
        "stored     {} checkpoints{damaged}, in {}",
        status.checkpoints,
        status.state_dir.escape_debug()
    )?;
    writeln!(out, "pods       {} running, {} with a checkpoint", status.running, status.covered)?;
    for runtime in &status.runtimes {
        let version = runtime.version.as_deref().unwrap_or("-").escape_debug();
        writeln!(out, "runtime    {}: {version}, {} pods", runtime.endpoint.escape_debug(), runtime.pods)?;
    }
    if status.runtimes.is_empty() {
        writeln!(out, "runtime    none answered")?;
    }
    writeln!(
        out,
        "lock       {}",
        status.lock.as_deref().map_or("free".to_owned(), |by| format!("held by {}", by.escape_debug()))
    )?;
    match &status.window {
        Some(window) => hold::lines(window, out),
        None => writeln!(out, "window     none is open"),
    }
}

/// One pod: who it is, how it is now, and what is stored.
pub(super) fn pod(pod: &PodView, show: &ShowView, out: &mut dyn Write) -> io::Result<()> {
    let info = &pod.info;
    let known =
        |text: Option<&String>| text.map_or_else(|| "-".to_owned(), |text| text.escape_debug().to_string());
    writeln!(out, "pod        {}", title(pod))?;
    writeln!(out, "id         {}", info.id)?;
    writeln!(out, "uid        {}", known(info.uid.as_ref()))?;
    writeln!(out, "sandbox    {}, attempt {}", known(info.sandbox.as_ref()), or_dash(info.attempt))?;
    writeln!(out, "source     {}", info.source.escape_debug())?;
    writeln!(out, "netns      {}", pod.netns.as_deref().unwrap_or("-").escape_debug())?;
    let written_age = show.written_age.map(|age| format!(", {} ago", ago(age))).unwrap_or_default();
    writeln!(out, "written    {}{written_age}", or_dash(pod.created.as_ref()))?;
    writeln!(out, "seen true  {}", or_dash(pod.seen.as_ref()))?;
    let id = &info.id;
    let now = match (show.alive, &show.lost, pod.state) {
        (Some(true), Some(lost), _) => format!("lives, and has lost {lost}: run `netfix restore`"),
        (Some(true), None, State::InSync) => "lives, and has everything that is stored".to_owned(),
        (Some(true), None, _) => {
            format!("lives, and differs in {} steps: `netfix diff {id}`", pod.steps.len())
        }
        (Some(false), ..) => "does not live any more".to_owned(),
        (None, ..) => "could not be looked at".to_owned(),
    };
    writeln!(out, "now        {now}")?;
    let Some(checkpoint) = &pod.checkpoint else { return Ok(()) };
    let Some(extension) = &checkpoint.netfix else {
        return writeln!(out, "format     the origin's; no more than addresses and routes is known");
    };
    let Extension { identity, node, stack, state, .. } = extension;
    writeln!(
        out,
        "identity   cookie {}, inode {}, boot {}",
        or_dash(identity.cookie),
        identity.inode,
        known(node.boot_id.as_ref())
    )?;
    stack.iter().try_for_each(|link| ground(link, out))?;
    contents(state, out)?;
    show.settings
        .iter()
        .try_for_each(|setting| writeln!(out, "setting    {}", setting.trim_start_matches("~ sysctl ")))
}

fn ground(link: &StackLink, out: &mut dyn Write) -> io::Result<()> {
    let over = list_or_dash(&link.over, ", ");
    write!(out, "host       {} {} on {over} mtu {}", link.kind, link.name, link.mtu)?;
    if let Some(Hardware { permanent_mac, bus, driver }) = &link.hardware {
        let (driver, bus) = (or_dash(driver.as_ref()), or_dash(bus.as_ref()));
        write!(out, " permaddr {} driver {driver} bus {bus}", or_dash(*permanent_mac))?;
    }
    writeln!(out)
}

fn contents(state: &NetState, out: &mut dyn Write) -> io::Result<()> {
    for link in state.links.iter().filter(|link| link.kind != LinkKind::Loopback) {
        let made = Step::AddLink(Box::new(link.clone())).to_string();
        writeln!(out, "link       {}", made.trim_start_matches("+ "))?;
    }
    state.addresses.iter().try_for_each(|address| writeln!(out, "address    {address}"))?;
    state.routes.iter().try_for_each(|route| writeln!(out, "route      {route}"))?;
    // The kernel's own three are everywhere.
    let mut added = state.rules.iter().filter(|rule| !rule.is_made_by_kernel());
    added.try_for_each(|rule| writeln!(out, "rule       {rule}"))?;
    state.neighbours.iter().try_for_each(|neighbour| writeln!(out, "neighbour  {neighbour}"))?;
    state.unsupported.iter().try_for_each(|what| writeln!(out, "unsupported {}", what.escape_debug()))
}

pub(super) fn ago(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

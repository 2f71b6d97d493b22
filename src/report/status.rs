//! `status`: the snapshots, the pods, the runtimes, the lock and the open window on one screen.

use std::io::{self, Write};

use super::text::{count, escape, fact, or_dash, seconds};
use super::view::{Document, StatusView};
use super::window_status;

/// One fact a line.
pub(super) fn write(
    document: &Document,
    status: &StatusView,
    out: &mut dyn Write,
) -> io::Result<()> {
    let StatusView {
        state_dir,
        checkpoints,
        damaged,
        generations,
        last_success,
        last_success_age,
        running,
        covered,
        runtimes,
        lock,
        window,
    } = status;
    let node = document.node.hostname.as_deref().map(escape);
    fact(out, "node", &or_dash(node))?;
    let last = match (last_success, last_success_age) {
        (Some(time), Some(age)) => format!("{} ago ({})", seconds(*age), escape(time)),
        _ => "none in this boot".to_owned(),
    };
    fact(out, "snapshot", &format!("last complete one {last}"))?;
    let damaged = match damaged {
        0 => String::new(),
        damaged => format!(", {damaged} cannot be read"),
    };
    let checkpoints = count(*checkpoints, "checkpoint");
    let generations = count(*generations, "generation");
    fact(
        out,
        "stored",
        &format!("{checkpoints}{damaged}; {generations} kept"),
    )?;
    fact(out, "", &format!("in {}", escape(state_dir)))?;
    let missing = match running.saturating_sub(*covered) {
        0 => ", each with a checkpoint".to_owned(),
        missing => format!(", {missing} without a checkpoint. Run `netfix snapshot`"),
    };
    fact(out, "pods", &format!("{running} running{missing}"))?;
    for runtime in runtimes {
        let version = or_dash(runtime.version.as_deref().map(escape));
        let pods = count(runtime.pods, "pod");
        fact(
            out,
            "runtime",
            &format!("{version}, {pods}, at {}", escape(&runtime.endpoint)),
        )?;
    }
    if runtimes.is_empty() {
        fact(out, "runtime", "none answered")?;
    }
    let lock = lock.as_deref().map(|by| format!("held by {}", escape(by)));
    fact(out, "lock", lock.as_deref().unwrap_or("free"))?;
    match window {
        Some(window) => window_status::lines(window, out),
        None => fact(out, "window", "none open"),
    }
}

//! The kernel's lines about the devices of a window.

use super::view::ReportView;
use super::words::{self, clock};
use crate::model::window::KernelLine;
use crate::report::style::Tone;
use crate::report::table::{KEPT, NUMBER, Table};
use crate::report::text::{count, escape, join, or_dash};

/// So many lines that name no known cause are shown; others are counted.
const FEW: usize = 5;

fn lines(view: &ReportView, is_all: bool) -> Vec<&KernelLine> {
    let mut others = 0;
    let log = view.window.kernel.iter().flat_map(|log| &log.lines);
    let shown = log.filter(|line| {
        others += usize::from(line.cause.is_none());
        is_all || line.cause.is_some() || others <= FEW
    });
    shown.collect()
}

/// The lines: all, or those that name a cause and some others.
pub(super) fn table(view: &ReportView, is_all: bool) -> Table<'_, &KernelLine> {
    Table::new(lines(view, is_all))
        .column("Kernel log", KEPT, |line| {
            clock(&view.window, line.first, words::TIME)
        })
        .class(NUMBER)
        .right("Times", 1, |line| line.times)
        .class(NUMBER)
        .column("Device", 2, |line| or_dash(line.device.as_ref()))
        .column("Line", KEPT, |line| line.text.clone())
        .class("mono")
        .marked(|line| line.cause.map(|_| Tone::Warning))
}

/// What is not shown of it.
pub(super) fn left_out(view: &ReportView, is_all: bool) -> Option<String> {
    let log = view.window.kernel.as_ref()?;
    let unread = log.unread.as_ref().filter(|_| is_all);
    let unread = unread.map(|error| format!("its log cannot be read: {}", escape(error)));
    let hidden = log.lines.len() - lines(view, is_all).len();
    let hidden = (hidden > 0).then(|| format!("{} more (-v lists them)", count(hidden, "line")));
    let left_out = (log.left_out > 0).then(|| format!("{} not kept", count(log.left_out, "line")));
    let parts = [unread, hidden, left_out].into_iter().flatten();
    Some(join(parts, ", ")).filter(|text| !text.is_empty())
}

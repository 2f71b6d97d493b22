//! A window's report for the terminal.

use super::outcome::Ending;
use super::view::{ReportView, WindowLine, WindowView};
use super::words::{self, clock};
use super::{kernel, nics, settings, tables};
use crate::model::Window;
use crate::model::next::KubeletNow;
use crate::model::window::{EVICTION_AFTER, GuardDeed, KubeletPause, NOT_READY_AFTER, PhaseName};
use crate::report::problems::{self, word};
use crate::report::screen::LastLine;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, KEPT, Table};
use crate::report::text::{
    self, Facts, UNKNOWN, count, escape, expected_outage, milliseconds, milliseconds_or_dash,
    or_dash, rehearsal, seconds,
};

/// Everything about one window but its verdict.
pub(in crate::report) fn report(view: &ReportView, style: Style) -> String {
    let window = &view.window;
    let tables = [
        tables::phases(view).text(style),
        nics::table(window).text(style),
        settings::table(view).text(style),
        kernel::table(view, style.is_verbose())
            .bounded()
            .text(style),
        tables::pods(view, style.lists_all()).bounded().text(style),
    ];
    let infos = window.pods.iter().map(|pod| &pod.info);
    let problems = problems::text(window.problems.iter(), infos, word, style);
    let problems = text::wrapped(&problems, style.lines);
    text::facts(facts(view, style.is_verbose()), None) + &tables.concat() + &problems
}

/// How the window went.
pub(in crate::report) fn verdict(view: &ReportView) -> LastLine {
    let verdict = view.computed.verdict;
    let words = LastLine::new(&view.computed.sentence, verdict == Ending::Well);
    words.headed(verdict.title(), verdict.tone())
}

fn facts(view: &ReportView, is_all: bool) -> Facts {
    let window = &view.window;
    let (id, by) = (escape(&window.id), escape(&window.command));
    let node = window.node.hostname.as_deref().map(escape);
    let mut facts = vec![
        ("window", format!("{id}, opened by netfix {by}")),
        ("node", or_dash(node)),
        ("began", clock(window, 0, words::DATE_AND_TIME)),
        ("ended", ended(view)),
    ];
    facts.extend(clock_set(window).map(|note| ("clock", note)));
    let figures = window.rehearsal.as_ref();
    facts.extend(figures.map(|figures| ("rehearsal", rehearsal(figures))));
    facts.extend(figures.map(|figures| ("", expected_outage(figures))));
    if let Some(run) = &window.run {
        facts.push(("command", words::argv(run)));
        facts.push(("", words::run_end(window, PhaseName::Command, run)));
        // Of a record of an earlier netfix.
        let unknown = window.nics.is_none().then(|| UNKNOWN.to_owned());
        facts.extend(unknown.map(|unknown| ("NICs", unknown)));
    }
    if let Some(rollback) = &window.rollback {
        facts.push(("rollback", words::argv(&rollback.run)));
        let end = words::run_end(window, PhaseName::Rollback, &rollback.run);
        facts.push(("", end));
        facts.push(("", words::reason(rollback)));
    }
    match &window.pause {
        Some(hold) => {
            facts.push(("kubelet", pause(view, hold)));
            facts.extend(limits(view, hold).into_iter().map(|limit| ("", limit)));
        }
        None => facts.push(("kubelet", "not paused".to_owned())),
    }
    facts.extend(["outage", ""].into_iter().zip(outages(view)));
    let heads = std::iter::once("settings").chain(std::iter::repeat(""));
    facts.extend(heads.zip(settings::lines(view)));
    let kernel = kernel::left_out(view, is_all);
    facts.extend(kernel.map(|left_out| ("kernel log", left_out)));
    let page = view.computed.html.as_ref();
    facts.extend(window.log.as_ref().map(|log| ("log", escape(log))));
    facts.extend(page.map(|page| ("page", escape(page))));
    facts
}

/// When and how the window ended.
pub(super) fn ended(view: &ReportView) -> String {
    let window = &view.window;
    let by = window
        .closed_by
        .as_deref()
        .filter(|by| *by != window.command)
        .map(|by| format!(", by netfix {}", escape(by)))
        .unwrap_or_default();
    match (view.computed.open, window.ended) {
        (true, _) => "still open".to_owned(),
        (false, Some(last)) if window.is_ended_by_reboot() => {
            let exit = or_dash(window.exit);
            let last = clock(window, last, words::DATE_AND_TIME);
            format!("by a reboot, after {last}, exit {exit}")
        }
        (false, None) => format!("{UNKNOWN}{by}"),
        (false, Some(ended)) => {
            let exit = or_dash(window.exit);
            let at = clock(window, ended, words::DATE_AND_TIME);
            format!("{at}, after {}{by}, exit {exit}", milliseconds(ended))
        }
    }
}

/// How far the wall clock was set while the window was open.
pub(super) fn clock_set(window: &Window) -> Option<String> {
    let set = window.clock_set?;
    let sign = if set < 0 { '-' } else { '+' };
    let by = seconds((set.unsigned_abs() + 500) / 1000);
    Some(format!(
        "set by {sign}{by} while the window was open; times are by the clock at its start"
    ))
}

/// Whether systemd has the unit of the open window as running.
fn is_running(view: &ReportView) -> bool {
    let next = view.computed.next.as_ref();
    next.is_some_and(|next| next.kubelet == KubeletNow::Running)
}

/// From when to when the unit was stopped.
pub(super) fn pause(view: &ReportView, hold: &KubeletPause) -> String {
    let unit = escape(&hold.unit);
    let at = |ms: u64| clock(&view.window, ms, words::TIME);
    match (hold.paused, hold.resumed) {
        (Some(from), Some(to)) => {
            let length = milliseconds(to.saturating_sub(from));
            format!("{unit} paused for {length} ({} to {})", at(from), at(to))
        }
        (Some(from), None) if view.window.is_ended_by_reboot() => {
            format!("{unit} paused at {}; the reboot ended the pause", at(from))
        }
        (Some(from), None) if is_running(view) => {
            format!("{unit} paused at {}; it runs again", at(from))
        }
        (Some(from), None) => format!("{unit} paused at {}, not resumed", at(from)),
        (None, Some(to)) => format!("{unit} not seen stopped; running at {}", at(to)),
        (None, None) => format!("{unit} not seen stopped"),
    }
}

/// The pause beside what the control plane waits for, and the deadline.
pub(super) fn limits(view: &ReportView, hold: &KubeletPause) -> Vec<String> {
    let pause = view.computed.pause_ms.map(|ms| {
        let side = |limit: u64| if ms < limit * 1000 { "below" } else { "BEYOND" };
        let limits = [NOT_READY_AFTER, EVICTION_AFTER];
        let [not_ready, eviction] = limits.map(|s| format!("{} {}", side(s), seconds(s)));
        format!("{not_ready} (node NotReady), {eviction} (eviction)")
    });
    let deadline = seconds(hold.deadline);
    let deadline = match hold.armed {
        Some(armed) => format!("deadline {deadline}, armed after {}", milliseconds(armed)),
        None => format!("deadline {deadline}, not armed"),
    };
    pause.into_iter().chain([deadline]).collect()
}

/// The longest and the median outage, and the pods of which no end is known; nothing when no pod lost anything.
pub(super) fn outages(view: &ReportView) -> Vec<String> {
    let outages = &view.computed.outages;
    let known = outages.pods.first().zip(outages.median_ms);
    let known = known.map(|(longest, median)| {
        let (length, median) = (milliseconds(longest.ms), milliseconds(median));
        let title = escape(&view.title_of(&longest.id));
        let of = count(outages.pods.len(), "pod");
        format!("median {median} of {of}, longest {length} ({title})")
    });
    let unanswered = match outages.unanswered {
        0 => None,
        lost if view.window.is_ended_by_reboot() => Some(format!(
            "{} lost, no answer before the reboot",
            count(lost, "pod")
        )),
        lost => Some(format!(
            "unknown for {}: no gateway answer since the loss",
            count(lost, "pod")
        )),
    };
    let unseen = (outages.unseen > 0).then(|| {
        let pods = count(outages.unseen, "pod");
        format!(
            "{pods} lost before {}, nobody knows when",
            escape(&view.window.started)
        )
    });
    known.into_iter().chain(unanswered).chain(unseen).collect()
}

/// Every window, and what the guard left alone, in one line.
pub(in crate::report) fn list(all: &[WindowView], style: Style) -> String {
    fn of<T: ToString>(row: &WindowView, value: impl Fn(&WindowLine) -> T) -> String {
        or_dash(row.window.as_ref().map(value))
    }
    /// A column that what was left alone has too.
    fn either(
        row: &WindowView,
        left: impl Fn(&GuardDeed) -> &str,
        value: impl Fn(&WindowLine) -> String,
    ) -> String {
        match &row.left {
            Some(deed) => left(deed).to_owned(),
            None => of(row, value),
        }
    }
    Table::new(all)
        .column("Window", KEPT, |row| match row.left {
            Some(_) => "-".to_owned(),
            None => row.id.clone(),
        })
        .column("By", 4, |row| {
            either(row, |_| "guard", |line| line.command.clone())
        })
        .column("Began", 5, |row| {
            either(row, |deed| &deed.at, |line| line.started.clone())
        })
        .right("Lasted", 3, |row| {
            of(row, |line| milliseconds_or_dash(line.ended))
        })
        .right("Pods back", 1, |row| {
            of(row, |line| match line.verdict {
                Ending::GivenUp => "-".to_owned(),
                _ => words::back(&line.pods),
            })
        })
        .right("Outage", 6, |row| {
            of(row, |line| milliseconds_or_dash(line.worst_ms))
        })
        .right("Exit", 2, |row| of(row, |line| or_dash(line.exit)))
        .column("Verdict", KEPT, |row| match (&row.window, &row.left) {
            (Some(line), _) => Cell::toned(line.verdict.title(), Some(line.verdict.tone())),
            (None, Some(_)) => Cell::toned("Left alone", Some(Tone::Warning)),
            (None, None) => Cell::toned("cannot be read", Some(Tone::Bad)),
        })
        .column("Cause", 7, |row| {
            either(row, |deed| &deed.text, |line| or_dash(line.cause.as_ref()))
        })
        .text(style)
}

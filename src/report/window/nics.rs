//! The NICs before and after a window: which driver and firmware run them.

use std::collections::BTreeMap;

use crate::model::{Nic, Window, WindowNic};
use crate::report::style::Tone;
use crate::report::table::{Cell, KEPT, Table};
use crate::report::text::{UNKNOWN, escape, join, or_dash};

/// The NICs of the record.
pub(super) fn table(window: &Window) -> Table<'_, &WindowNic> {
    Table::new(window.nics.iter().flatten())
        .column("NIC", KEPT, |nic| or_dash(nic.name()))
        .heads_rows()
        .column("Before", KEPT, |nic| before(nic))
        .column("After", KEPT, |nic| {
            let (words, tone) = after(nic);
            Cell::toned(words, tone)
        })
        .column("Firmware", 1, |nic| firmware(nic))
        .column("Bus", 2, |nic| bus(nic))
        .class("mono")
        .marked(|nic| after(nic).1)
}

/// Driver and version.
fn driver(nic: &Nic) -> String {
    let version = nic.version.iter().map(|version| escape(version));
    let driver = or_dash(nic.driver.as_deref().map(escape));
    join(std::iter::once(driver).chain(version), " ")
}

fn before(nic: &WindowNic) -> String {
    let before = nic.before.as_ref();
    before.map_or_else(|| "absent".to_owned(), driver)
}

/// The driver now, and what else is different.
fn after(nic: &WindowNic) -> (String, Option<Tone>) {
    let (before, now) = match (&nic.before, &nic.after, nic.present) {
        (_, None, None | Some(true)) => return (UNKNOWN.to_owned(), None),
        (_, None, Some(false)) => return ("absent".to_owned(), Some(Tone::Bad)),
        (None, Some(now), _) => return (driver(now), None),
        (Some(before), Some(now), _) => (before, now),
    };
    let is_known = now.driver.is_some();
    let words = if is_known && before.has_same_driver(now) {
        "same".to_owned()
    } else {
        driver(now)
    };
    let renamed = (before.name != now.name).then(|| format!("now named {}", now.name));
    let has_lost_carrier = before.carrier && !now.carrier;
    let silent = has_lost_carrier.then(|| "no carrier".to_owned());
    let words = join([words].into_iter().chain(renamed).chain(silent), ", ");
    (words, has_lost_carrier.then_some(Tone::Bad))
}

/// The firmware, or that before and now.
fn firmware(nic: &WindowNic) -> String {
    let of = |nic: &Option<Nic>| {
        let firmware = nic.as_ref().and_then(|nic| nic.firmware.as_deref());
        or_dash(firmware.map(escape))
    };
    match (of(&nic.before), of(&nic.after)) {
        (before, now) if nic.after.is_none() || before == now => before,
        (_, now) if nic.before.is_none() => now,
        (before, now) => format!("{before}, now {now}"),
    }
}

fn bus(nic: &WindowNic) -> String {
    let known = nic.after.as_ref().or(nic.before.as_ref());
    or_dash(known.and_then(|nic| nic.bus.as_deref()).map(escape))
}

/// Each NIC of a window, with the driver and version that ran it before, and the one after; unknown: nothing.
pub(in crate::report) fn changes(window: &Window) -> impl Iterator<Item = [String; 3]> {
    window.nics.iter().flatten().map(|nic| {
        let after = match (&nic.after, nic.present) {
            (Some(now), _) => driver(now),
            (None, Some(false)) => "absent".to_owned(),
            (None, _) => String::new(),
        };
        [or_dash(nic.name()), before(nic), after]
    })
}

/// Which drivers run the NICs after a rollback, in one sentence; `None` where no NIC is known.
pub(super) fn drivers(window: &Window) -> Option<String> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for nic in window.nics.iter().flatten() {
        let words = match (&nic.before, &nic.after, nic.present) {
            (_, _, Some(false)) => "absent".to_owned(),
            (_, None, _) => "driver unknown".to_owned(),
            (Some(before), Some(now), _) if before.has_same_driver(now) => {
                format!("{}, as before", driver(now))
            }
            (Some(before), Some(now), _) => {
                format!("{}, not {} as before", driver(now), driver(before))
            }
            (None, Some(now), _) => format!("{}, new", driver(now)),
        };
        groups.entry(words).or_default().push(or_dash(nic.name()));
    }
    let group = |(words, names): (String, Vec<String>)| match names.as_slice() {
        [one] => format!("{one}: {words}"),
        [one, other] => format!("{one} and {other}: {words}"),
        all => format!("{} NICs: {words}", all.len()),
    };
    (!groups.is_empty()).then(|| join(groups.into_iter().map(group), "; "))
}

//! The actions of filters: from what the kernel reports to what is stored, and to what it takes (`net/sched/act_*.c`).

use crate::kernel::codec::nested::{Nested, clear, word};
use crate::model::net::traffic::RedirectLink;

/// The links of the namespace, by ifindex.
pub(super) type LinkAt<'a> = &'a dyn Fn(u32) -> Option<RedirectLink>;

/// `TCA_ACT_*` (`linux/pkt_cls.h`).
const TCA_ACT_KIND: u16 = 1;
pub(super) const TCA_ACT_OPTIONS: u16 = 2;
/// `TCA_ACT_STATS`, `TCA_ACT_PAD`, `TCA_ACT_USED_HW_STATS`, `TCA_ACT_IN_HW_COUNT`.
const STATES: [u16; 4] = [4, 5, 9, 10];

/// `TCA_GACT_*` and `TCA_MIRRED_*`: times since the last use, and padding.
const TM: u16 = 1;
pub(super) const PARAMETERS: u16 = 2;
const GACT_PAD: u16 = 4;
const MIRRED_PAD: u16 = 3;
/// `TCA_MIRRED_BLOCKID`.
const MIRRED_BLOCK: u16 = 4;
/// `refcnt` and `bindcnt` of `tc_gen`, and `ifindex` of `struct tc_mirred`.
const GENERIC_COUNTS: std::ops::Range<usize> = 12..20;
pub(super) const MIRRED_IFINDEX: usize = 24;

/// `TCA_POLICE_*`.
const TCA_POLICE_TBF: u16 = 1;
const TCA_POLICE_RATE: u16 = 2;
const TCA_POLICE_PEAKRATE: u16 = 3;
/// `TCA_POLICE_TM`, `TCA_POLICE_PAD`.
const POLICE_STATES: [u16; 2] = [6, 7];
/// `struct tc_police`: `rate`, `peakrate`, then `refcnt` and `bindcnt`.
const POLICE_RATES: [(usize, u16); 2] = [(20, TCA_POLICE_RATE), (32, TCA_POLICE_PEAKRATE)];
const POLICE_COUNTS: std::ops::Range<usize> = 44..52;

/// The list of actions in an attribute of a filter, without state. An error is the action that netfix cannot restore.
pub(super) fn storable(
    list: &[u8],
    at: LinkAt<'_>,
    links: &mut Vec<RedirectLink>,
) -> Result<Vec<u8>, String> {
    let mut list = Nested::parse(list).ok_or("actions that netfix cannot decode")?;
    for value in list.values_mut() {
        let mut action = Nested::parse(value).ok_or("an action that netfix cannot decode")?;
        action.remove(&STATES);
        let kind = kind(&action);
        if let Some(options) = action.get_mut(TCA_ACT_OPTIONS) {
            *options = storable_options(&kind, options, at, links)?;
        }
        *value = action.bytes();
    }
    Ok(list.bytes())
}

pub(super) fn kind(action: &Nested) -> String {
    let bytes = action.get(TCA_ACT_KIND).unwrap_or_default();
    String::from_utf8_lossy(bytes)
        .trim_end_matches('\0')
        .to_owned()
}

fn storable_options(
    kind: &str,
    options: &[u8],
    at: LinkAt<'_>,
    links: &mut Vec<RedirectLink>,
) -> Result<Vec<u8>, String> {
    let mut options = match Nested::parse(options) {
        Some(options) if matches!(kind, "gact" | "mirred" | "police") => options,
        _ => return Err(format!("action {kind}")),
    };
    match kind {
        "gact" => options.remove(&[TM, GACT_PAD]),
        "mirred" => options.remove(&[TM, MIRRED_PAD]),
        _ => return Ok(storable_police(options)),
    }
    let parameters = options
        .get_mut(PARAMETERS)
        .ok_or_else(|| format!("action {kind}"))?;
    clear(parameters, GENERIC_COUNTS);
    if kind == "mirred" {
        let index = word(parameters, MIRRED_IFINDEX).unwrap_or_default();
        let has_block = options.get(MIRRED_BLOCK).is_some();
        let link = at(index).filter(|_| !has_block);
        links.push(link.ok_or("action mirred to what is no link of the namespace")?);
    }
    Ok(options.bytes())
}

/// The options of `police` without state.
pub(super) fn storable_police(mut options: Nested) -> Vec<u8> {
    options.remove(&POLICE_STATES);
    if let Some(parameters) = options.get_mut(TCA_POLICE_TBF) {
        clear(parameters, POLICE_COUNTS);
    }
    options.bytes()
}

/// The list of actions to send for a stored one.
pub(super) fn sendable(list: &[u8]) -> Vec<u8> {
    let Some(mut parsed) = Nested::parse(list) else {
        return list.to_vec();
    };
    for value in parsed.values_mut() {
        let Some(mut action) = Nested::parse(value) else {
            continue;
        };
        if kind(&action) == "police"
            && let Some(options) = action.get_mut(TCA_ACT_OPTIONS)
        {
            *options = sendable_police(options);
        }
        *value = action.bytes();
    }
    parsed.bytes()
}

/// The options of `police` with tables for its rates: the kernel only checks that they are there and have a cell size
/// (`qdisc_get_rtab`), and reports neither.
pub(super) fn sendable_police(options: &[u8]) -> Vec<u8> {
    /// `TC_RTAB_SIZE` (`linux/pkt_sched.h`).
    const TABLE: usize = 1024;
    const RATE: usize = 8;
    let Some(mut options) = Nested::parse(options) else {
        return options.to_vec();
    };
    for (at, table) in POLICE_RATES {
        let Some(parameters) = options.get_mut(TCA_POLICE_TBF) else {
            break;
        };
        let has_rate = word(parameters, at + RATE).is_some_and(|rate| rate != 0);
        // `cell_log`, the first byte of `struct tc_ratespec`.
        let size = parameters.get_mut(at).filter(|_| has_rate);
        if let Some(size) = size {
            *size = (*size).max(1);
            if options.get(table).is_none() {
                options.push(table, vec![0; TABLE]);
            }
        }
    }
    options.bytes()
}

//! Whether a pod is in sync, drifted or lost, by the cases in `testdata/verdict`: one directory for each case, with the state
//! before, the present state, and the verdict.
//!
//! `NETFIX_BLESS=1 cargo test --test plan` writes the results again; read them before the commit.

use std::collections::BTreeSet;

use netfix::model::{AnswerRecord, ChainLink, HostSide, IfName, Loss, NetState, StackLink};
use netfix::plan::snapshot_quality::BesideState;
use netfix::plan::{self, DaemonState, HostLinks, NicRules, Observed, PodVerdict};
use serde::Deserialize;

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The reason for the case.
    why: String,
    before: NetState,
    now: NetState,
    /// The host's links that are there.
    present: BTreeSet<IfName>,
}

fn verdict(case: &Case) -> String {
    let observed = Observed {
        state: &case.now,
        new_link: None,
        age: 0,
        daemons: DaemonState::Leave,
        nic: NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    let links = HostLinks {
        present: case.present.clone(),
        ..HostLinks::default()
    };
    let plan = plan::pod(&case.before, &BTreeSet::new(), observed, &links);
    match PodVerdict::new(
        plan::snapshot_quality::loss(&case.before, &[], &case.now),
        &plan,
    ) {
        PodVerdict::InSync => "in sync\n".to_owned(),
        PodVerdict::Drifted => "drifted\n".to_owned(),
        PodVerdict::CutOff { .. } => unreachable!("no record is marked"),
        PodVerdict::Lost(Loss { link, what }) => format!("lost: {link} {what}\n"),
        PodVerdict::Unknown(problem) => format!("unknown: {problem}\n"),
    }
}

#[test]
fn every_case_in_testdata_has_its_verdict() {
    let cases = cases::read::<Case>("verdict");
    assert!(cases.len() >= 8, "only {} cases", cases.len());
    cases::compare(&cases, "verdict.txt", |case| &case.why, verdict);
}

/// A pod and the host under it, before and after something was changed, as the kernel had it; pings from inside the pod and to it showed
/// whether it was alive after that.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachCase {
    /// What was changed.
    why: String,
    alive: bool,
    good: NetState,
    stack: Vec<StackLink>,
    chain: Vec<ChainLink>,
    /// What had answered the pod.
    #[serde(default)]
    answers: Vec<AnswerRecord>,
    now: NetState,
    host: NetState,
}

fn reach(case: &ReachCase) -> String {
    let beside = BesideState {
        stack: &case.stack,
        chain: &case.chain,
        answers: &case.answers,
    };
    let host = HostSide::new(&case.host);
    let lost = plan::snapshot_quality::pod_loss(&case.good, beside, &case.now, &host);
    assert_eq!(lost.is_none(), case.alive, "{}: {lost:?}", case.why);
    match lost {
        None => "reaches the same\n".to_owned(),
        Some(Loss { link, what }) => format!("{}: {link} {what}\n", what.word()),
    }
}

#[test]
fn a_pod_is_lost_where_pings_show_that_it_is_dead_and_only_there() {
    let cases = cases::read::<ReachCase>("reach");
    let alive = cases.iter().filter(|(_, case)| case.alive).count();
    assert!(cases.len() >= 60 && alive * 3 >= cases.len(), "few cases");
    cases::compare(&cases, "verdict.txt", |case| &case.why, reach);
}

/// The host before and after something was changed, as the kernel had it; pings from it showed whether it was alive after that.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostCase {
    /// What was changed.
    why: String,
    alive: bool,
    good: NetState,
    /// What had answered it.
    #[serde(default)]
    answers: Vec<AnswerRecord>,
    now: NetState,
}

fn host(case: &HostCase) -> String {
    let lost =
        plan::snapshot_quality::host_loss(&case.good, &case.answers, &case.now, BTreeSet::new());
    assert_eq!(lost.is_none(), case.alive, "{}: {lost:?}", case.why);
    match lost {
        None => "reaches the same\n".to_owned(),
        Some((link, what)) => format!("{}: {link} {what}\n", what.word()),
    }
}

#[test]
fn the_host_is_lost_where_pings_show_that_it_is_dead_and_only_there() {
    let cases = cases::read::<HostCase>("reach-host");
    assert!(cases.len() >= 4, "few cases");
    cases::compare(&cases, "verdict.txt", |case| &case.why, host);
}

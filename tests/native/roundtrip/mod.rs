//! Random namespaces: snapshot, a loss, restore; afterwards nothing differs, or the snapshot or the rehearsal
//! said so before.
//!
//! `NETFIX_CASES=1000 NETFIX_SEED=7 cargo test --features failpoints,fuzzing --test native roundtrip` runs other ones, and more;
//! with `NETFIX_FIRST=28` not those before that.
//! A case that fails is made smaller and printed: it belongs into `testdata/roundtrip`.

mod case;
mod daemons;
mod decided;
mod ending;
mod forecast;
pub(crate) mod lines;
mod named;
mod random;
mod scene;
mod witness;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use case::Case;
use ending::Ending;

use crate::common::tool;

pub(crate) fn number(variable: &str, default: u64) -> u64 {
    tool::number(variable).unwrap_or(default)
}

/// Prints a case that fails, whole and made smaller: what is left may fail in another way.
fn report(title: &str, case: Case, why: &str) {
    let json = |case: &Case| serde_json::to_string_pretty(case).expect("a case");
    eprintln!("{title}, whole: {}\n{why}\n", json(&case));
    if number("NETFIX_SMALLER", 1) == 0 {
        return;
    }
    let (case, why) = case.smaller(|case| match ending::of(case) {
        Ending::Different(why) => Some(why),
        Ending::Equal(_) | Ending::Named | Ending::Foreseen(_) => None,
    });
    eprintln!("{title}: {}\n{why}\n", json(&case));
}

/// Runs the work for each of these numbers, several at a time.
pub(crate) fn side_by_side(numbers: Range<u64>, work: impl Fn(u64) + Sync) {
    let (next, limit) = (AtomicU64::new(numbers.start), numbers.end);
    std::thread::scope(|scope| {
        for _ in 0..number("NETFIX_THREADS", 4) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && at < limit
                {
                    work(at);
                }
            });
        }
    });
}

#[test]
fn what_a_random_pod_loses_comes_back_or_was_named() {
    let (cases, seed) = (number("NETFIX_CASES", 16), number("NETFIX_SEED", 103));
    let first = number("NETFIX_FIRST", 0);
    let counter = || AtomicUsize::new(0);
    let (equal, named, foreseen, accepted) = (counter(), counter(), counter(), counter());
    let failures = Mutex::new(Vec::new());
    side_by_side(first..first + cases, |at| {
        let case = random::case(seed.wrapping_mul(0x1_0000_0001).wrapping_add(at));
        match ending::of(&case) {
            Ending::Equal(lines) => {
                accepted.fetch_add(lines, Ordering::Relaxed);
                equal.fetch_add(1, Ordering::Relaxed);
            }
            Ending::Named => {
                named.fetch_add(1, Ordering::Relaxed);
            }
            Ending::Foreseen(lines) => {
                eprintln!("case {at} of seed {seed}, foreseen by the rehearsal:\n{lines}");
                foreseen.fetch_add(1, Ordering::Relaxed);
            }
            Ending::Different(first) => {
                eprintln!(
                    "case {at} of seed {seed} ends with a difference; looking for a smaller one\n{first}"
                );
                report(&format!("case {at} of seed {seed}"), case, &first);
                failures.lock().expect("the failures").push(at);
            }
        }
    });
    let (equal, named) = (equal.into_inner(), named.into_inner());
    let accepted = accepted.into_inner();
    let failures = failures.into_inner().expect("the failures");
    eprintln!(
        "seed {seed}: {equal} equal ({accepted} lines), {named} named by the snapshot, {} foreseen by the rehearsal, {} different",
        foreseen.into_inner(),
        failures.len()
    );
    assert!(failures.is_empty(), "cases {failures:?} of seed {seed}");
    assert!(
        equal > named && accepted > 5 * equal,
        "{equal} equal, {named} named, {accepted} lines"
    );
}

#[test]
fn a_loss_that_makes_a_route_which_the_pod_lacks_is_foreseen() {
    let text = include_str!("../../../testdata/roundtrip/broadcast-route-that-the-pod-lacks.json");
    let case: Case = serde_json::from_str(text).expect("a case");
    match ending::of(&case) {
        Ending::Foreseen(lines) => assert!(lines.contains("10.88.255.255"), "{lines}"),
        Ending::Different(what) => panic!("{what}"),
        Ending::Equal(_) | Ending::Named => panic!("the loss makes no route"),
    }
}

#[test]
fn every_case_in_testdata_comes_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/roundtrip");
    let files: Vec<_> = fs::read_dir(&root)
        .expect("the cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    assert!(!files.is_empty());
    let failures = Mutex::new(Vec::new());
    side_by_side(0..files.len() as u64, |at| {
        let file = files[usize::try_from(at).expect("a small number")].display();
        let text = fs::read_to_string(file.to_string()).expect("a case");
        let case: Case =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        if let Ending::Different(what) = ending::of(&case) {
            eprintln!("{file}: {what}");
            failures
                .lock()
                .expect("the failures")
                .push(file.to_string());
        }
    });
    let failures = failures.into_inner().expect("the failures");
    assert!(failures.is_empty(), "{failures:#?}");
}

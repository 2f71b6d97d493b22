//! How long a restore takes, against the floor: hand-made netlink messages that do nothing but create what
//! was lost.
//!
//! `cargo bench --bench restore -- huge` compares the restore of many pods with and without one that has tens of thousands of
//! objects.
//!
//! `cargo bench --bench restore -- commands [PODS [ROUNDS]]` times the commands that find nothing to do.
//!
//! `cargo bench --bench restore -- rehearsal [PODS [ROUNDS]]` times a rehearsal, and what others wait that create pods meanwhile.
//!
//! `cargo bench --bench restore -- profile [PODS]` shows where the time of a restore goes; it needs perf(1).
//!
//! `cargo bench --bench restore -- [PODS [ROUNDS]]`, or `NETFIX_BENCH_PODS` and `NETFIX_BENCH_ROUNDS`. Needs
//! root, and the example `engine`, which `scripts/bench` builds first. The benchmark times whole processes, in turn, and checks every
//! run. Absolute times differ between machines: quote ratios.

#![allow(
    clippy::expect_used,
    reason = "a measurement that went wrong must stop"
)]
#![allow(clippy::print_stdout, reason = "the table is the answer")]

mod commands;
#[path = "../../tests/common/mod.rs"]
mod common;
mod contestants;
mod cost;
mod floor;
mod huge;
mod lab;
mod others;
mod profile;
mod rehearsal;

use std::process::ExitCode;
use std::time::Duration;

use contestants::Contestant;
use cost::Cost;
use lab::Lab;

const PODS: usize = 250;
const ROUNDS: usize = 9;
/// The time that netfix may take, as a multiple of the floor, from this number of pods on.
const TARGET: f64 = 3.6;
const TARGET_FROM: usize = 250;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let [first, rest @ ..] = arguments.as_slice() {
        match &**first {
            floor::COMMAND => floor::run(rest),
            floor::READY_COMMAND => floor::run_from_ready_plan(rest),
            floor::TWIN_COMMAND => floor::run_in_new_namespaces(rest),
            commands::NOTHING => {}
            _ => return measure(&arguments),
        }
        return ExitCode::SUCCESS;
    }
    measure(&arguments)
}

fn measure(arguments: &[String]) -> ExitCode {
    if let [first, rest @ ..] = arguments
        && first == huge::COMMAND
    {
        return huge::run(rest);
    }
    let is = |word: &str| arguments.first().is_some_and(|first| first == word);
    let (is_commands, is_profile) = (is(commands::COMMAND), is(profile::COMMAND));
    let is_rehearsal = is(rehearsal::COMMAND);
    let arguments = &arguments[usize::from(is_commands || is_profile || is_rehearsal)..];
    let number = |at: usize, variable: &str, default: usize| {
        let text = arguments
            .get(at)
            .cloned()
            .or_else(|| std::env::var(variable).ok());
        text.map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|e| panic!("{text:?} is no number: {e}"))
        })
    };
    let pods = number(0, "NETFIX_BENCH_PODS", PODS);
    let rounds = number(1, "NETFIX_BENCH_ROUNDS", ROUNDS);
    if is_commands {
        commands::run(pods, rounds);
        return ExitCode::SUCCESS;
    }
    if is_rehearsal {
        return rehearsal::run(pods, rounds);
    }
    if is_profile {
        profile::run(pods);
        return ExitCode::SUCCESS;
    }
    compare(&Lab::new(pods), pods, rounds)
}

fn compare(lab: &Lab, pods: usize, rounds: usize) -> ExitCode {
    let contestants = contestants::all(lab);
    let mut times: Vec<Vec<Cost>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for turn in 0..contestants.len() {
            // The order rotates; the first round warms up and does not count.
            let at = (turn + round) % contestants.len();
            let cost = lab.lose_restore_and_check(&contestants[at]);
            if round > 0 {
                times[at].push(cost);
            }
        }
    }
    report(&contestants, &times, pods, rounds)
}

fn report(contestants: &[Contestant], costs: &[Vec<Cost>], pods: usize, rounds: usize) -> ExitCode {
    println!("{pods} pods, {rounds} rounds in turn, every run checked");
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "restore by", "median ms", "least ms", "most ms", "user ms", "system ms", "x floor"
    );
    let mut is_in_target = true;
    for (contestant, own) in contestants.iter().zip(costs) {
        let is_reference = |other: &Contestant| other.name == contestant.reference;
        let reference = contestants.iter().position(is_reference);
        let reference = &costs[reference.expect("the floor is a contestant")];
        let ratio = median(&ratios(own, reference));
        let of = |part: fn(&Cost) -> Duration| -> Vec<f64> {
            own.iter()
                .map(|cost| part(cost).as_secs_f64() * 1000.0)
                .collect()
        };
        let took = of(|cost| cost.took);
        println!(
            "{:<28} {:>10.1} {:>10.1} {:>10.1} {:>9.1} {:>9.1} {ratio:>9.2}",
            contestant.name,
            median(&took),
            took.iter().copied().fold(f64::MAX, f64::min),
            took.iter().copied().fold(0.0, f64::max),
            median(&of(|cost| cost.user)),
            median(&of(|cost| cost.system)),
        );
        if contestant.name == contestants::NETFIX && pods >= TARGET_FROM {
            is_in_target = ratio <= TARGET;
        }
    }
    if is_in_target {
        return ExitCode::SUCCESS;
    }
    println!("netfix is above {TARGET} times the floor");
    ExitCode::FAILURE
}

/// Each run compared with the floor's run of the same round.
fn ratios(own: &[Cost], floor: &[Cost]) -> Vec<f64> {
    own.iter()
        .zip(floor)
        .map(|(own, floor)| own.took.as_secs_f64() / floor.took.as_secs_f64())
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

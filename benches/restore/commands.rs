//! What the commands cost that change nothing in the pods, and how much memory netfix needs.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::common::tool;
use crate::contestants::{RESTORE, netfix, start_in_node};
use crate::lab::Lab;
use crate::median;

/// The first argument for this comparison.
pub const COMMAND: &str = "commands";

const COMMANDS: [(&str, &str); 4] = [
    ("snapshot, nothing changed", "snapshot"),
    ("restore, nothing to do", RESTORE),
    ("diff", "diff"),
    ("check", "check"),
];

/// `commands [PODS [ROUNDS]]`
pub fn run(pods: usize, rounds: usize) {
    let lab = Lab::new(pods);
    let first = timed(|| start_in_node(&lab, &mut netfix(&lab, "snapshot")));
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); COMMANDS.len()];
    // The first round warms up and does not count.
    for round in 0..=rounds {
        for (times, (_, words)) in times.iter_mut().zip(COMMANDS) {
            let took = timed(|| start_in_node(&lab, &mut netfix(&lab, words)));
            if round > 0 {
                times.push(took);
            }
        }
    }
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss());
    let shell = timed(|| shell_snapshot(&lab));
    println!("{pods} pods, {rounds} rounds in turn, medians");
    println!("{:<28} {:>10} {:>10}", "", "ms", "us a pod");
    let line = |name: &str, ms: f64| {
        println!(
            "{name:<28} {ms:>10.1} {:>10.1}",
            ms * 1000.0 / as_float(pods)
        );
    };
    line("snapshot, the first", first);
    for ((name, _), times) in COMMANDS.iter().zip(&times) {
        line(name, median(times));
    }
    line("three `ip -n POD -j` a pod", shell);
    println!(
        "a snapshot with a loop of ip(8) takes {:.0} times as long",
        shell / median(&times[0])
    );
    println!(
        "peak memory of netfix: {:.1} MiB",
        as_float(usize::try_from(peak).unwrap_or(0)) / 1024.0
    );
}

fn as_float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    Duration::as_secs_f64(&start.elapsed()) * 1000.0
}

/// What people write instead of a snapshot: links, addresses and routes of every pod.
fn shell_snapshot(lab: &Lab) {
    for pod in &lab.pods {
        for object in ["link", "addr", "route"] {
            tool::run(Command::new("ip").args(["-n", pod.ns.name(), "-j", object]));
        }
    }
}

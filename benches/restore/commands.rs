//! What the commands cost that change nothing in the pods, how long the pods are without an answer, and what netfix needs to start
//! and in memory.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::common::run::BINARY;
use crate::common::{GATEWAY4, tool};
use crate::contestants::{RESTORE, netfix, start_in_node, until_answer};
use crate::lab::Lab;
use crate::median;

/// The first argument for this comparison.
pub const COMMAND: &str = "commands";

/// The first argument for a program that only starts and ends.
pub const NOTHING: &str = "nothing";

const COMMANDS: [(&str, &str); 5] = [
    ("snapshot, nothing changed", "snapshot"),
    ("restore, nothing to do", RESTORE),
    ("diff", "diff"),
    ("check", "check"),
    ("verify", "verify"),
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
    // The kernel has room for 1024 neighbours, of all namespaces together (`gc_thresh3`); each pod costs two.
    if pods <= 250 {
        let outages: Vec<_> = (0..rounds).map(|_| outage(&lab, RESTORE)).collect();
        let of =
            |part: fn(&(f64, f64)) -> f64| median(&outages.iter().map(part).collect::<Vec<_>>());
        line("restore, from carrier on", of(|outage| outage.0));
        line("  until every pod has an answer", of(|outage| outage.1));
        let ratio = of(|(restore, answer)| answer / restore);
        println!("the last pod has an answer after {ratio:.2} times what the restore takes");
        let defaults: Vec<f64> = (0..rounds).map(|_| outage(&lab, "restore").1).collect();
        let seconds = median(&defaults) / 1000.0;
        println!("carrier to last answer, defaults (probe on): {seconds:.2} s");
    }
    start_up(rounds);
    println!(
        "peak memory of netfix: {:.1} MiB",
        as_float(usize::try_from(peak).unwrap_or(0)) / 1024.0
    );
}

/// How long after carrier this restore is complete, and the last pod has had an answer from its gateway, in milliseconds.
fn outage(lab: &Lab, words: &str) -> (f64, f64) {
    lab.node.lose_and_reload();
    let start = Instant::now();
    let mut last = Duration::ZERO;
    let restored = until_answer(lab, &mut netfix(lab, words), || {
        for pod in &lab.pods {
            pod.ns.enter(|| ask_gateway(pod.ns.name()));
        }
        last = start.elapsed();
    });
    (milliseconds(restored), milliseconds(last))
}

/// Nothing listens on that port of the gateway, whose kernel says so.
fn ask_gateway(pod: &str) {
    const DISCARD: u16 = 9;
    let address: IpAddr = GATEWAY4.parse().expect("an address");
    let answer = TcpStream::connect_timeout(&(address, DISCARD).into(), Duration::from_secs(5));
    let refused = answer.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!(refused, "{pod} gets no answer from its gateway");
}

/// What netfix takes longer than a program that does nothing: to start, and for a `check` without pods and records.
fn start_up(rounds: usize) {
    const TIMES: usize = 10;
    let lab = Lab::new(0);
    let own = std::env::current_exe().expect("this program's path");
    let program = |path: &std::path::Path, word: &str| {
        let mut command = Command::new(path);
        command.arg(word);
        command
    };
    let mut nothing = program(&own, NOTHING);
    let mut version = program(BINARY.as_ref(), "--version");
    let mut check = netfix(&lab, "check");
    let mut times = [(); 3].map(|()| Vec::new());
    for _ in 0..rounds * TIMES {
        for (times, command) in times
            .iter_mut()
            .zip([&mut nothing, &mut version, &mut check])
        {
            command.stdin(Stdio::null());
            times.push(timed(|| drop(lab.node.ns.enter(|| command.output()))));
        }
    }
    let [nothing, version, check] = times.map(|times| median(&times));
    println!("{:<28} {:>10}", "start-up", "ms");
    println!("{:<28} {nothing:>10.2}", "a program that does nothing");
    println!("{:<28} {version:>10.2}", "netfix --version");
    println!("{:<28} {check:>10.2}", "netfix check, no pods");
}

fn as_float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    milliseconds(start.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What people write instead of a snapshot: links, addresses and routes of every pod.
fn shell_snapshot(lab: &Lab) {
    for pod in &lab.pods {
        for object in ["link", "addr", "route"] {
            tool::run(Command::new("ip").args(["-n", pod.ns.name(), "-j", object]));
        }
    }
}

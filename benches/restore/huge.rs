//! Many pods, one of which has tens of thousands of objects: how long do the others wait for their restore, compared with the
//! same node before that one had them?
//!
//! Each pod is back when its ARP announcement is on the wire, which is the last that a restore does for it. The times are
//! those of tcpdump at the gateway.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use crate::common::background::{Background, tcpdump, wait_until};
use crate::contestants::{RESTORE, netfix, start_in_node, until_answer};
use crate::lab::Lab;
use crate::median;

/// The first argument for this comparison.
pub const COMMAND: &str = "huge";
/// How much longer the others may take.
const TARGET: f64 = 1.2;

/// `huge [PODS [OBJECTS [ROUNDS]]]`
pub fn run(arguments: &[String]) -> ExitCode {
    let number = |at: usize, default: usize| {
        let text = arguments.get(at);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let (pods, objects, rounds) = (number(0, 50), number(1, 50_000), number(2, 7));
    let lab = Lab::new(pods);
    println!("{pods} pods, of which one gets that many objects; {rounds} rounds in turn, medians");
    println!(
        "{:<12} {:>8} {:>15} {:>15} {:>15} {:>7}",
        "objects", "number", "others without", "others with", "all with", "ratio"
    );
    let mut is_good = true;
    for (kind, most, line, remove) in KINDS {
        let number = most.map_or(objects, |most| objects.min(most));
        let add = lines(number, line);
        let pod = lab.pods[0].ns.name();
        let round = |_| {
            let (without, _) = times(&lab);
            lab.batch("huge", &add, pod);
            let (with, all) = times(&lab);
            lab.batch("huge", remove, pod);
            [without, with, all, with / without]
        };
        // The first warms up and does not count.
        let rounds: Vec<[f64; 4]> = (0..=rounds).map(round).skip(1).collect();
        let of = |at: usize| median(&rounds.iter().map(|round| round[at]).collect::<Vec<_>>());
        is_good &= of(3) <= TARGET;
        println!(
            "{kind:<12} {number:>8} {:>12.1} ms {:>12.1} ms {:>12.1} ms {:>7.2}",
            of(0),
            of(1),
            of(2),
            of(3)
        );
    }
    if is_good {
        return ExitCode::SUCCESS;
    }
    println!("the others wait more than {TARGET} times as long");
    ExitCode::FAILURE
}

/// A sort of objects: the kernel's own time for so many addresses and rules grows with their square.
type Kind = (
    &'static str,
    Option<usize>,
    fn(usize, usize) -> String,
    &'static str,
);

const KINDS: [Kind; 4] = [
    ("routes", None, route, "route flush root 172.16.0.0/12\n"),
    (
        "neighbours",
        None,
        neighbour,
        "neigh flush dev eth0 nud permanent\n",
    ),
    (
        "addresses",
        Some(5000),
        address,
        "addr flush dev eth0 to 172.16.0.0/12\n",
    ),
    (
        "rules",
        Some(5000),
        rule,
        "rule flush\nrule flush\nrule flush\nrule add pref 32766 lookup main\n",
    ),
];

fn route(high: usize, low: usize) -> String {
    format!("route add 172.16.{high}.{low} via 10.88.0.1")
}

fn neighbour(high: usize, low: usize) -> String {
    format!(
        "neigh add 10.89.{high}.{low} lladdr 02:00:00:00:{high:02x}:{low:02x} dev eth0 nud permanent"
    )
}

fn address(high: usize, low: usize) -> String {
    format!("addr add 172.16.{high}.{low}/32 dev eth0")
}

fn rule(high: usize, low: usize) -> String {
    format!(
        "rule add pref {} from 172.16.{high}.{low} lookup main",
        1000 + 256 * high + low
    )
}

fn lines(count: usize, line: fn(usize, usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        let _ = writeln!(all, "{}", line(number >> 8, number & 0xff));
        all
    })
}

/// Milliseconds until all pods but the first are back, and until netfix has printed its answer.
fn times(lab: &Lab) -> (f64, f64) {
    start_in_node(lab, &mut netfix(lab, "snapshot"));
    lab.node.lose_and_reload();
    let wire = tcpdump(&lab.node, "-tt arp");
    let clock = SystemTime::now();
    let all = until_answer(lab, &mut netfix(lab, RESTORE), || ());
    let all = all.as_secs_f64() * 1000.0;
    lab.check("netfix restore");
    (others_back(lab, &wire, clock), all)
}

/// Milliseconds from `begin` to the last announcement of a pod that is not the first.
fn others_back(lab: &Lab, wire: &Background, begin: SystemTime) -> f64 {
    let begin = begin.duration_since(SystemTime::UNIX_EPOCH);
    let begin = begin.expect("a clock after 1970").as_secs_f64();
    let mut last = None;
    wait_until(|| {
        last = last_announcement(lab, &wire.text());
        last.is_some()
    });
    (last.expect("an announcement of every pod") - begin) * 1000.0
}

/// The time of the last one, in seconds since 1970, once there is one of each.
fn last_announcement(lab: &Lab, text: &str) -> Option<f64> {
    let mut times = BTreeMap::new();
    for line in text.lines() {
        let Some((head, tail)) = line.split_once(" who-has ") else {
            continue;
        };
        let (wanted, teller) = tail.split_once(" tell ")?;
        if Some(wanted) == teller.split(',').next() {
            let time: f64 = head.split(' ').next()?.parse().ok()?;
            times.entry(wanted.to_owned()).or_insert(time);
        }
    }
    let mut others = lab.pods.iter().skip(1);
    let time = |address: String| times.get(&address).copied();
    others.try_fold(0.0, |last: f64, pod| {
        Some(last.max(time(pod.address.to_string())?))
    })
}

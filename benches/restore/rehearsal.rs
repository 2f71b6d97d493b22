//! What a rehearsal takes, beside the restore that it rehearses and the kernel's floor; how much memory; and what others wait that
//! create pods meanwhile.

use std::cell::Cell;
use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::common::tool;
use crate::contestants::{NETFIX, RESTORE, netfix, own_program, start_in_node, until_answer};
use crate::lab::{Lab, pod_lines};
use crate::others::Other;
use crate::{floor, median};

/// The first argument for this comparison.
pub const COMMAND: &str = "rehearsal";

const FLOOR: &str = "floor: new pods";
const REHEARSE: &str = "check --rehearse";

/// What a rehearsal may take, for this many pods.
const TARGETS: [(usize, f64); 2] = [(250, 1000.0), (1000, 5000.0)];
/// What netfix may have of memory, in MiB.
const MEMORY: f64 = 64.0;
/// What others may wait longer, in milliseconds.
const DELAY: f64 = 50.0;

type Contestant<'a> = (&'static str, Box<dyn Fn() -> Duration + 'a>);

/// `rehearsal [PODS [ROUNDS]]`
pub fn run(pods: usize, rounds: usize) -> ExitCode {
    let lab = Lab::new(pods);
    start_in_node(&lab, &mut netfix(&lab, "snapshot"));
    let contestants = contestants(&lab);
    let mut times: Vec<Vec<f64>> = contestants.iter().map(|_| Vec::new()).collect();
    // The first round warms up and does not count.
    for round in 0..=rounds {
        for (times, (_, contestant)) in times.iter_mut().zip(&contestants) {
            let took = milliseconds(contestant());
            wait_for_the_kernel(&lab);
            if round > 0 {
                times.push(took);
            }
        }
    }
    println!("{pods} pods, {rounds} rounds in turn");
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>9}",
        "", "median ms", "least ms", "most ms", "x floor"
    );
    let floor = median(&times[0]);
    for ((name, _), times) in contestants.iter().zip(&times) {
        let (least, most) = bounds(times);
        let all = median(times);
        println!(
            "{name:<28} {all:>10.1} {least:>10.1} {most:>10.1} {:>9.2}",
            all / floor
        );
    }
    let rehearsal = contestants.iter().position(|(name, _)| *name == REHEARSE);
    let took = median(&times[rehearsal.expect("a contestant")]);
    let limit = TARGETS.iter().find(|(most, _)| pods <= *most);
    let mut is_in_target = limit.is_none_or(|(_, limit)| took <= *limit);
    is_in_target &= memory(&lab) <= MEMORY;
    is_in_target &= delays(&lab, rounds) <= DELAY;
    if is_in_target {
        return ExitCode::SUCCESS;
    }
    println!("a rehearsal costs more than its targets");
    ExitCode::FAILURE
}

fn contestants(lab: &Lab) -> Vec<Contestant<'_>> {
    let (macs, plan) = (Macs::default(), floor::plan(lab));
    let iproute2 = iproute2(lab);
    vec![
        (
            FLOOR,
            Box::new(move || {
                let plan = lab.file("floor", &macs.other("77", &plan));
                timed(|| start_in_node(lab, own_program(floor::TWIN_COMMAND).arg(&plan)))
            }),
        ),
        ("iproute2: new pods", iproute2),
        (
            "check",
            Box::new(|| timed(|| start_in_node(lab, &mut netfix(lab, "check")))),
        ),
        (
            REHEARSE,
            Box::new(|| timed(|| start_in_node(lab, &mut netfix(lab, REHEARSE)))),
        ),
        (
            NETFIX,
            Box::new(|| {
                lab.node.lose_and_reload();
                let took = until_answer(lab, &mut netfix(lab, RESTORE), || ());
                lab.check(NETFIX);
                took
            }),
        ),
    ]
}

/// As many pods with ip(8): namespaces and links in a batch each, then one `ip -batch` a pod, two at a time.
fn iproute2<'a>(lab: &'a Lab) -> Box<dyn Fn() -> Duration + 'a> {
    let name = |number: usize| format!("{}-new.{number}", lab.node.ns.name());
    let all = |line: &dyn Fn(usize) -> String| (0..lab.pods.len()).map(line).collect::<String>();
    let add = lab.file(
        "new-add",
        &all(&|number| format!("netns add {}\n", name(number))),
    );
    let delete = lab.file(
        "new-delete",
        &all(&|number| format!("netns del {}\n", name(number))),
    );
    let links = lab.link_lines().replace(
        &format!("netns {}.", lab.node.ns.name()),
        &format!("netns {}-new.", lab.node.ns.name()),
    );
    let pods = all(&|number| {
        let file = lab.file(&format!("new-{number}"), &pod_lines(&lab.pods[number]));
        format!(
            "--net=/run/netns/{} ip -batch {}\n",
            name(number),
            file.display()
        )
    });
    let pods = lab.file("new-pods", &pods);
    let macs = Macs::default();
    Box::new(move || {
        let links = lab.file("new-links", &macs.other("66", &links));
        let took = timed(|| {
            tool::run(tool::command("ip", ["-batch"]).arg(&add));
            tool::run(tool::command("ip", ["-n", lab.node.ns.name(), "-batch"]).arg(&links));
            let words = ["-P", "2", "-L", "1", "-a"];
            tool::run(tool::command("xargs", words).arg(&pods).arg("nsenter"));
        });
        tool::run(tool::command("ip", ["-batch"]).arg(&delete));
        took
    })
}

/// Two macvlans on one parent cannot have the same MAC, and those of the round before may still be there.
#[derive(Default)]
struct Macs(Cell<u8>);

impl Macs {
    /// The text with MACs that no round had.
    fn other(&self, part: &str, text: &str) -> String {
        let round = self.0.get();
        self.0.set(round.wrapping_add(1));
        text.replace("02:01:00:88:", &format!("02:01:{round:02x}:{part}:"))
    }
}

/// The kernel destroys namespaces in the order in which they were left: once one more is gone, all are.
fn wait_for_the_kernel(lab: &Lab) {
    let (node, last) = (&lab.node.ns, format!("{}-last", lab.node.ns.name()));
    tool::ip(&format!("netns add {last}"));
    node.ip(&format!(
        "link add last type veth peer name last netns {last}"
    ));
    tool::ip(&format!("netns del {last}"));
    while node.has_link("last") {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The peak of a rehearsal, in MiB.
fn memory(lab: &Lab) -> f64 {
    let mut child = in_node(lab, &mut netfix(lab, REHEARSE));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = f64::max(peak, kib.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("peak memory of a rehearsal: {peak:.1} MiB");
    peak
}

/// What others wait that create a pod; returns how much longer the longest wait is beside a rehearsal.
fn delays(lab: &Lab, rounds: usize) -> f64 {
    let mut other = Other::new(lab);
    let mut beside = Vec::new();
    for _ in 0..rounds {
        let mut child = in_node(lab, &mut netfix(lab, REHEARSE));
        beside.extend(other.beside(&mut child));
    }
    wait_for_the_kernel(lab);
    let alone = other.alone(beside.len());
    println!(
        "{:<28} {:>8} {:>8} {:>8} {:>8}",
        "a new pod of others, ms", "times", "p50", "p99", "most"
    );
    let [alone, beside] = [("alone", alone), ("beside a rehearsal", beside)].map(|(who, times)| {
        let mut times: Vec<f64> = times.into_iter().map(milliseconds).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len();
        let most = times[count - 1];
        println!(
            "{who:<28} {count:>8} {:>8.2} {:>8.2} {most:>8.2}",
            times[count / 2],
            times[count * 99 / 100]
        );
        most
    });
    beside - alone
}

fn in_node(lab: &Lab, command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = lab.node.ns.enter(|| command.spawn());
    child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"))
}

fn bounds(times: &[f64]) -> (f64, f64) {
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    (least, times.iter().copied().fold(0.0, f64::max))
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

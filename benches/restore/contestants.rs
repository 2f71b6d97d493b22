//! The programs that restore.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::run::BINARY;
use crate::common::tool;
use crate::cost::Cost;
use crate::floor;
use crate::lab::{BenchPod, IFINDEX, Lab, pod_lines};

pub const NETFIX: &str = "netfix restore";
const FLOOR: &str = "floor: hand-made messages";
const READY_FLOOR: &str = "floor, from a ready plan";
/// Without the probe, which is a wait that no other contestant has.
pub const RESTORE: &str = "restore --conflict-probe off";

pub struct Contestant {
    pub name: &'static str,
    /// The contestant that it is compared with.
    pub reference: &'static str,
    pub restore: Box<dyn Fn(&Lab) -> Cost>,
}

/// Prepares the input of each contestant.
pub fn all(lab: &Lab) -> Vec<Contestant> {
    vec![
        floor_contestant(lab),
        netfix_contestant(lab),
        tuned_contestant(lab),
        batch_contestant(lab),
        shell_contestant(lab),
        ready_floor_contestant(lab),
        engine_contestant(),
    ]
}

fn contestant(name: &'static str, restore: impl Fn(&Lab) + 'static) -> Contestant {
    Contestant {
        name,
        reference: FLOOR,
        restore: Box::new(move |lab| Cost::of_programs(|| restore(lab))),
    }
}

fn floor_contestant(lab: &Lab) -> Contestant {
    let plan = lab.file("floor", &floor::plan(lab));
    contestant(FLOOR, move |lab| {
        start_in_node(lab, own_program(floor::COMMAND).arg(&plan));
    })
}

/// One that prints what it costs itself, from the moment when its plan is ready.
fn ready_contestant(name: &'static str, command: impl Fn(&Lab) -> Command + 'static) -> Contestant {
    Contestant {
        name,
        reference: READY_FLOOR,
        restore: Box::new(move |lab| Cost::printed(&output_in_node(lab, &mut command(lab)))),
    }
}

fn ready_floor_contestant(lab: &Lab) -> Contestant {
    let plan = lab.file("floor", &floor::plan(lab));
    ready_contestant(READY_FLOOR, move |_| {
        let mut command = own_program(floor::READY_COMMAND);
        command.arg(&plan);
        command
    })
}

/// The example `engine`, which `scripts/bench` builds. It needs the snapshot of [`netfix_contestant`].
fn engine_contestant() -> Contestant {
    let program = Path::new(BINARY).with_file_name("examples").join("engine");
    ready_contestant("engine alone", move |lab| {
        let mut command = Command::new(&program);
        command.arg(lab.node.state_dir()).arg(lab.node.pods_glob());
        command
    })
}

/// This program, as one of those that it runs.
pub fn own_program(word: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command.arg(word);
    command
}

fn netfix_contestant(lab: &Lab) -> Contestant {
    start_in_node(lab, &mut netfix(lab, "snapshot"));
    Contestant {
        name: NETFIX,
        reference: FLOOR,
        restore: Box::new(|lab| {
            let restore = || until_answer(lab, &mut netfix(lab, RESTORE), || ());
            Cost::of_programs_timed(restore)
        }),
    }
}

/// How long it takes until netfix prints that the pods are restored; `then` is called at that moment. After that netfix announces
/// the pods once more, a second after the first time.
pub fn until_answer(lab: &Lab, command: &mut Command, then: impl FnOnce()) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let start = Instant::now();
    let child = lab.node.ns.enter(|| command.spawn());
    let mut child = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    let mut answer = child.stdout.take().expect("a pipe");
    answer.read_exact(&mut [0]).expect("an answer");
    let took = start.elapsed();
    then();
    answer.read_to_end(&mut Vec::new()).expect("an answer");
    let status = child.wait().expect("netfix ends");
    assert!(status.success(), "{command:?}: {status}");
    took
}

pub fn netfix(lab: &Lab, words: &str) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(words.split(' '))
        .arg("--state-dir")
        .arg(lab.node.state_dir())
        .args(["--netns", &lab.node.pods_glob()])
        .env("NETFIX_HOST_NETNS", "self");
    command
}

/// The input of `ip -batch` for the links, and that for each pod.
fn batches(lab: &Lab) -> (PathBuf, Vec<PathBuf>) {
    let lines = format!("link set eth0 up\n{}", lab.link_lines());
    let of_pod = |pod: &BenchPod| lab.file(&format!("batch-{}", pod.ns.name()), &pod_lines(pod));
    let of_pods = lab.pods.iter().map(of_pod).collect();
    (lab.file("batch-links", &lines), of_pods)
}

/// The fastest way with iproute2: the links in one batch, then the pods two at a time, each entered by nsenter(1), which
/// unlike `ip -n` makes no mount namespace.
fn tuned_contestant(lab: &Lab) -> Contestant {
    let (links, files) = batches(lab);
    let pods = lab
        .pods
        .iter()
        .zip(&files)
        .fold(String::new(), |mut text, (pod, file)| {
            let _ = writeln!(
                text,
                "--net={} ip -batch {}",
                pod.ns.path().display(),
                file.display()
            );
            text
        });
    let pods = lab.file("tuned-pods", &pods);
    contestant("iproute2, two at a time", move |lab| {
        let batch = ["-n", lab.node.ns.name(), "-batch"];
        tool::run(tool::command("ip", batch).arg(&links));
        let words = ["-P", "2", "-L", "1", "-a"];
        tool::run(tool::command("xargs", words).arg(&pods).arg("nsenter"));
    })
}

/// One ip(8) for each change, as people type it: seven for a pod.
fn shell_contestant(lab: &Lab) -> Contestant {
    let node = lab.node.ns.name();
    let mut script = format!("set -e\nip -n {node} link set eth0 up\n");
    for pod in &lab.pods {
        let (name, mac) = (pod.ns.name(), pod.mac_text());
        // The index stays when the link is moved.
        let _ = writeln!(
            script,
            "ip -n {node} link add link eth0 name moved index {IFINDEX} type macvlan mode bridge\n\
             ip -n {node} link set moved netns {name}\n\
             ip -n {name} link set moved name eth0\n\
             ip -n {name} link set eth0 address {mac}"
        );
        for line in pod_lines(pod).lines() {
            let _ = writeln!(script, "ip -n {name} {line}");
        }
    }
    let script = lab.file("shell", &script);
    contestant("ip, a command a change", move |_| {
        tool::run(Command::new("sh").arg(&script));
    })
}

/// `ip -batch` for the links, then one `ip -n POD -batch` for each pod.
fn batch_contestant(lab: &Lab) -> Contestant {
    let (links, files) = batches(lab);
    contestant("ip -batch", move |lab| {
        tool::run(tool::command("ip", ["-n", lab.node.ns.name(), "-batch"]).arg(&links));
        for (pod, file) in lab.pods.iter().zip(&files) {
            tool::run(tool::command("ip", ["-n", pod.ns.name(), "-batch"]).arg(file));
        }
    })
}

/// Starts a program in the node's namespace without ip(8), whose start must not be measured.
pub fn start_in_node(lab: &Lab, command: &mut Command) {
    output_in_node(lab, command);
}

/// Starts a program in the node's namespace, and returns what it prints.
fn output_in_node(lab: &Lab, command: &mut Command) -> String {
    let output = lab.node.ns.enter(|| command.stdin(Stdio::null()).output());
    let output = output.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}{text}",
        output.status
    );
    printed
}

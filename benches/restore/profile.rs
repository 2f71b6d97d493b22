//! Where the processor time of a restore goes, by perf(1).

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::tool;
use crate::contestants::{RESTORE, netfix, start_in_node};
use crate::lab::Lab;

/// The first argument for the profile.
pub const COMMAND: &str = "profile";

/// A function of the kernel that says what a sample is about; the first one that is in its stack counts.
const PARTS: [(&str, &str); 11] = [
    ("rtnl_newlink", "kernel: creates links"),
    ("do_setlink", "kernel: takes links up"),
    ("inet_rtm_newaddr", "kernel: adds addresses"),
    ("inet_rtm_newroute", "kernel: adds routes"),
    ("neightbl_dump_info", "kernel: lists settings of neighbours"),
    ("rtnl_dump_ifinfo", "kernel: lists links"),
    ("netlink_dump", "kernel: lists other tables"),
    ("netlink_recvmsg", "kernel: hands over what it lists"),
    ("do_sys_openat2", "kernel: opens files"),
    ("asm_exc_page_fault", "kernel: gives memory"),
    ("entry_SYSCALL_64_after_hwframe", "kernel: everything else"),
];
const OWN: &str = "netfix itself";

/// `profile [PODS]`
pub fn run(pods: usize) {
    let lab = Lab::new(pods);
    start_in_node(&lab, &mut netfix(&lab, "snapshot"));
    let file = lab.file("profile", "");
    lab.node.lose_and_reload();
    let restore = netfix(&lab, RESTORE);
    let mut record = Command::new("perf");
    record
        .args("record -q -F 9000 -e cpu-clock --call-graph fp -o".split(' '))
        .arg(&file)
        .arg(restore.get_program())
        .args(restore.get_args())
        .envs(
            restore
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    start_in_node(&lab, &mut record);
    lab.check("a restore under perf");
    let words = ["script", "--comms", "netfix", "-F", "ip,sym", "-i"];
    let samples = tool::run(tool::command("perf", words).arg(&file));
    print(pods, &samples);
}

/// `samples` are stacks, innermost function first, with an empty line between them.
fn print(pods: usize, samples: &str) {
    let about = |stack: &str| {
        let functions = stack
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        let functions: BTreeSet<&str> = functions
            .map(|name| name.split('.').next().unwrap_or(name))
            .collect();
        let part = PARTS
            .iter()
            .find(|(function, _)| functions.contains(function));
        part.map_or(OWN, |(_, part)| part)
    };
    let stacks = samples
        .split("\n\n")
        .filter(|stack| !stack.trim().is_empty());
    let parts: Vec<&str> = stacks.map(about).collect();
    println!("{pods} pods, the processor time of one restore");
    for part in PARTS.iter().map(|(_, part)| *part).chain([OWN]) {
        let count = parts.iter().filter(|one| **one == part).count();
        println!("{part:<40} {:>5} %", count * 100 / parts.len().max(1));
    }
}

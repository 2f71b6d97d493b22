//! What the kernel logs while a window is open. The log is a file of the test, with records as `/dev/kmsg` has them.

use std::fs;
use std::io::Write;

use serde_json::Value;

use super::rollback::SOON;
use super::scene::{KERNEL_LOG, LOSING, Scene};
use crate::common::Node;
use crate::common::background::{Background, wait_until};

/// A line that is older than COMMAND.
const OLD: &str = "6,1,1000,-;eth0: NIC Link is Up\n";
const WAITING: &str = "unregister_netdevice: waiting for eth0 to become free. Usage count = 2";
const LIMIT: &str =
    "ice 0000:3b:00.0 eth0: Reached MAC filter limit, forcing promisc mode on VSI 6";
const SAFE: &str = "ice 0000:3b:00.0 eth0: Unsupported package version. Entering Safe Mode";
/// Written by a program: its facility is 1.
const FORGED: &str = "ice 0000:3b:00.0 eth0: Firmware recovery mode detected";

/// Lines of a script that log each of these, the last as a program.
fn logging(scene: &Scene<'_>, lines: &[&str], forged: &str) -> String {
    let file = scene.path(KERNEL_LOG).display().to_string();
    let own = lines.iter().map(|line| format!("3,7,1,-;{line}"));
    let all = own.chain([format!("11,7,1,-;{forged}")]);
    let all = (10..).zip(all);
    let all = all.map(|(number, line)| line.replacen(",7,", &format!(",{number},"), 1));
    let all = all.map(|line| format!("echo '{line}' >>{file}\n"));
    all.collect()
}

fn texts(record: &Value) -> Vec<&str> {
    let lines = record["kernel"]["lines"].as_array();
    let lines = lines.expect("the kernel's lines").iter();
    lines.filter_map(|line| line["text"].as_str()).collect()
}

#[test]
fn a_reference_that_never_ends_is_told_while_command_runs_and_what_a_program_writes_is_not_read() {
    let node = Node::new();
    let scene = Scene::new(&node);
    fs::write(scene.path(KERNEL_LOG), OLD).expect("a log");
    let go = scene.path("go").display().to_string();
    let log = logging(
        &scene,
        &[WAITING, WAITING, LIMIT, "usb 1-1: new device"],
        FORGED,
    );
    let body = format!(
        "{LOSING}\n{log}touch {}\nwhile [ ! -e {go} ]; do sleep 0.05; done\n{}",
        scene.path("begun").display(),
        scene.loading()
    );
    let upgrade = scene.start_upgrade("", &scene.script("waits", &body));
    scene.wait_for_file("begun");
    let follow = scene.start("status --follow");
    follow.wait_for(&format!("kernel: {WAITING} ("));
    follow.wait_for("only a reboot helps");
    follow.wait_for(&format!("kernel: {LIMIT} ("));
    fs::write(go, "").expect("a sign");
    let run = upgrade.finish().exits(0);
    run.stdout_has(&["All well: 2 of 2 pods back"])
        .names("kernel-log", "", &["only a reboot helps"])
        .names("kernel-log", "", &["ip link set DEVICE promisc on"])
        .lacks("recovery");
    follow.finish().exits(0);
    let record = scene.record();
    assert_eq!(texts(&record), [WAITING, LIMIT], "{record:#}");
    let first = &record["kernel"]["lines"][0];
    assert_eq!(
        (&first["times"], &first["device"]),
        (&2.into(), &"eth0".into())
    );
    assert_eq!(first["cause"], "reference-leaked");
    let report = scene.netfix("report").exits(0);
    report.stdout_has(&["KERNEL LOG", WAITING, LIMIT]);
    let page = scene.path("page.html");
    scene.netfix(&format!("report --html {}", page.display()));
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("waiting for eth0 to become free") && !page.contains("recovery"));
}

#[test]
fn a_driver_in_safe_mode_is_an_error_of_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    fs::write(scene.path(KERNEL_LOG), OLD).expect("a log");
    let body = format!(
        "{}\n{}",
        scene.reloading(),
        logging(&scene, &[SAFE], FORGED)
    );
    let run = scene.upgrade("-o json", &scene.script("safe", &body));
    let run = run.exits(5).errors(&[("kernel-log", "")]);
    let run = run.names("kernel-log", "", &["eth0", "safe mode"]);
    let report = &run.json()["report"];
    assert_eq!(report["kernel"]["lines"][0]["cause"], "safe-mode");
    assert_eq!(report["problems"][0]["because"]["cause"], "safe-mode");
    scene.assert_whole();
}

#[test]
fn what_the_kernel_logged_of_a_driver_that_was_rolled_back_is_no_problem_any_more() {
    let node = Node::new();
    let scene = Scene::new(&node);
    fs::write(scene.path(KERNEL_LOG), OLD).expect("a log");
    let lose = scene.script(
        "lose",
        &format!("{LOSING}\n{}", logging(&scene, &[SAFE], FORGED)),
    );
    let load = scene.script("load", &format!("set -e\n{}", scene.loading()));
    let options = format!("-o json {SOON} --rollback {load}");
    let run = scene.upgrade(&options, &lose).exits(1);
    run.errors(&[("rolled-back", "")]).has_no("kernel-log");
    assert_eq!(texts(&scene.record()), [SAFE]);
}

#[test]
fn a_kernel_log_that_cannot_be_read_is_no_problem_and_told_in_detail() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let run = scene.upgrade("-o json --no-pause", &scene.reload());
    run.exits(0).has_no("kernel-log");
    let told = "its log cannot be read: ";
    scene.netfix("report").exits(0).lacks(told);
    scene.netfix("report -v").exits(0).stdout_has(&[told]);
}

#[test]
fn a_restore_names_the_cause_that_a_driver_logs_meanwhile() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let log = node.temp().join("kernel-log");
    fs::write(&log, "3,5,1,-;ice 0000:3b:00.0 eth0: Entering Safe Mode\n").expect("a log");
    node.lose();
    let mut command = node.netfix_command(&[], "restore --nic-wait 60s");
    command.env("NETFIX_KMSG", &log);
    let restore = Background::start(&mut command, node.temp().join("restore"));
    let fds = format!("/proc/{}/fd", restore.id());
    let is_open = || {
        let fds = fs::read_dir(&fds).into_iter().flatten().flatten();
        let mut files = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        files.any(|file| file == log)
    };
    assert!(wait_until(is_open), "{}", restore.text());
    let mut file = fs::File::options()
        .append(true)
        .open(&log)
        .expect("the log");
    file.write_all(
        b"4,6,2,-;ice 0000:3b:00.0 eth0: Reached MAC filter limit, forcing promisc mode on VSI 6\n",
    )
    .expect("a line");
    node.reload();
    let text = restore.finish();
    assert!(
        text.contains("warning: kernel-log: eth0: the filters of ice are full"),
        "{text}"
    );
    assert!(
        !text.contains("safe mode"),
        "older than the restore: {text}"
    );
    assert!(pods[0].has_eth0(), "{text}");
}

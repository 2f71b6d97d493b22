//! The rollback: brings the former driver back where COMMAND leaves the NIC, its carrier or too many pods lost. ip(8) and
//! files show what ran and what came back.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::scene::{KUBELET, LOSING, Scene, of_pods, phases};
use crate::common::run::Run;
use crate::common::{Node, tool};

/// The shortest wait for a NIC that never comes back.
pub(super) const SOON: &str = "--nic-wait 500ms";

/// How often a script with this mark ran.
pub(super) fn count(scene: &Scene<'_>, mark: &str) -> usize {
    let text = fs::read_to_string(scene.path(mark)).unwrap_or_default();
    text.lines().count()
}

/// A script that marks its run.
pub(super) fn marked(scene: &Scene<'_>, name: &str, body: &str) -> String {
    let mark = scene.path(&format!("{name}-ran"));
    let body = format!("echo $NETFIX_WINDOW >>{}\n{body}", mark.display());
    scene.script(name, &body)
}

/// COMMAND that loses the NIC for good.
pub(super) fn lose(scene: &Scene<'_>) -> String {
    marked(scene, "lose", LOSING)
}

/// The rollback that brings the NIC back.
pub(super) fn load(scene: &Scene<'_>) -> String {
    marked(scene, "load", &format!("set -e\n{}", scene.loading()))
}

pub(super) fn rollback(record: &Value) -> &Value {
    &record["rollback"]
}

/// What a window has that was rolled back and has every pod back.
fn assert_rolled_back(scene: &Scene<'_>, run: Run, reason: &str) {
    run.errors(&[("rolled-back", "")]);
    scene.assert_whole();
    assert_eq!((count(scene, "lose-ran"), count(scene, "load-ran")), (1, 1));
    let record = scene.record();
    assert_eq!(record["exit"], 1, "{record}");
    assert_eq!(rollback(&record)["reason"], reason, "{record}");
    assert_eq!(rollback(&record)["exit"], 0, "{record}");
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
    assert!(
        of_pods(&record, "answered").iter().all(Value::is_u64),
        "{record}"
    );
    let course = [
        "check", "snapshot", "pause", "command", "restore", "verify", "rollback", "restore",
        "verify", "resume", "proof",
    ];
    assert_eq!(phases(&record), course);
    let report = scene.netfix("report -o json").exits(0).json()["report"].clone();
    assert_eq!(report["computed"]["verdict"], "rolled-back", "{report}");
}

#[test]
fn a_nic_that_stays_away_is_brought_back_by_the_rollback_which_a_unit_gets_with_every_character() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (lose, load) = (lose(&scene), load(&scene));
    let output = scene.path("output");
    let shell = format!(
        "word='a  \"b\" 100% %n'; echo \"$word\" >{} && {load}",
        output.display()
    );
    let mut command =
        scene.command("upgrade --yes --watch 0s --nic-wait 500ms --answer-wait 2s -o json");
    command.args(["--max-lost", "0", "--rollback", &shell, "--", &lose]);
    let run = Run::of(&mut command)
        .exits(1)
        .names("rolled-back", "", &["eth0", "500 ms"]);
    assert_rolled_back(&scene, run, "nic-missing");
    let output = fs::read_to_string(output).expect("what the rollback wrote");
    assert_eq!(output, "a  \"b\" 100% %n\n");
    let record = scene.record();
    let argv = serde_json::json!(["sh", "-c", shell]);
    assert_eq!(rollback(&record)["argv"], argv);
    assert_eq!(rollback(&record)["nics"], serde_json::json!(["eth0"]));
    assert_eq!(record["run"]["argv"], serde_json::json!([lose]));
    let window = fs::read_to_string(scene.path("load-ran")).expect("the window of the rollback");
    assert_eq!(
        window.trim(),
        record["id"],
        "the rollback has no NETFIX_WINDOW"
    );
    let text = scene.netfix("report").exits(0).out;
    for expected in [
        "Rolled back: ",
        "eth0 was missing",
        "eth0: veth 1.0, as before",
    ] {
        assert!(text.contains(expected), "no {expected:?}:\n{text}");
    }
}

/// A COMMAND after which the driver resets without end, and what ends that.
fn resetting(scene: &Scene<'_>) -> (String, String) {
    let [resets, ended] = ["resets", "ended"].map(|name| scene.path(name).display().to_string());
    let reload = scene.reloading();
    let body = format!("while [ -e {resets} ]; do\nsleep 1.5\n{reload}\ndone\ntouch {ended}");
    let later = scene.script("later", &body);
    let body =
        format!("set -e\n{reload}\ntouch {resets}\nsetsid {later} </dev/null >/dev/null 2>&1 &");
    let end = format!("rm {resets}; until [ -e {ended} ]; do sleep 0.1; done");
    (scene.script("command", &body), scene.script("end", &end))
}

#[test]
fn a_driver_that_resets_without_end_is_rolled_back_before_kubelet_runs() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (command, end) = resetting(&scene);
    let mut upgrade =
        scene.command("upgrade --yes --watch 4s --nic-wait 10s --answer-wait 2s -o json");
    upgrade.args(["--rollback", &end, "--", &command]);
    let run = Run::of(&mut upgrade).exits(1);
    run.errors(&[("rolled-back", "")]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(rollback(&record)["exit"], 0, "{record}");
    let phases = phases(&record);
    let place = |name: &str| phases.iter().position(|phase| phase == name);
    assert!(place("rollback") < place("resume"), "{phases:?}");
}

#[test]
fn a_window_after_which_the_driver_resets_without_end_is_not_well_without_a_rollback_either() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (command, end) = resetting(&scene);
    let run = scene.upgrade("--watch 4s --nic-wait 10s -o json", &command);
    run.exits(5).names("degraded", "", &["recreated", "times"]);
    tool::run(&mut Command::new(end));
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}

#[test]
fn a_nic_without_carrier_is_brought_back_by_the_rollback() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let gateway = format!("/proc/$(cat {})/fd/9", scene.path("keeper").display());
    let peer = |state: &str| format!("nsenter --net={gateway} ip link set up0 {state}");
    let down = format!("{}\n{}", scene.reloading(), peer("down"));
    let command = marked(&scene, "lose", &down);
    let up = format!("set -e\n{LOSING}\n{}", scene.loading());
    let up = marked(&scene, "load", &up);
    let run = scene
        .upgrade(&format!("{SOON} --rollback {up} -o json"), &command)
        .exits(1)
        .names("rolled-back", "", &["eth0", "carrier"]);
    assert_rolled_back(&scene, run, "no-carrier");
}

/// Makes the MAC of a pod's interface taken on the parent, so that the restore of that pod fails, and gives it back.
fn taken(scene: &Scene<'_>) -> (String, String) {
    let mac = scene.pods[0].mac();
    let take = format!(
        "{}\nip link set eth0 up\nip link add taken link eth0 address {mac} type macvlan mode bridge\n\
         ip link set taken up",
        scene.reloading()
    );
    (
        marked(scene, "lose", &take),
        marked(scene, "load", "ip link del taken"),
    )
}

#[test]
fn more_lost_pods_than_allowed_are_brought_back_by_the_rollback() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (take, give_back) = taken(&scene);
    let run = scene
        .upgrade(&format!("{SOON} --rollback {give_back} -o json"), &take)
        .exits(1)
        .names("rolled-back", "", &["1 pod", "--max-lost 0"]);
    assert_rolled_back(&scene, run, "pods-lost");
    assert_eq!(rollback(&scene.record())["lost"], 1);
}

#[test]
fn pods_that_reach_no_gateway_any_more_are_lost() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let silent = format!("{LOSING}\n{}", scene.loading_with(&[]));
    let silent = marked(&scene, "lose", &silent.replace("up; '", "up'"));
    let answering = format!("set -e\n{LOSING}\n{}", scene.loading());
    let answering = marked(&scene, "load", &answering);
    let run = scene
        .upgrade(
            &format!("--answer-wait 1s --rollback {answering} -o json"),
            &silent,
        )
        .exits(1);
    assert_rolled_back(&scene, run, "pods-lost");
    assert_eq!(rollback(&scene.record())["lost"], 2);
}

#[test]
fn nothing_is_rolled_back_when_all_pods_are_back_although_command_was_killed() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = scene.script("dies", &format!("{}\nkill -SEGV $$", scene.reloading()));
    let load = load(&scene);
    let options = format!("--rollback {load} --max-lost 0 -o json");
    scene
        .upgrade(&options, &command)
        .exits(1)
        .errors(&[("command-failed", "")])
        .names("command-failed", "", &["11"]);
    scene.assert_whole();
    assert_eq!(count(&scene, "load-ran"), 0);
    let record = scene.record();
    let run = ["exit", "signal", "error"].map(|key| record["run"][key].clone());
    assert_eq!(run, [Value::Null, 11.into(), Value::Null]);
    assert_eq!(rollback(&record), &Value::Null, "{record}");
    assert!(!phases(&record).contains(&"rollback".to_owned()));
}

#[test]
fn a_rollback_that_fails_is_a_separate_error_and_its_exit_code_is_in_the_record() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let load = marked(&scene, "load", &format!("{}\nexit 9", scene.loading()));
    scene
        .upgrade(&format!("{SOON} --rollback {load} -o json"), &lose(&scene))
        .exits(1)
        .names("command-failed", "", &["rollback", "9"])
        .errors(&[("rolled-back", ""), ("command-failed", "")]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(
        (&rollback(&record)["exit"], &record["run"]["exit"]),
        (&9.into(), &0.into())
    );
}

#[test]
fn a_rollback_that_fails_and_does_not_help_is_one_error_beside_what_is_missing() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let useless = marked(&scene, "load", "exit 9");
    let shell = format!("sh {useless} again");
    let mut command = scene
        .command("upgrade --yes --foreground --watch 0s --nic-wait 500ms --answer-wait 1s -o json");
    command.args(["--rollback", &shell, "--", &lose(&scene)]);
    let run = Run::of(&mut command).exits(5).names(
        "rolled-back",
        "",
        &[
            &format!("sh -c \"{shell}\""),
            "the rollback failed with exit code 9; the network is not back",
        ],
    );
    let of_host = |code: &str| {
        let coded = run.coded(code);
        coded.iter().filter(|one| one.pod.is_none()).count()
    };
    assert_eq!(
        ["rolled-back", "parent-missing", "command-failed"].map(of_host),
        [1, 1, 0],
        "{}",
        run.transcript()
    );
    let line = format!("running the rollback sh -c \"{shell}\" (for at most ");
    run.stderr_has(&[&line])
        .errors(&scene.nic_is_missing(&["rolled-back"]));
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
    assert_eq!(count(&scene, "load-ran"), 1);
    let nic = scene.record()["nics"][0].clone();
    let after = (&nic["present"], &nic["after"]);
    assert_eq!(after, (&false.into(), &Value::Null));
    scene
        .netfix("report")
        .exits(0)
        .stdout_has(&["eth0: absent"]);
}

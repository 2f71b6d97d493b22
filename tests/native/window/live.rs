//! Monitoring and timers beside a window whose netfix runs: its losses are no alarm.

use std::fs;
use std::path::Path;

use super::beside::Beside;
use super::scene::{KUBELET, LOSING, Scene};
use crate::common::Node;
use crate::common::run::BINARY;

/// A window in which COMMAND has taken the NIC, and waits for the file `go`.
fn losing(scene: &Scene<'_>) -> Beside {
    let [begun, go] = ["begun", "go"].map(|name| scene.path(name).display().to_string());
    let body = format!(
        "{LOSING}\ntouch {begun}\nwhile [ ! -e {go} ]; do sleep 0.05; done\n{}",
        scene.loading()
    );
    let upgrade = scene.start_upgrade("", &scene.script("waits", &body));
    scene.wait_for_file("begun");
    scene.command_pid();
    upgrade
}

fn go(scene: &Scene<'_>) {
    fs::write(scene.path("go"), "").expect("a sign");
}

/// The value of a metric, with its labels where it has some.
fn metric(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line[name.len()..].trim().to_owned())
}

#[test]
fn check_is_a_warning_with_the_phase_while_a_window_runs_and_critical_when_its_netfix_dies() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = losing(&scene);
    let file = scene.path("netfix.prom");
    let words = format!("check --textfile {}", file.display());
    let shown = scene.netfix(&words).exits(1);
    shown
        .stdout_has(&[
            "WARNING: window-open: ",
            "a window runs: phase command, since ",
            "2 pods have no network meanwhile",
        ])
        .lacks("CRITICAL")
        .lacks("netfix restore");
    let run = scene.netfix("check -o json").exits(1).errors(&[]);
    let run = run.has_no("degraded").has_no("parent-missing");
    for pod in &scene.pods {
        assert_eq!(run.pod(pod)["state"], "degraded", "{}", run.transcript());
    }
    let plugin = scene.netfix("check --nagios").exits(1);
    plugin.stdout_has(&["NETFIX WARNING - ", "a window runs: phase command"]);
    let text = fs::read_to_string(&file).expect("metrics");
    let of = |name: &str| metric(&text, name);
    assert_eq!(of("netfix_window_live").as_deref(), Some("1"), "{text}");
    assert_eq!(of("netfix_window_open").as_deref(), Some("1"), "{text}");
    let lost = of("netfix_pods_lost{cause=\"link-gone\"}");
    assert_eq!(lost.as_deref(), Some("2"), "the state is hidden: {text}");
    let info = of("netfix_window_info").expect("a window");
    assert!(info.contains("phase=\"command\",next=\"wait\""), "{info}");

    // A finding that no window makes stays one.
    let stored = node.state_dir().join("node.json");
    let whole = fs::read(&stored).expect("node.json");
    fs::write(&stored, "{").expect("damage");
    scene
        .netfix("check -o json")
        .names("checkpoint-corrupt", "", &["node.json"])
        .names("window-open", "", &["a window runs"]);
    fs::write(&stored, whole).expect("a repair");

    upgrade.kill();
    scene.netfix(&words).exits(2);
    scene
        .netfix("wait --timeout 1s")
        .exits(124)
        .stderr_has(&["warning: window-open"]);
    let text = fs::read_to_string(&file).expect("metrics");
    let live = metric(&text, "netfix_window_live");
    assert_eq!(live.as_deref(), Some("0"), "{text}");
    let info = metric(&text, "netfix_window_info").expect("a window");
    assert!(info.contains("next=\"wait-for-command\""), "{info}");
    go(&scene);
}

/// A unit of the packages, with the test's program and state directory, without its sandbox.
fn install(scene: &Scene<'_>, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/systemd");
    let unit = fs::read_to_string(path.join(name)).expect("a unit");
    let kept = [
        "ExecStart=",
        "Type=",
        "SuccessExitStatus=",
        "TimeoutStartSec=",
    ];
    let lines = unit.lines();
    let lines = lines.filter(|line| kept.iter().any(|key| line.starts_with(key)));
    let mut text = format!(
        "[Service]\nEnvironment=NETFIX_STATE_DIR={} NETFIX_RUNTIME=none NETFIX_METRICS={}\n",
        scene.node.state_dir().display(),
        scene.node.temp().display()
    );
    for line in lines {
        text += &line.replace("/usr/bin/netfix", BINARY);
        text.push('\n');
    }
    scene
        .machine
        .put(&format!("/run/systemd/system/{name}"), &text);
    let reloaded = scene.machine.systemctl("daemon-reload");
    reloaded.unwrap_or_else(|e| panic!("{e}"));
}

const UNITS: [&str; 3] = [
    "netfix-snapshot.service",
    "netfix-check.service",
    "netfix-rehearsal.service",
];

fn failed(scene: &Scene<'_>) -> String {
    let failed = scene.machine.systemctl("--failed --no-legend --plain");
    let failed = failed.unwrap_or_else(|e| panic!("{e}"));
    let lines = failed.lines().filter(|line| line.contains("netfix"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_units_of_the_timers_do_not_fail_beside_a_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    for unit in UNITS {
        install(&scene, unit);
    }
    let upgrade = losing(&scene);
    let stored = || {
        (
            node.generations(),
            fs::read(node.state_dir().join("node.json")).expect("the host"),
        )
    };
    let before = stored();
    for unit in UNITS {
        let started = scene.machine.systemctl(&format!("start {unit}"));
        started.unwrap_or_else(|e| panic!("{unit}: {e}\n{}", scene.machine.systemd_state()));
    }
    assert_eq!(stored(), before, "the snapshot was not skipped");
    assert_eq!(failed(&scene), "");
    // A window that is older than the limit is none that will end.
    let old = scene.netfix("snapshot -q --skip-in-window 0s").exits(4);
    old.errors(&[("lock-held", "")]);
    let skipped = scene.netfix("snapshot --skip-in-window 1h").exits(0);
    skipped.stdout_has(&["no snapshot was taken"]);
    go(&scene);
    upgrade.finish().exits(0);
    assert_eq!(failed(&scene), "");
    for unit in UNITS {
        let started = scene.machine.systemctl(&format!("start {unit}"));
        started.unwrap_or_else(|e| panic!("{unit}: {e}\n{}", scene.machine.systemd_state()));
    }
    assert_eq!(failed(&scene), "");
    scene.assert_runs(KUBELET);
}

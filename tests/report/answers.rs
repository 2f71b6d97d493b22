//! The output of `report` and `report --list`, as text and as JSON, and their refusals.

use std::fs;

use netfix::model::pod::identity::Holder;
use netfix::model::window::{Shown, WindowPod};
use netfix::model::{Code, NodeIdentity, Problem, Severity, State, Window};
use serde_json::Value;

use crate::machine::{Machine, NAMES, fixture, testdata};

#[test]
fn every_record_in_testdata_has_its_text() {
    let bless = std::env::var_os("NETFIX_BLESS").is_some();
    for name in NAMES {
        let window = fixture(name);
        let machine = Machine::with(std::slice::from_ref(&window));
        let expected = testdata(&format!("{name}.txt"));
        let stored = machine
            .state()
            .join("windows")
            .join(format!("{}.json", window.id));
        if bless {
            fs::write(&expected, machine.text()).unwrap();
            fs::copy(&stored, testdata(&format!("{name}.json"))).unwrap();
        }
        assert_eq!(
            machine.text(),
            fs::read_to_string(&expected).unwrap_or_default(),
            "{name}"
        );
        let record = fs::read_to_string(testdata(&format!("{name}.json"))).unwrap();
        assert_eq!(
            fs::read_to_string(stored).unwrap(),
            record,
            "{name}: the format on disk has changed"
        );
    }
}

#[test]
fn the_document_contains_the_record_and_computed_values() {
    let window = fixture("well");
    let answer = Machine::with(std::slice::from_ref(&window)).json(&["report"]);
    assert_eq!(answer["command"], "report");
    assert_eq!(answer["exit"], 0);
    let mut report = answer["report"].clone();
    let computed = report.as_object_mut().unwrap().remove("computed").unwrap();
    assert_eq!(report, serde_json::to_value(&window).unwrap());
    assert_eq!(computed["verdict"], "well");
    assert_eq!(computed["open"], false);
    assert_eq!(computed["pause_ms"], 14390 - 2117);
    let outages = &computed["outages"];
    assert_eq!(outages["worst_ms"], 12504 - 3480);
    assert_eq!(outages["median_ms"], 12318 - 3480);
    assert_eq!(outages["pods"].as_array().unwrap().len(), 3);
    assert_eq!(computed["pods"]["back"], 3);
}

#[test]
fn unknown_values_are_null_and_a_dash() {
    let machine = Machine::with(&[fixture("killed")]);
    let computed = &machine.json(&["report"])["report"]["computed"];
    assert_eq!(computed["verdict"], "interrupted");
    assert_eq!(computed["outages"]["worst_ms"], Value::Null);
    assert_eq!(computed["outages"]["unanswered"], 2);
    assert_eq!(computed["pods"]["unknown"], 2);
    assert_eq!(computed["pods"]["back"], 0);
    let text = machine.text();
    let row = text
        .lines()
        .find(|line| line.contains("shop/web-0"))
        .unwrap();
    let cells: Vec<&str> = row
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(cells[2..], ["-", "end unknown", "-", "-", "-"], "{row}");
    let untouched = Window {
        pause: None,
        pods: Vec::new(),
        phases: Vec::new(),
        ..fixture("killed")
    };
    let computed = Machine::with(&[untouched]).json(&["report"])["report"]["computed"].clone();
    assert_eq!(computed["pause_ms"], Value::Null);
    assert_eq!(computed["outages"]["median_ms"], Value::Null);
}

/// The verdict about a window.
fn verdict(window: Window) -> String {
    let machine = Machine::with(&[window]);
    let verdict = &machine.json(&["report"])["report"]["computed"]["verdict"];
    verdict.as_str().unwrap().to_owned()
}

#[test]
fn a_window_whose_host_is_not_as_before_is_never_well() {
    let well = fixture("well");
    let with_host = |change: &dyn Fn(&mut Window)| {
        let mut window = well.clone();
        change(&mut window);
        verdict(window)
    };
    for state in [State::Partial, State::Failed] {
        assert_eq!(
            with_host(&|window| window.host = Some(state)),
            "host-affected"
        );
    }
    assert_eq!(
        with_host(&|window| window.host = Some(State::Restored)),
        "well"
    );
    assert_eq!(
        with_host(&|window| {
            let nics = window.nics.as_mut().unwrap();
            (nics[0].present, nics[0].after) = (Some(false), None);
        }),
        "host-affected",
        "a NIC is absent"
    );
    assert_eq!(
        with_host(&|window| {
            let (severity, code) = (Severity::Warning, Code::NotSelected);
            let problem = Problem::recorded(severity, code, "eth9", "left unchanged");
            window.problems.push(problem);
        }),
        "selection-well"
    );
}

#[test]
fn a_failed_window_never_has_a_good_verdict() {
    let well = fixture("well");
    let with_pod = |change: &dyn Fn(&mut WindowPod)| {
        let mut window = well.clone();
        change(&mut window.pods[1]);
        window
    };
    assert_eq!(verdict(well.clone()), "well");
    assert_eq!(
        verdict(with_pod(&|pod| pod.rebuilt = Some(true))),
        "pods-affected"
    );
    assert_eq!(
        verdict(with_pod(&|pod| pod.gateways[0].reachable = Some(false))),
        "pods-affected"
    );
    assert_eq!(
        verdict(with_pod(&|pod| pod.shown = Some(Shown::NotAgain))),
        "pods-affected"
    );
    assert_eq!(
        verdict(with_pod(&|pod| pod.shown = Some(Shown::Unknown))),
        "unknown"
    );
    assert_eq!(
        verdict(with_pod(&|pod| pod.state = Some(State::Partial))),
        "pods-affected"
    );
    assert_eq!(verdict(with_pod(&|pod| pod.state = None)), "unknown");
    assert_eq!(verdict(with_pod(&|pod| pod.rebuilt = None)), "unknown");
    assert_eq!(
        verdict(with_pod(&|pod| pod.gateways[0].reachable = None)),
        "unknown"
    );
    assert_eq!(
        verdict(Window {
            exit: Some(1),
            ..well.clone()
        }),
        "failed"
    );
    assert_eq!(
        verdict(Window {
            exit: Some(4),
            ..well.clone()
        }),
        "refused"
    );
    assert_eq!(
        verdict(Window {
            exit: None,
            ended: None,
            ..well.clone()
        }),
        "interrupted"
    );
    let mut failed = Window {
        exit: Some(1),
        ..well.clone()
    };
    failed.run.as_mut().unwrap().exit = Some(3);
    assert_eq!(verdict(failed), "command-failed");
    let mut cut = well.clone();
    cut.phases.last_mut().unwrap().to = None;
    assert_eq!(verdict(cut), "interrupted");
    let mut gone_on_with = well.clone();
    gone_on_with.phases[3].to = None;
    assert_eq!(
        verdict(gone_on_with.clone()),
        "well",
        "the next run brought it to its end"
    );
    assert_eq!(
        verdict(Window {
            exit: Some(1),
            ..gone_on_with
        }),
        "interrupted"
    );
    let mut held = well;
    held.pause.as_mut().unwrap().resumed = None;
    assert_eq!(verdict(held), "failed", "kubelet was not seen again");
}

/// The verdict about a window, and its sentence.
fn headline(change: impl Fn(&mut Window)) -> (String, String) {
    let mut window = fixture("well");
    change(&mut window);
    let machine = Machine::with(&[window]);
    let computed = &machine.json(&["report"])["report"]["computed"];
    let text = |key: &str| computed[key].as_str().unwrap().to_owned();
    (text("verdict"), text("sentence"))
}

fn has_headline(change: impl Fn(&mut Window), verdict: &str, sentence: &str) {
    let found = headline(change);
    assert_eq!((found.0.as_str(), found.1.as_str()), (verdict, sentence));
}

#[test]
fn all_is_well_only_where_every_pod_and_the_host_have_shown_it() {
    let silent = |window: &mut Window, at: usize| {
        window.pods[at].gateways[0].reachable = Some(false);
        window.pods[at].shown = Some(Shown::Never);
    };
    has_headline(
        |window| silent(window, 1),
        "restored",
        "3 of 3 pods back, 1 not shown (nothing answered before); no pod was rebuilt (3 of 3 checked).",
    );
    has_headline(
        |window| {
            silent(window, 1);
            window.pods[2].gateways.clear();
            window.pods[2].shown = Some(Shown::Never);
            window.host_shown = Some(Shown::Never);
        },
        "restored",
        "3 of 3 pods back, 2 and the host not shown (nothing answered before); no pod was rebuilt (3 of 3 checked).",
    );
    has_headline(
        |window| window.host_shown = Some(Shown::Never),
        "restored",
        "3 of 3 pods back, the host not shown (nothing answered before); no pod was rebuilt (3 of 3 checked).",
    );
    let (verdict, _) = headline(|window| window.host_shown = Some(Shown::Again));
    assert_eq!(verdict, "well");
    let (verdict, _) = headline(|window| window.host_shown = Some(Shown::Unknown));
    assert_eq!(verdict, "unknown");
    has_headline(
        |window| {
            window.host_shown = Some(Shown::NotAgain);
            window.exit = Some(5);
        },
        "host-affected",
        "3 of 3 pods back; no pod was rebuilt (3 of 3 checked); a gateway of the host does not answer any more.",
    );
    has_headline(
        |window| {
            silent(window, 1);
            let mut other = window.pods[0].clone();
            other.state = Some(State::InSync);
            window.unselected.push(other);
        },
        "selection-restored",
        "3 of 3 selected pods back, 1 not shown (nothing answered before); no pod was rebuilt (3 of 3 checked); \
         not selected: 1 pod at risk, none has lost anything.",
    );
}

#[test]
fn a_command_that_reloaded_no_driver_has_its_own_headline() {
    let untouched = |window: &mut Window| {
        window.host = Some(State::InSync);
        window.devices_lost = Some([].into());
        for pod in &mut window.pods {
            (pod.state, pod.steps, pod.lost) = (Some(State::InSync), 0, None);
        }
    };
    has_headline(
        untouched,
        "nothing-lost",
        "COMMAND reloaded no driver; 3 of 3 pods unchanged; no pod was rebuilt (3 of 3 checked).",
    );
    let verdict = |change: &dyn Fn(&mut Window)| {
        headline(|window| {
            untouched(window);
            change(window);
        })
        .0
    };
    let eth0 = || "eth0".parse().unwrap();
    assert_eq!(
        verdict(&|window| window.devices_lost = Some([eth0()].into())),
        "well"
    );
    assert_eq!(
        verdict(&|window| window.devices_lost = None),
        "well",
        "not compared"
    );
    assert_eq!(
        verdict(&|window| window.host = Some(State::Restored)),
        "well"
    );
    assert_eq!(verdict(&|window| window.pods[0].steps = 2), "well");
    assert_eq!(verdict(&|window| window.pods[0].lost = Some(3480)), "well");
    assert_eq!(
        verdict(&|window| window.pods[0].shown = Some(Shown::NotAgain)),
        "pods-affected"
    );
    assert_eq!(
        verdict(&|window| {
            window.exit = Some(1);
            window.run.as_mut().unwrap().exit = Some(3);
        }),
        "command-failed"
    );
}

#[test]
fn a_window_without_pods_says_what_it_compared() {
    let empty = |window: &mut Window| {
        window.pods.clear();
        window.host = Some(State::Restored);
    };
    has_headline(
        |window| {
            empty(window);
            window.host_shown = Some(Shown::Again);
        },
        "well",
        "No pod was running; the host is as it was.",
    );
    has_headline(
        empty,
        "restored",
        "No pod was running; the host is as it was, not shown (nothing answered before).",
    );
    has_headline(
        |window| {
            empty(window);
            window.host = Some(State::InSync);
            window.devices_lost = Some([].into());
        },
        "nothing-lost",
        "COMMAND reloaded no driver; no pod was running.",
    );
}

/// This process, as in proc(5).
fn this_process() -> Holder {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start_time = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap()
        .parse()
        .unwrap();
    Holder {
        pid: std::process::id(),
        start_time,
    }
}

/// This boot of this machine: a window of another one is over.
fn this_boot() -> NodeIdentity {
    let read = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
    NodeIdentity {
        machine_id: read("/etc/machine-id"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        hostname: None,
    }
}

#[test]
fn an_open_window_shows_its_progress() {
    let machine = Machine::new();
    let guard = machine.store().lock("test").unwrap();
    let sentence = |window: &Window| {
        guard.save_window(window).unwrap();
        machine.json(&["report"])["report"]["computed"]["sentence"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut paused = Window {
        ended: None,
        exit: None,
        ..fixture("pause")
    };
    paused.phases.truncate(1);
    paused.pause.as_mut().unwrap().resumed = None;
    // The record is of another boot.
    assert_eq!(
        sentence(&paused),
        "Ended by a reboot; the reboot ended the pause of kubelet.service."
    );
    let mut upgrade = Window {
        node: this_boot(),
        ended: None,
        exit: None,
        ..fixture("well")
    };
    upgrade.phases.truncate(4);
    upgrade.phases[3].to = None;
    upgrade.pause.as_mut().unwrap().resumed = None;
    let killed = sentence(&upgrade);
    assert!(
        killed.starts_with("Died in phase command; ") && killed.contains("`netfix resume"),
        "{killed}"
    );
    let computed = machine.json(&["report"])["report"]["computed"].clone();
    assert_eq!(
        (&computed["verdict"], &computed["open"]),
        (&"interrupted".into(), &true.into())
    );
    let is_running = |text: &str| {
        text.lines()
            .any(|line| line.starts_with("command ") && line.ends_with("running"))
    };
    assert!(!is_running(&machine.text()), "no netfix is running");
    upgrade.owner = this_process();
    let at_work = sentence(&upgrade);
    assert!(
        at_work.starts_with("In phase command; kubelet.service ")
            && at_work.ends_with(". Wait for its end: `netfix status --follow`."),
        "{at_work}"
    );
    assert_eq!(
        machine.json(&["report"])["report"]["computed"]["verdict"],
        "open"
    );
    let text = machine.text();
    assert!(is_running(&text), "{text}");
    assert!(
        text.lines().any(|line| line == "ended      still open"),
        "{text}"
    );
}

#[test]
fn the_newest_window_is_shown_by_default() {
    let all: Vec<Window> = NAMES.iter().map(|name| fixture(name)).collect();
    let machine = Machine::with(&all);
    let id = |words: &[&str]| {
        machine.json(words)["report"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(id(&["report"]), "20261121T031500Z");
    assert_eq!(id(&["report", "20261118"]), "20261118T013000Z");
    assert_eq!(id(&["report", "20261116T090512Z"]), "20261116T090512Z");
    let open = Window {
        id: "20261121T040000Z".to_owned(),
        node: this_boot(),
        ended: None,
        exit: None,
        ..all[0].clone()
    };
    machine
        .store()
        .lock("test")
        .unwrap()
        .save_window(&open)
        .unwrap();
    assert_eq!(id(&["report"]), "20261121T040000Z");
    assert_eq!(
        machine.json(&["report"])["report"]["computed"]["verdict"],
        "open"
    );
    assert_eq!(id(&["report", "20261121T03"]), "20261121T031500Z");
    let list = machine.json(&["report", "--list"]);
    let ids: Vec<&str> = list["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["id"].as_str().unwrap())
        .collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(ids, sorted);
    assert_eq!(ids.len(), NAMES.len() + 1);
    let lines = String::from_utf8(machine.netfix(&["report", "--list"]).stdout).unwrap();
    assert!(
        ids.iter()
            .all(|id| lines.lines().filter(|line| line.contains(id)).count() == 1),
        "{lines}"
    );
}

#[test]
fn an_unknown_window_is_refused_with_a_list_of_windows() {
    let machine = Machine::with(&[fixture("well"), fixture("pause")]);
    let known = "20261116T090512Z, 20261121T031500Z";
    for wanted in ["2025", "202611", "../windows/20261121T031500Z", ""] {
        let output = machine.netfix(&["report", wanted]);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{err}");
        assert!(
            err.starts_with("error: not-found: ") && err.contains(known),
            "{wanted}: {err}"
        );
        assert!(output.stdout.is_empty());
    }
    let nothing = Machine::new().netfix(&["report"]);
    assert_eq!(nothing.status.code(), Some(4));
    assert!(
        String::from_utf8(nothing.stderr)
            .unwrap()
            .starts_with("error: not-found: ")
    );
}

#[test]
fn readers_neither_create_nor_take_the_lock() {
    let machine = Machine::with(&[fixture("well")]);
    let _guard = machine.store().lock("test").unwrap();
    machine.text();
    let empty = Machine::new();
    empty.netfix(&["report", "--list"]);
    assert!(!empty.state().exists());
}

#[test]
fn a_damaged_record_is_reported_and_the_others_are_listed() {
    let machine = Machine::with(&[fixture("well"), fixture("pause")]);
    let path = machine.state().join("windows/20261121T031500Z.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("\"rebuilt\": false", "\"rebuilt\": true"),
    )
    .unwrap();
    let output = machine.netfix(&["report"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(
        err.contains("checkpoint-corrupt") && err.contains(path.to_str().unwrap()),
        "{err}"
    );
    let output = machine.netfix(&["report", "--list"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        lines.contains("20261116T090512Z") && lines.contains("cannot be read"),
        "{lines}"
    );
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("warning: checkpoint-corrupt")
    );
    // Then it is unknown whether a window is open. That must not hide a record.
    fs::write(machine.state().join("window.json"), "{").unwrap();
    assert_eq!(
        machine.netfix(&["report", "20261116"]).status.code(),
        Some(0)
    );
    assert_eq!(machine.netfix(&["report"]).status.code(), Some(4));
    assert_eq!(machine.netfix(&["report", "--list"]).status.code(), Some(5));
}

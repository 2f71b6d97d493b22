//! A gateway that was silent before the window is a warning; one that became silent is an error.

use super::scene::{LOSING, Scene, of_pods, quick};
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, Run};

const ABSENT: &str = "10.88.0.99";
/// A gateway that cannot be probed, because its MAC is set by hand.
const FIXED: &str = "10.88.0.98";

/// The gateways with a problem of this severity, each with its pod.
fn silent(run: &Run, severity: &str) -> Vec<(String, String)> {
    let all = ["gateway-unreachable", "gateway-unknown"].map(|code| run.coded(code));
    let some = all
        .iter()
        .flatten()
        .filter(|problem| problem.severity == severity);
    let gateway = |object: &str| object.split(' ').next().unwrap_or_default().to_owned();
    let mut found: Vec<_> = some
        .map(|problem| {
            (
                problem.pod.clone().unwrap_or_default(),
                gateway(&problem.object),
            )
        })
        .collect();
    found.sort();
    found
}

fn pair(pod: &Pod<'_>, gateway: &str) -> (String, String) {
    (pod.name().to_owned(), gateway.to_owned())
}

fn scene(node: &Node) -> Scene<'_> {
    let unlucky = quick(node.pod("web")).simple();
    unlucky.ip(&format!("route add 192.0.2.0/24 via {ABSENT}"));
    unlucky.ip(&format!(
        "neigh add {FIXED} lladdr 02:00:00:88:00:01 nud permanent dev eth0"
    ));
    unlucky.ip(&format!("route add 198.51.100.0/24 via {FIXED}"));
    let both = quick(node.pod("api")).simple();
    both.ip(&format!("addr add {}/64 dev eth0", both.address6()));
    both.ip(&format!("route add default via {GATEWAY6}"));
    let scene = Scene::with_pods(node, vec![unlucky, both]);
    scene
        .machine
        .start_kubelet(crate::common::systemd::PACKAGES);
    scene
}

/// A COMMAND after which the gateway has this address alone.
fn half(scene: &Scene<'_>, address: &str) -> String {
    let loading = scene.loading_with(&[address]);
    scene.script("half", &format!("{LOSING}\n{loading}"))
}

/// The host and both pods do not reach the gateway any more.
#[track_caller]
fn assert_gateway4_is_an_error(scene: &Scene<'_>, run: &Run) {
    let pods = [0, 1].map(|at| pair(&scene.pods[at], GATEWAY4));
    let mut expected = vec![(String::new(), GATEWAY4.to_owned())];
    expected.extend(pods);
    expected.sort();
    assert_eq!(silent(run, "error"), expected, "{}", run.transcript());
}

#[test]
fn a_gateway_that_was_silent_before_is_a_warning_in_a_good_window() {
    let node = Node::new();
    let scene = scene(&node);
    let run = scene
        .upgrade("--answer-wait 3s -o json", &scene.reload())
        .exits(0)
        .errors(&[]);
    assert_eq!(
        silent(&run, "warning"),
        [pair(&scene.pods[0], FIXED), pair(&scene.pods[0], ABSENT)]
    );
    assert_eq!(
        run.json()["report"]["computed"]["verdict"],
        "well",
        "{}",
        run.transcript()
    );
    let record = scene.record();
    let phases = record["phases"].as_array().into_iter().flatten();
    let log = scene.log_of(&record);
    assert!(
        phases.clone().all(|phase| phase["ok"] == true),
        "{record}\n{log}"
    );
    let reported = record["problems"].as_array().into_iter().flatten();
    assert_eq!(reported.count(), 2, "{record}");
    scene.assert_whole();
    // The log counts as `verify` does.
    let verify = scene.netfix("verify --answer-wait 3s").exits(0);
    let sum = verify.out.lines().last().unwrap_or_default();
    assert!(
        sum.starts_with("the host and 2 pods reach their gateways"),
        "{}",
        verify.transcript()
    );
    let log = scene.log_of(&record);
    assert!(log.contains(&format!("netfix: {sum}\n")), "{sum}\n{log}");
}

#[test]
fn a_gateway_that_became_silent_is_an_error() {
    let node = Node::new();
    let scene = scene(&node);
    let run = scene
        .upgrade(
            "--answer-wait 3s -o json",
            &half(&scene, &format!("{GATEWAY6}/64")),
        )
        .exits(5);
    assert_gateway4_is_an_error(&scene, &run);
    let next = |what: &str| {
        let status = node.netfix_alone("status").exits(0);
        let next = status.out.lines().find(|line| line.starts_with("next "));
        assert!(
            next.is_some_and(|next| next.ends_with(what)),
            "{}",
            status.transcript()
        );
    };
    next("Run `netfix verify`");
    node.netfix_alone("snapshot").exits(0);
    next("nothing to do");
    assert_eq!(
        silent(&run, "warning"),
        [pair(&scene.pods[0], FIXED), pair(&scene.pods[0], ABSENT)]
    );
    let pods = [0, 1].map(|at| scene.pods[at].name());
    run.errors(&["", pods[0], pods[1]].map(|pod| ("gateway-unreachable", pod)));
    scene.assert_whole();
    assert_eq!(scene.record()["exit"], 5);
}

#[test]
fn a_gateway_that_is_silent_for_a_moment_before_command_must_answer_after_it() {
    let node = Node::new();
    let scene = scene(&node);
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let gateway = format!("/proc/$(cat {})/fd/9", scene.path("keeper").display());
    let add = format!("nsenter --net={gateway} ip addr add {GATEWAY4}/16 dev up0");
    let before = scene.script("before", &add);
    let options = format!("--answer-wait 3s -o json --before {before}");
    let run = scene
        .upgrade(&options, &half(&scene, &format!("{GATEWAY6}/64")))
        .exits(5);
    assert_gateway4_is_an_error(&scene, &run);
    assert_eq!(run.json()["report"]["computed"]["verdict"], "pods-affected");
    let record = scene.record();
    assert_eq!(of_pods(&record, "shown"), ["not-again", "not-again"]);
    assert_eq!(record["host_shown"], "not-again");
}

#[test]
fn a_pod_of_which_nothing_answers_before_either_is_back_and_not_shown() {
    let node = Node::new();
    let lonely = quick(node.pod("lonely"));
    lonely.macvlan("mode bridge", "");
    lonely.ip("link set eth0 up");
    lonely.ip(&format!("addr add {}/16 dev eth0", lonely.address()));
    let scene = Scene::with_pods(&node, vec![quick(node.pod("web")).simple(), lonely]);
    let run = scene
        .upgrade("--no-pause", &scene.reload())
        .exits(0)
        .stdout_has(&["All restored: 2 of 2 pods back, 1 not shown (nothing answered before);"]);
    run.lacks("All well");
    let shown = of_pods(&scene.record(), "shown");
    assert!(shown.contains(&"again".into()), "{shown:?}");
    assert!(shown.contains(&"never".into()), "{shown:?}");
}

#[test]
fn targets_and_gateways_of_the_host_that_were_silent_are_warnings_and_those_that_became_silent_errors()
 {
    let node = Node::new();
    node.ns
        .ip(&format!("route add 203.0.113.0/24 via {ABSENT}"));
    let scene = scene(&node);
    let names = [0, 1].map(|at| scene.pods[at].name());
    let options = format!("--answer-wait 3s -o json --ping {GATEWAY4} --ping {GATEWAY6}");
    let run = scene
        .upgrade(&options, &half(&scene, &format!("{GATEWAY4}/16")))
        .exits(5);
    let host = |gateway: &str| (String::new(), gateway.to_owned());
    let [errors, warnings] = ["error", "warning"].map(|severity| silent(&run, severity));
    assert!(errors.contains(&host(GATEWAY6)), "{}", run.transcript());
    assert!(!errors.contains(&host(ABSENT)), "{}", run.transcript());
    assert!(warnings.contains(&host(ABSENT)), "{}", run.transcript());
    let found = run.coded("target-unreachable");
    let found = found.iter().map(|problem| {
        let pod = problem.pod.clone().unwrap_or_default();
        (problem.severity.clone(), pod, problem.object.clone())
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    // The first pod never had an IPv6 address.
    let object = format!("ping {GATEWAY6}");
    let expected = [("error", names[1]), ("warning", names[0])];
    let expected = expected.map(|(severity, pod)| (severity.into(), pod.into(), object.clone()));
    assert_eq!(found, expected, "{}", run.transcript());
    let record = scene.record();
    for targets in of_pods(&record, "targets") {
        let of = |at: usize| {
            (
                targets[at]["target"].clone(),
                targets[at]["reachable"].clone(),
            )
        };
        assert_eq!(of(0), (GATEWAY4.into(), true.into()), "{record}");
        assert_eq!(of(1), (GATEWAY6.into(), false.into()), "{record}");
    }
    let answered = format!("ping {GATEWAY6} unreachable");
    scene.netfix("report -o wide").stdout_has(&[&answered]);
    scene.assert_whole();
}

#[test]
fn the_outage_of_a_pod_that_is_not_back_has_no_end() {
    let node = Node::new();
    let pods = ["conflict", "refused", "sound"].map(|name| quick(node.pod(name)).simple());
    let scene = Scene::with_pods(&node, Vec::from(pods));
    scene
        .machine
        .start_kubelet(crate::common::systemd::PACKAGES);
    let [conflict, refused, sound] = &scene.pods[..] else {
        unreachable!("three pods");
    };
    let foreign = format!("{}/16", conflict.address());
    let command = format!(
        "{LOSING}\n{}\nip -n {} rule add pref 5 from all prohibit",
        scene.loading_with(&[
            &format!("{GATEWAY4}/16"),
            &format!("{GATEWAY6}/64"),
            &foreign
        ]),
        refused.name(),
    );
    let run = scene
        .upgrade("--answer-wait 2s -o json", &scene.script("half", &command))
        .exits(5);
    let record = scene.record();
    for pod in record["pods"].as_array().into_iter().flatten() {
        let is_back = pod["id"] == *sound.name();
        assert!(pod["lost"].is_u64(), "{pod}");
        assert_eq!(pod["answered"].is_u64(), is_back, "{pod}");
        let gateways = pod["gateways"].as_array().into_iter().flatten();
        let all = gateways.clone().all(|one| one["reachable"] == true);
        assert_eq!(all, is_back, "{pod}");
    }
    let outages = &run.json()["report"]["computed"]["outages"];
    assert_eq!(outages["unanswered"], 2, "{}", run.transcript());
    let report = scene.netfix("report -o wide");
    for pod in [conflict, refused, sound] {
        let mut rows = report.out.lines();
        let row = rows.find(|line| line.starts_with(pod.name()));
        let is_open = row.unwrap_or_default().contains(" since ");
        assert_eq!(
            is_open,
            pod.name() != sound.name(),
            "{}",
            report.transcript()
        );
    }
    let code = "gateway-unreachable";
    run.names(code, refused.name(), &[GATEWAY4, "rule 5 "])
        .names(code, conflict.name(), &[GATEWAY4, &foreign]);
}

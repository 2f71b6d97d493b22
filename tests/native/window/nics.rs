//! The driver of each NIC before and after a window, in the record and in the report. ip(8) shows what the kernel has.

use serde_json::Value;

use super::scene::{LOSING, Scene, quick};
use crate::common::Node;
use crate::common::runtimes::{ContainerOfPod, FakeCri, Sandbox, Script};
use crate::common::systemd::PACKAGES;

/// The kind of the host's eth0, which is its driver too.
pub(super) fn kind(scene: &Scene<'_>) -> String {
    let text = scene.node.ns.ip("-j -d link show dev eth0");
    let links: Value = serde_json::from_str(&text).expect("JSON of ip(8)");
    let kind = links[0]["linkinfo"]["info_kind"].as_str();
    kind.expect("a kind").to_owned()
}

/// The only NIC of the only record.
fn nic(scene: &Scene<'_>) -> Value {
    let record = scene.record();
    let nics = record["nics"].as_array().expect("NICs").clone();
    assert_eq!(nics.len(), 1, "{nics:?}");
    nics[0].clone()
}

/// The line of the NIC in the report.
fn line(scene: &Scene<'_>) -> String {
    let text = scene.netfix("report").exits(0).out;
    let table = text.split("NIC  ").nth(1).unwrap_or_default().to_owned();
    let line = table.lines().find(|line| line.starts_with("eth0"));
    line.unwrap_or_else(|| panic!("no NIC:\n{text}")).to_owned()
}

/// The record has the driver of the NIC under the pods before and after, and the report that it is the same.
pub(super) fn assert_same_driver(scene: &Scene<'_>, driver: &str) {
    let nic = nic(scene);
    assert_eq!(kind(scene), driver);
    for moment in ["before", "after"] {
        let one = &nic[moment];
        assert_eq!(
            (&one["name"], &one["driver"], &one["carrier"]),
            (&"eth0".into(), &driver.into(), &true.into()),
            "{nic}"
        );
        assert!(one["version"].is_string(), "{nic}");
        assert_eq!(
            (&one["firmware"], &one["bus"]),
            (&Value::Null, &Value::Null)
        );
    }
    assert_eq!(nic["present"], true, "{nic}");
    assert!(line(scene).contains("same"), "{}", line(scene));
}

/// At the last look the NIC was gone.
pub(super) fn assert_absent(scene: &Scene<'_>) {
    let nic = nic(scene);
    assert_eq!(nic["before"]["driver"], "veth", "{nic}");
    assert_eq!(
        (&nic["present"], &nic["after"]),
        (&false.into(), &Value::Null),
        "{nic}"
    );
    let line = line(scene);
    assert!(line.contains("absent"), "{line}");
}

#[test]
fn another_driver_after_command_is_in_the_record_and_in_the_report() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let driver = kind(&scene);
    let other = format!("{LOSING}\nip link add eth0 type bridge");
    let command = scene.script("other", &other);
    scene.upgrade("--nic-wait 500ms", &command).exits(5);
    let nic = nic(&scene);
    assert_eq!(
        (&nic["before"]["driver"], &nic["after"]["driver"]),
        (&driver.into(), &kind(&scene).into()),
        "{nic}"
    );
    let line = line(&scene);
    assert!(line.contains("veth") && line.contains("bridge"), "{line}");
}

/// The only pod on a NIC is deleted before kubelet is paused, and COMMAND takes that NIC.
#[test]
fn a_nic_that_stays_away_fails_a_window_in_which_no_pod_is_lost() {
    let node = Node::new();
    let pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod_on_other_nic("aside")),
    ];
    let scene = Scene::with_pods(&node, pods);
    scene.machine.start_kubelet(PACKAGES);
    let sandbox = |pod: usize, name: &str, number: u8| Sandbox {
        containers: vec![ContainerOfPod::running("app", 0)],
        ..Sandbox::of(&scene.pods[pod], name, number)
    };
    let script = Script {
        sandboxes: vec![sandbox(0, "web", 1), sandbox(1, "aside", 2)],
        ..Script::default()
    };
    let cri = FakeCri::start(&scene.path("cri.sock"), script);
    let [begun, go] = ["begun", "go"].map(|name| scene.path(name));
    let before = scene.script(
        "before",
        &format!(
            "touch {}\nwhile [ ! -e {} ]; do sleep 0.05; done",
            begun.display(),
            go.display()
        ),
    );
    let options = format!(
        "--nic-wait 500ms --before {before} --runtime cri --runtime-endpoint unix://{}",
        cri.socket.display()
    );
    let reload = format!("set -e\nip link del other\n{}", scene.reloading());
    let command = scene.script("command", &reload);
    let upgrade = scene.start_upgrade(&options, &command);
    scene.wait_for_file("begun");
    cri.change(|script| script.sandboxes.truncate(1));
    scene.machine.disown(&scene.pods[1].ns);
    std::fs::write(go, "").expect("a sign");
    let run = upgrade.finish().exits(5);
    let run = run.stdout_has(&[
        "error: parent-missing: other: this NIC of the host existed before COMMAND and is missing",
    ]);
    let last = run.out.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "Host affected: 1 of 2 pods back; 1 gone; no pod was rebuilt (2 of 2 checked); the NIC other is missing."
    );
    let text = scene.netfix("report").exits(0).out;
    assert!(!text.contains("All well"), "{text}");
    assert!(
        text.contains("Host affected") && text.contains("absent"),
        "{text}"
    );
    let record = scene.record();
    assert_eq!(record["exit"], 5, "{record}");
}

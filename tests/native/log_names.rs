//! The log names pods as their runtime does, beside their ids.

use crate::common::journald::Journald;
use crate::common::runtimes::{FakeCri, Sandbox, Script, auto};
use crate::common::{Node, Run};

#[test]
fn problems_and_steps_have_the_name_of_their_pod() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let sandbox = Sandbox::of(&pods[0], "web-0", 1);
    let script = Script {
        sandboxes: vec![sandbox.clone()],
        ..Script::default()
    };
    let runtime = FakeCri::start(&node.temp().join("cri.sock"), script);
    let journald = Journald::start(&node);
    let words = auto(&runtime.socket);
    node.netfix(&format!("snapshot {words}")).exits(0);
    pods[0].ip("link del eth0");
    Run::of(&mut journald.netfix(&node, &format!("snapshot {words}"))).exits(1);
    Run::of(&mut journald.netfix(&node, "restore")).exits(0);
    let entries = journald.entries();
    let of = |target: &str| {
        let all = entries.iter().filter(|entry| entry["TARGET"] == target);
        all.filter(|entry| entry.contains_key("POD"))
            .collect::<Vec<_>>()
    };
    let (problems, steps) = (of("netfix::problem"), of("netfix::step"));
    assert!(!problems.is_empty() && !steps.is_empty(), "{entries:#?}");
    let id = &sandbox.id[..12];
    for entry in problems.iter().chain(&steps) {
        assert_eq!(
            (&*entry["POD"], &*entry["POD_NAME"]),
            (id, "shop/web-0"),
            "{entry:?}"
        );
    }
    let message = &problems[0]["MESSAGE"];
    assert!(
        message.starts_with(&format!("degraded: pod shop/web-0 ({id}): ")),
        "{message}"
    );
}

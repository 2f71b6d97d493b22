//! An address that two pods claim costs them that address, and prevents no window.

use super::scene::{KUBELET, Scene};
use crate::common::Node;

/// The second pod has the first one's address too.
fn steal(scene: &Scene<'_>) {
    let [web, api] = &scene.pods[..] else {
        panic!("two pods");
    };
    api.ip(&format!("addr add {}/32 dev eth0", web.address()));
}

#[test]
fn a_younger_claim_is_reported_and_every_pod_is_back() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    steal(&scene);
    let conflict = ("address-conflict", scene.pods[1].name());
    scene
        .upgrade("-o json", &scene.reload())
        .exits(5)
        .errors(&[conflict])
        .names(conflict.0, conflict.1, &[scene.pods[0].name()]);
    scene.assert_whole();
}

#[test]
fn two_claims_of_the_same_age_cost_only_the_address() {
    let node = Node::new();
    let scene = Scene::new(&node);
    steal(&scene);
    let code = "address-conflict";
    let [first, second] = [0, 1].map(|at| scene.pods[at].name());
    let address = scene.pods[0].address();
    scene.netfix("upgrade --dry-run -- true").exits(0);
    scene
        .upgrade("-o json", &scene.reload())
        .exits(5)
        .errors(&[
            (code, first),
            (code, second),
            ("gateway-unreachable", first),
        ])
        .names(code, first, &[&address, second])
        .names(code, second, &[&address, first])
        .names("gateway-unreachable", first, &[&address, "missing"]);
    let shown = scene.pods[0].ip("addr show dev eth0 up");
    assert!(shown.contains(&scene.pods[0].mac()), "{shown}");
    let shown = scene.pods[1].ip("route show default");
    assert!(shown.contains("via"), "{shown}");
    scene.assert_runs(KUBELET);
}

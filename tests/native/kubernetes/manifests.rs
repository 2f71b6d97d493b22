//! What needs no Kubernetes: the plan's fields, and what the manifests promise.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::manifest::{Manifest, documents, folder, text};

fn plan() -> Value {
    let all = documents(&text("plan.yaml", &[]));
    let mut plans = all.into_iter().filter(|one| one["kind"] == "Plan");
    plans.next().expect("a plan")
}

fn fits(plan: &Value) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/kubernetes/plan.json");
    let schema = fs::read_to_string(path).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    jsonschema::validator_for(&schema)
        .expect("a schema")
        .is_valid(plan)
}

#[test]
fn the_plan_has_the_fields_of_system_upgrade_controller() {
    assert!(fits(&plan()));
    for (place, key, value) in [
        ("/spec", "concurency", json!(1)),
        ("/spec", "concurrency", json!("1")),
        ("/spec", "version", json!("i40e 2.28.7")),
        ("/spec", "postCompleteDelay", json!(120)),
        ("/spec/upgrade", "env", json!([])),
        ("/spec/upgrade", "args", json!("host")),
        (
            "/spec/nodeSelector/matchExpressions/0",
            "operator",
            json!("in"),
        ),
    ] {
        let mut wrong = plan();
        wrong.pointer_mut(place).expect(place)[key] = value;
        assert!(!fits(&wrong), "{key} of {place}");
    }
}

/// Every document of every manifest.
fn all() -> Vec<(PathBuf, Value)> {
    let files = fs::read_dir(folder())
        .expect("the manifests")
        .flatten()
        .map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    files
        .flat_map(|path| {
            let text = fs::read_to_string(&path).expect("a manifest");
            documents(&text)
                .into_iter()
                .map(move |one| (path.clone(), one))
        })
        .collect()
}

#[test]
fn no_pod_has_a_token_or_a_role() {
    for (path, document) in all() {
        let kind = document["kind"].as_str().expect("a kind");
        assert!(!kind.contains("Role"), "{}", path.display());
        if kind == "ServiceAccount" {
            assert_eq!(
                document["automountServiceAccountToken"],
                false,
                "{}",
                path.display()
            );
        }
    }
    for file in ["snapshot.yaml", "check.yaml", "job.yaml"] {
        let spec = Manifest::read(file, &[]).spec;
        assert_eq!(spec["automountServiceAccountToken"], false, "{file}");
        assert_eq!(spec["serviceAccountName"], "netfix", "{file}");
    }
    assert_eq!(plan()["spec"]["serviceAccountName"], "netfix");
}

/// A paused kubelet makes the node not-ready: nothing may evict a pod of netfix, and no full node may keep one out.
#[test]
fn every_pod_tolerates_every_taint_and_is_critical() {
    let of_plan = plan()["spec"].clone();
    let specs =
        ["snapshot.yaml", "check.yaml", "job.yaml"].map(|file| Manifest::read(file, &[]).spec);
    for spec in specs.iter().chain([&of_plan]) {
        assert_eq!(
            spec["tolerations"],
            json!([{"operator": "Exists"}]),
            "{spec}"
        );
        assert_eq!(spec["priorityClassName"], "system-node-critical", "{spec}");
    }
}

#[test]
fn every_manifest_names_the_image_of_this_version() {
    let image = format!("netfix:{}", env!("CARGO_PKG_VERSION"));
    for file in ["snapshot.yaml", "check.yaml", "job.yaml", "plan.yaml"] {
        assert_eq!(
            Manifest::read(file, &[]).container()["image"],
            *image,
            "{file}"
        );
    }
    let tag = format!("newTag: {}", env!("CARGO_PKG_VERSION"));
    assert!(text("kustomization.yaml", &[]).contains(&tag));
}

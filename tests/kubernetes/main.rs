//! The manifests of `contrib/kubernetes` against the published schemas of the Kubernetes API and of system-upgrade-controller,
//! rendered by kubectl. `scripts/setup --all` installs both into target/lab/kubernetes; without them the tests fail.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use common::manifest::{self, documents};
use common::tool;

/// The first version with the field `appArmorProfile`.
const FIELD_SINCE: &str = "1.30";

fn installed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/lab/kubernetes")
        .join(name);
    assert!(
        path.exists(),
        "{} is missing: run scripts/setup --all",
        path.display()
    );
    path.display().to_string()
}

fn python(words: &[&str], input: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes/validate.py");
    let mut command = tool::command(&installed("bin/python3"), [script]);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("python3 starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "validate.py: {}", output.status);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The fault of each document in a version, if it has one.
fn faults(cases: &[(String, Value)]) -> Vec<Option<String>> {
    let cases: Vec<Value> = cases
        .iter()
        .map(|(version, document)| json!({"version": version, "document": document}))
        .collect();
    let answer = python(&[], &Value::from(cases).to_string());
    let all = answer.as_array().expect("a list").iter();
    all.map(|fault| fault.as_str().map(str::to_owned)).collect()
}

/// Every version with schemas: the last three years.
fn versions() -> Vec<String> {
    let versions = manifest::texts(&python(&["--versions"], ""));
    assert!(
        versions.len() > 10 && versions.iter().any(|one| one == FIELD_SINCE),
        "{versions:?}"
    );
    versions
}

fn is_before_field(version: &str) -> bool {
    let minor = |text: &str| text.split('.').nth(1).and_then(|n| n.parse::<u32>().ok());
    minor(version) < minor(FIELD_SINCE)
}

/// What `kubectl apply -k` would send, with this component.
fn rendered(component: Option<&str>) -> Vec<Value> {
    let folder = tempfile::TempDir::new().expect("a folder");
    tool::run(
        tool::command("cp", ["-r"])
            .arg(manifest::folder())
            .arg(folder.path().join("base")),
    );
    let components = component
        .map(|name| format!("components: [base/{name}]\n"))
        .unwrap_or_default();
    let text = format!("resources: [base]\n{components}");
    fs::write(folder.path().join("kustomization.yaml"), text).expect("a file");
    let mut kubectl = tool::command(&installed("kubectl"), ["kustomize"]);
    documents(&tool::run(kubectl.arg(folder.path())))
}

/// The job, for a version.
fn job(version: &str) -> Value {
    let mut job = documents(&manifest::text("job.yaml", &[])).remove(0);
    if is_before_field(version) {
        let context = &mut job["spec"]["template"]["spec"]["containers"][0]["securityContext"];
        context
            .as_object_mut()
            .expect("an object")
            .remove("appArmorProfile");
    }
    job
}

/// The pod that system-upgrade-controller makes of the plan.
fn pod_of_plan() -> Value {
    let plan = manifest::Manifest::read("plan.yaml", &[]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plan"}, "spec": plan.spec})
}

#[test]
fn every_manifest_fits_every_version() {
    let (new, old) = (rendered(None), rendered(Some("before-1.30")));
    let kinds: Vec<&str> = new.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        ["Namespace", "ServiceAccount", "DaemonSet", "DaemonSet"]
    );
    let mut cases = Vec::new();
    for version in versions() {
        let of_version = if is_before_field(&version) {
            &old
        } else {
            &new
        };
        cases.extend(of_version.iter().map(|one| (version.clone(), one.clone())));
        cases.push((version.clone(), job(&version)));
        if !is_before_field(&version) {
            cases.push((version.clone(), pod_of_plan()));
        }
    }
    for ((version, document), fault) in cases.iter().zip(faults(&cases)) {
        assert_eq!(fault, None, "{} in {version}", document["kind"]);
    }
}

#[test]
fn a_wrong_manifest_does_not_fit() {
    let newest = versions().pop().expect("a version");
    let container = "/spec/template/spec/containers/0";
    let mut cases = Vec::new();
    for (place, key, value) in [
        ("/spec/template/spec", "hostPid", json!(true)),
        ("/spec/template/spec", "hostPID", json!("true")),
        (container, "securitycontext", json!({})),
        (
            &format!("{container}/securityContext"),
            "capabilities",
            json!(["SYS_ADMIN"]),
        ),
        (
            &format!("{container}/volumeMounts/0"),
            "mountPropagation",
            json!(1),
        ),
        (
            "/spec/template/spec/volumes/0",
            "hostpath",
            json!({"path": "/run"}),
        ),
    ] {
        for document in rendered(None)
            .into_iter()
            .filter(|one| one["kind"] == "DaemonSet")
        {
            let mut document = document;
            document.pointer_mut(place).expect(place)[key] = value.clone();
            cases.push((newest.clone(), document));
        }
    }
    // A version that has no such field yet.
    cases.push(("1.29".to_owned(), job(FIELD_SINCE)));
    for ((version, document), fault) in cases.iter().zip(faults(&cases)) {
        assert!(fault.is_some(), "it fits {version}: {document}");
    }
}

#[test]
fn the_overlay_for_older_versions_changes_only_the_profile() {
    let (new, old) = (rendered(None), rendered(Some("before-1.30")));
    for (mut new, mut old) in new.into_iter().zip(old) {
        if new["kind"] == "DaemonSet" {
            let context = "/spec/template/spec/containers/0/securityContext";
            let field = new
                .pointer_mut(context)
                .and_then(Value::as_object_mut)
                .expect("a context")
                .remove("appArmorProfile");
            assert_eq!(field, Some(json!({"type": "Unconfined"})));
            let metadata = old
                .pointer_mut("/spec/template/metadata")
                .and_then(Value::as_object_mut);
            let annotations = metadata
                .expect("metadata")
                .remove("annotations")
                .expect("an annotation");
            let name = new
                .pointer("/spec/template/spec/containers/0/name")
                .and_then(Value::as_str)
                .expect("a name");
            let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
            assert_eq!(annotations, json!({key: "unconfined"}));
        }
        assert_eq!(new, old);
    }
}

//! The manifests of `contrib/kubernetes`, read as the API server would read them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Value, json};

/// A pod with one container, of a `DaemonSet`, a Job, or a job that system-upgrade-controller makes of a Plan.
pub struct Manifest {
    pub name: String,
    pub spec: Value,
}

/// The folder of the manifests.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/kubernetes")
}

/// The documents of a YAML text.
pub fn documents(text: &str) -> Vec<Value> {
    let documents = serde_yaml_ng::Deserializer::from_str(text);
    documents
        .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("{e}\n{text}")))
        .collect()
}

/// A manifest's text with replaced words, as an administrator replaces them; each must be there.
pub fn text(name: &str, replaced: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    replaced.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "{name} has no {old}");
        text.replace(old, new)
    })
}

impl Manifest {
    /// The one workload of a file, with replaced words.
    pub fn read(name: &str, replaced: &[(&str, &str)]) -> Self {
        let all = documents(&text(name, replaced));
        let mut pods = all.iter().filter_map(Self::of);
        let one = pods
            .next()
            .unwrap_or_else(|| panic!("{name} has no workload"));
        assert!(pods.next().is_none(), "{name} has several workloads");
        one
    }

    fn of(document: &Value) -> Option<Self> {
        let metadata = &document["metadata"];
        let name = metadata["name"]
            .as_str()
            .or(metadata["generateName"].as_str())?;
        let spec = match document["kind"].as_str()? {
            "DaemonSet" | "Job" => document["spec"]["template"]["spec"].clone(),
            "Plan" => of_plan(&document["spec"]),
            _ => return None,
        };
        let one = spec["containers"]
            .as_array()
            .is_some_and(|all| all.len() == 1);
        assert!(
            one && spec["initContainers"].is_null(),
            "not one container: {spec}"
        );
        let name = name.trim_end_matches('-').to_owned();
        Some(Self { name, spec })
    }

    pub fn container(&self) -> &Value {
        &self.spec["containers"][0]
    }

    pub fn container_mut(&mut self) -> &mut Value {
        &mut self.spec["containers"][0]
    }

    /// A list of texts of the container; empty without one.
    pub fn words(&self, key: &str) -> Vec<String> {
        texts(&self.container()[key])
    }

    /// The path on the host of a volume's mount in the container.
    pub fn host_path(&self, mount: &Value) -> String {
        let volumes = self.spec["volumes"].as_array().into_iter().flatten();
        let mut named = volumes.filter(|volume| volume["name"] == mount["name"]);
        let volume = named
            .next()
            .unwrap_or_else(|| panic!("no volume {}", mount["name"]));
        let path = volume["hostPath"]["path"].as_str();
        path.unwrap_or_else(|| panic!("{volume} is no hostPath"))
            .to_owned()
    }
}

/// The texts of a list.
pub fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.map(|one| {
        one.as_str()
            .unwrap_or_else(|| panic!("{one} is no text"))
            .to_owned()
    })
    .collect()
}

/// The pod of system-upgrade-controller: the host's namespaces and its root below `/host`.
fn of_plan(plan: &Value) -> Value {
    let mut container = plan["upgrade"].clone();
    container["name"] = json!("upgrade");
    container["env"] =
        json!([{"name": "SYSTEM_UPGRADE_PLAN_LATEST_HASH", "value": "0123456789abcdef"}]);
    container["volumeMounts"] = json!([{"name": "host-root", "mountPath": "/host"}]);
    json!({
        "hostPID": true, "hostIPC": true, "hostNetwork": true, "containers": [container],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}],
    })
}

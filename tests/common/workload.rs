//! Runs the pod of a manifest over CRI, with the requests that kubelet makes of it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_cri::v1::{
    Capability, ContainerConfig, ContainerMetadata, ContainerState, CreateContainerRequest,
    ImageSpec, Int64Value, KeyValue, LinuxContainerConfig, LinuxContainerSecurityContext,
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, Mount, MountPropagation, NamespaceMode,
    NamespaceOption, PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest, SecurityProfile,
    security_profile::ProfileType,
};
use serde_json::Value;

use super::background::wait_until;
use super::containerd::CriNode;
use super::manifest::{Manifest, texts};
use super::tool;

/// The paths that kubelet hides from a container, and those that it makes read-only.
const MASKED: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];
/// The logs of containers, inside the machine.
const LOGS: &str = "/var/lib/pod-logs";

/// A running pod of a manifest.
pub struct Workload<'n> {
    node: &'n CriNode,
    pub sandbox: String,
    pub container: String,
    log: PathBuf,
}

impl<'n> Workload<'n> {
    /// Starts the pod; `env` has the values of what is read from the pod's own fields.
    pub fn start(node: &'n CriNode, manifest: &Manifest, env: &[(&str, &str)]) -> Self {
        make_host_paths(node, manifest);
        let sandbox_config = sandbox(manifest);
        let cri = node.cri();
        let request = RunPodSandboxRequest {
            config: Some(sandbox_config.clone()),
            runtime_handler: String::new(),
        };
        let sandbox = cri.run_sandbox(request);
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.clone(),
            config: Some(container(manifest, env)),
            sandbox_config: Some(sandbox_config),
        };
        let container = cri.start_container(request);
        let log = node
            .machine
            .outside(&format!("{LOGS}/{}.log", manifest.name));
        Self {
            node,
            sandbox,
            container,
            log,
        }
    }

    /// The exit code of the container, after its end.
    pub fn exit_code(&self) -> i32 {
        let mut code = None;
        let has_ended = wait_until(|| {
            let status = self.node.cri().container_status(&self.container);
            code = (status.state == ContainerState::ContainerExited as i32)
                .then_some(status.exit_code);
            code.is_some()
        });
        assert!(has_ended, "the container still runs:\n{}", self.log());
        code.unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        let status = self.node.cri().container_status(&self.container);
        status.state == ContainerState::ContainerRunning as i32
    }

    /// Its process, by its id inside the machine.
    pub fn pid(&self) -> u32 {
        self.node.cri().container_pid(&self.container)
    }

    /// What it has printed, as `kubectl logs` shows it.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default());
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    /// What kubelet does when the pod is deleted.
    pub fn delete(self) {
        self.node.cri().stop_container(&self.container);
        self.node.cri().remove(&self.sandbox);
    }
}

/// kubelet checks the type of each hostPath, and makes a missing directory where the type says so.
fn make_host_paths(node: &CriNode, manifest: &Manifest) {
    for volume in manifest.spec["volumes"].as_array().into_iter().flatten() {
        let path = volume["hostPath"]["path"].as_str().expect("a hostPath");
        let script = match volume["hostPath"]["type"].as_str() {
            Some("Directory") => "test -d \"$1\"",
            Some("DirectoryOrCreate") => "test -d \"$1\" || mkdir -p -m 755 \"$1\"",
            Some("File") => "test -f \"$1\"",
            other => panic!("{path}: a new type {other:?}"),
        };
        tool::run(node.machine.exec("sh").args(["-c", script, "sh", path]));
    }
}

fn namespaces(spec: &Value) -> NamespaceOption {
    let mode = |key: &str| {
        let mode = if spec[key] == true {
            NamespaceMode::Node
        } else {
            NamespaceMode::Pod
        };
        mode.into()
    };
    NamespaceOption {
        network: mode("hostNetwork"),
        pid: mode("hostPID"),
        ipc: mode("hostIPC"),
        ..Default::default()
    }
}

fn sandbox(manifest: &Manifest) -> PodSandboxConfig {
    let context = LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(&manifest.spec)),
        privileged: manifest.container()["securityContext"]["privileged"] == true,
        ..Default::default()
    };
    let uid = "3f0a1c52-77aa-4c31-9b6e-0000000000aa".to_owned();
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: manifest.name.clone(),
            namespace: "netfix".to_owned(),
            attempt: 0,
            uid: uid.clone(),
        }),
        log_directory: LOGS.to_owned(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: format!("/kubepods/pod{uid}"),
            security_context: Some(context),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn container(manifest: &Manifest, env: &[(&str, &str)]) -> ContainerConfig {
    let spec = manifest.container();
    let text = |key: &str| {
        spec[key]
            .as_str()
            .unwrap_or_else(|| panic!("no {key}: {spec}"))
            .to_owned()
    };
    let words = |key: &str| {
        let words = manifest.words(key);
        // kubelet would replace these by variables of the container.
        assert!(words.iter().all(|word| !word.contains("$$")), "{words:?}");
        words
    };
    let envs = spec["env"].as_array().into_iter().flatten().map(|one| {
        let key = one["name"].as_str().expect("a name").to_owned();
        let given = env
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value);
        let value = one["value"]
            .as_str()
            .or(given)
            .unwrap_or_else(|| panic!("no value of {key}"));
        KeyValue {
            value: value.to_owned(),
            key,
        }
    });
    ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: text("name"),
            attempt: 0,
        }),
        image: Some(ImageSpec {
            image: text("image"),
            ..Default::default()
        }),
        command: words("command"),
        args: words("args"),
        envs: envs.collect(),
        mounts: mounts(manifest),
        log_path: format!("{}.log", manifest.name),
        annotations: HashMap::new(),
        linux: Some(LinuxContainerConfig {
            security_context: Some(security(&manifest.spec, &spec["securityContext"])),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn mounts(manifest: &Manifest) -> Vec<Mount> {
    let all = manifest.container()["volumeMounts"]
        .as_array()
        .into_iter()
        .flatten();
    all.map(|mount| {
        let propagation = match mount["mountPropagation"].as_str() {
            None | Some("None") => MountPropagation::PropagationPrivate,
            Some("HostToContainer") => MountPropagation::PropagationHostToContainer,
            Some("Bidirectional") => MountPropagation::PropagationBidirectional,
            Some(other) => panic!("a new propagation {other}"),
        };
        Mount {
            container_path: mount["mountPath"].as_str().expect("a path").to_owned(),
            host_path: manifest.host_path(mount),
            readonly: mount["readOnly"] == true,
            propagation: propagation.into(),
            ..Default::default()
        }
    })
    .collect()
}

/// Every key of a securityContext; a new one fails the test.
fn security(pod: &Value, context: &Value) -> LinuxContainerSecurityContext {
    let mut security = LinuxContainerSecurityContext {
        namespace_options: Some(namespaces(pod)),
        masked_paths: MASKED.map(str::to_owned).to_vec(),
        readonly_paths: READ_ONLY.map(str::to_owned).to_vec(),
        ..Default::default()
    };
    let number = |value: &Value| {
        Some(Int64Value {
            value: value.as_i64().expect("a number"),
        })
    };
    for (key, value) in context.as_object().into_iter().flatten() {
        match key.as_str() {
            "runAsUser" => security.run_as_user = number(value),
            "runAsGroup" => security.run_as_group = number(value),
            "readOnlyRootFilesystem" => security.readonly_rootfs = value == true,
            "privileged" => security.privileged = value == true,
            "capabilities" => {
                security.capabilities = Some(Capability {
                    add_capabilities: texts(&value["add"]),
                    drop_capabilities: texts(&value["drop"]),
                    ..Default::default()
                });
            }
            "seccompProfile" => security.seccomp = Some(profile(value)),
            "appArmorProfile" => security.apparmor = Some(profile(value)),
            // This machine has no SELinux: containerd would ignore it.
            "seLinuxOptions" => {}
            other => panic!("securityContext has a new key {other}"),
        }
    }
    security
}

fn profile(value: &Value) -> SecurityProfile {
    let kind = match value["type"].as_str() {
        Some("RuntimeDefault") => ProfileType::RuntimeDefault,
        Some("Unconfined") => ProfileType::Unconfined,
        other => panic!("a new profile {other:?}"),
    };
    SecurityProfile {
        profile_type: kind.into(),
        localhost_ref: String::new(),
    }
}

//! The CRI v1 calls that kubelet makes.

use std::path::Path;
use std::time::Duration;

use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use k8s_cri::v1::{
    ContainerConfig, ContainerMetadata, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, CreateContainerRequest, ImageSpec, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, ListPodSandboxRequest, NamespaceMode, NamespaceOption,
    PodSandboxConfig, PodSandboxMetadata, PodSandboxState, PodSandboxStatusRequest,
    RemovePodSandboxRequest, RunPodSandboxRequest, StartContainerRequest, StopContainerRequest,
    StopPodSandboxRequest,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

use super::image;

/// The time limit of every call.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A pod as kubelet requests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSpec {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub attempt: u32,
    pub host_network: bool,
}

/// A sandbox as the runtime reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    pub id: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub attempt: u32,
    pub is_ready: bool,
    pub created_at: i64,
    /// The address that kubelet gets; empty on the host's network.
    pub address: String,
    /// The process id inside the runtime's machine.
    pub pid: u32,
    /// The mount of the network namespace; `None` on the host's network.
    pub netns: Option<String>,
}

pub struct Cri {
    runtime: Runtime,
    client: RuntimeServiceClient<Channel>,
}

impl PodSpec {
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        let [namespace, name, uid] = [namespace, name, uid].map(str::to_owned);
        Self {
            namespace,
            name,
            uid,
            attempt: 0,
            host_network: false,
        }
    }

    fn request(&self) -> RunPodSandboxRequest {
        let network = if self.host_network {
            NamespaceMode::Node
        } else {
            NamespaceMode::Pod
        };
        let options = NamespaceOption {
            network: network.into(),
            ..NamespaceOption::default()
        };
        let context = LinuxSandboxSecurityContext {
            namespace_options: Some(options),
            ..Default::default()
        };
        let linux = LinuxPodSandboxConfig {
            cgroup_parent: format!("/kubepods/pod{}", self.uid),
            security_context: Some(context),
            ..Default::default()
        };
        let config = PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: self.name.clone(),
                uid: self.uid.clone(),
                namespace: self.namespace.clone(),
                attempt: self.attempt,
            }),
            hostname: if self.host_network {
                String::new()
            } else {
                self.name.clone()
            },
            linux: Some(linux),
            ..Default::default()
        };
        RunPodSandboxRequest {
            config: Some(config),
            runtime_handler: String::new(),
        }
    }
}

impl Cri {
    pub fn connect(socket: &Path) -> Result<Self, tonic::transport::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a tokio runtime");
        let endpoint =
            Endpoint::from_shared(format!("unix://{}", socket.display()))?.timeout(TIMEOUT);
        let channel = runtime.block_on(endpoint.connect())?;
        Ok(Self {
            runtime,
            client: RuntimeServiceClient::new(channel),
        })
    }

    /// Creates them in parallel, as kubelet does; the sandbox ids are in the order of the pods.
    pub fn run(&self, pods: &[PodSpec]) -> Vec<String> {
        self.runtime.block_on(async {
            let mut calls = JoinSet::new();
            for (place, pod) in pods.iter().cloned().enumerate() {
                let mut client = self.client.clone();
                calls.spawn(async move {
                    let answer = client.run_pod_sandbox(pod.request()).await;
                    let answer =
                        answer.unwrap_or_else(|e| panic!("RunPodSandbox for {}: {e}", pod.name));
                    (place, answer.into_inner().pod_sandbox_id)
                });
            }
            let mut ids = calls.join_all().await;
            ids.sort_unstable();
            ids.into_iter().map(|(_, id)| id).collect()
        })
    }

    /// Whether the runtime reports its network as ready.
    pub fn is_ready(&self) -> bool {
        let mut client = self.client.clone();
        let answer = self
            .runtime
            .block_on(client.status(k8s_cri::v1::StatusRequest { verbose: false }));
        let status = answer.ok().and_then(|answer| answer.into_inner().status);
        status.is_some_and(|status| {
            !status.conditions.is_empty() && status.conditions.iter().all(|c| c.status)
        })
    }

    /// All sandboxes in the order of their ids, running or not.
    pub fn list(&self) -> Vec<Sandbox> {
        let mut client = self.client.clone();
        let answer = self
            .runtime
            .block_on(client.list_pod_sandbox(ListPodSandboxRequest { filter: None }));
        let items = answer
            .unwrap_or_else(|e| panic!("ListPodSandbox: {e}"))
            .into_inner()
            .items;
        let mut ids: Vec<_> = items.into_iter().map(|item| item.id).collect();
        ids.sort_unstable();
        ids.iter().map(|id| self.status(id)).collect()
    }

    pub fn status(&self, id: &str) -> Sandbox {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: id.to_owned(),
            verbose: true,
        };
        let answer = self
            .runtime
            .block_on(self.client.clone().pod_sandbox_status(request));
        let answer = answer
            .unwrap_or_else(|e| panic!("PodSandboxStatus of {id}: {e}"))
            .into_inner();
        let status = answer.status.unwrap_or_else(|| panic!("no status of {id}"));
        let metadata = status
            .metadata
            .unwrap_or_else(|| panic!("no metadata of {id}"));
        let info = answer
            .info
            .get("info")
            .unwrap_or_else(|| panic!("no verbose status of {id}"));
        let info: Value = serde_json::from_str(info).unwrap_or_else(|e| panic!("{info}: {e}"));
        Sandbox {
            id: status.id,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            attempt: metadata.attempt,
            is_ready: status.state == PodSandboxState::SandboxReady as i32,
            created_at: status.created_at,
            address: status.network.unwrap_or_default().ip,
            pid: info["pid"]
                .as_u64()
                .and_then(|pid| u32::try_from(pid).ok())
                .unwrap_or_default(),
            netns: network_namespace(&info["runtimeSpec"]),
        }
    }

    /// Starts a container of the pause image in a sandbox; returns its id.
    pub fn run_container(&self, sandbox: &str, name: &str) -> String {
        let Sandbox {
            namespace,
            name: pod,
            uid,
            attempt,
            ..
        } = self.status(sandbox);
        let spec = PodSpec {
            attempt,
            ..PodSpec::new(&namespace, &pod, &uid)
        };
        let config = ContainerConfig {
            metadata: Some(ContainerMetadata {
                name: name.to_owned(),
                attempt: 0,
            }),
            image: Some(ImageSpec {
                image: image::PAUSE.to_owned(),
                ..ImageSpec::default()
            }),
            ..ContainerConfig::default()
        };
        self.start_container(CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config),
            sandbox_config: spec.request().config,
        })
    }

    /// Creates a sandbox; returns its id.
    pub fn run_sandbox(&self, request: RunPodSandboxRequest) -> String {
        let mut client = self.client.clone();
        let created = self.runtime.block_on(client.run_pod_sandbox(request));
        let created = created.unwrap_or_else(|e| panic!("RunPodSandbox: {e}"));
        created.into_inner().pod_sandbox_id
    }

    /// Creates and starts a container; returns its id.
    pub fn start_container(&self, request: CreateContainerRequest) -> String {
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let created = client
                .create_container(request)
                .await
                .unwrap_or_else(|e| panic!("CreateContainer: {e}"));
            let container_id = created.into_inner().container_id;
            let start = StartContainerRequest {
                container_id: container_id.clone(),
            };
            client
                .start_container(start)
                .await
                .unwrap_or_else(|e| panic!("StartContainer: {e}"));
            container_id
        })
    }

    pub fn container_status(&self, id: &str) -> ContainerStatus {
        let status = self.container(id).status;
        status.unwrap_or_else(|| panic!("no status of {id}"))
    }

    /// The first process of a container, by its id inside the runtime's machine.
    pub fn container_pid(&self, id: &str) -> u32 {
        let answer = self.container(id);
        let info: Value = serde_json::from_str(&answer.info["info"]).expect("JSON");
        let pid = info["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.unwrap_or_else(|| panic!("no pid in {info}"))
    }

    fn container(&self, id: &str) -> ContainerStatusResponse {
        let mut client = self.client.clone();
        let request = ContainerStatusRequest {
            container_id: id.to_owned(),
            verbose: true,
        };
        let answer = self.runtime.block_on(client.container_status(request));
        let answer = answer.unwrap_or_else(|e| panic!("ContainerStatus of {id}: {e}"));
        answer.into_inner()
    }

    /// Ends a container.
    pub fn stop_container(&self, id: &str) {
        let mut client = self.client.clone();
        let request = StopContainerRequest {
            container_id: id.to_owned(),
            timeout: 0,
        };
        let stopped = self.runtime.block_on(client.stop_container(request));
        stopped.unwrap_or_else(|e| panic!("StopContainer of {id}: {e}"));
    }

    /// What kubelet does when a pod is deleted.
    pub fn remove(&self, id: &str) {
        let mut client = self.client.clone();
        let pod_sandbox_id = id.to_owned();
        self.runtime.block_on(async {
            let stop = StopPodSandboxRequest {
                pod_sandbox_id: pod_sandbox_id.clone(),
            };
            client
                .stop_pod_sandbox(stop)
                .await
                .unwrap_or_else(|e| panic!("StopPodSandbox of {id}: {e}"));
            let remove = RemovePodSandboxRequest { pod_sandbox_id };
            client
                .remove_pod_sandbox(remove)
                .await
                .unwrap_or_else(|e| panic!("RemovePodSandbox of {id}: {e}"));
        });
    }
}

fn network_namespace(spec: &Value) -> Option<String> {
    let namespaces = spec["linux"]["namespaces"].as_array()?;
    let network = namespaces
        .iter()
        .find(|namespace| namespace["type"] == "network")?;
    network["path"].as_str().map(str::to_owned)
}

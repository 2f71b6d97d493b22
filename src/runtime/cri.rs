//! Runtimes with CRI: containerd, CRI-O, cri-dockerd.
//!
//! Older runtimes offer `runtime.v1alpha2`, whose messages are the same; only the name of the service differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use prost::Message;
use serde_json::Value;

use super::answer::Sandbox;
use super::call::{AT_ONCE, Listing, Patience, RuntimeFailure, before};
use super::cri_api as api;
use super::grpc::{Channel, GrpcError, NOT_FOUND, UNIMPLEMENTED};
use super::names::{non_empty, plain};
use crate::model::fate::Container;

/// The kind of runtime.
pub(super) const KIND: &str = "cri";

const SERVICES: [&str; 2] = [
    "runtime.v1.RuntimeService",
    "runtime.v1alpha2.RuntimeService",
];

/// kubelet's annotation of a container.
const RESTARTS: &str = "io.kubernetes.container.restartCount";

/// In the nanoseconds of CRI.
const MILLISECOND: i64 = 1_000_000;

/// A runtime that has answered with its version.
#[derive(Debug)]
pub(super) struct CriClient {
    channel: Channel,
    service: &'static str,
    version: String,
}

impl CriClient {
    /// Connects and calls `Version`.
    pub async fn greet(socket: &str, until: Instant) -> Result<Self, RuntimeFailure> {
        let channel = before(until, "connecting", Channel::connect(socket))
            .await?
            .map_err(RuntimeFailure::NotThere)?;
        let step = "Version";
        for service in SERVICES {
            let mut client = Self {
                channel: channel.clone(),
                service,
                version: String::new(),
            };
            let request = api::VersionRequest::default();
            let path = format!("/{service}/Version");
            match before(until, step, client.channel.unary(&path, &request)).await? {
                Ok(api::VersionResponse {
                    runtime_name,
                    runtime_version,
                }) => {
                    client.version = plain(&format!("{runtime_name} {runtime_version}"));
                    return Ok(client);
                }
                Err(GrpcError::Status(UNIMPLEMENTED, _)) => {}
                Err(refused) => return Err(RuntimeFailure::of(step, refused)),
            }
        }
        Err(RuntimeFailure::NotOffered)
    }

    /// Lists every running sandbox, and their containers where `ran` is set: of those in it that ended, how they did.
    pub async fn list_sandboxes(
        self,
        ran: Option<&BTreeSet<String>>,
    ) -> Result<Listing, RuntimeFailure> {
        let patience = &Patience::new();
        let state = Some(api::PodSandboxStateValue {
            state: api::SANDBOX_READY,
        });
        let filter = Some(api::PodSandboxFilter { state });
        let request = api::ListPodSandboxRequest { filter };
        let listed: api::ListPodSandboxResponse =
            self.list(patience, "ListPodSandbox", request).await?;
        let running = listed
            .items
            .into_iter()
            .filter(|item| item.state == api::SANDBOX_READY);
        let sandboxes: Vec<Option<Sandbox>> = stream::iter(running)
            .map(|item| self.sandbox(patience, item.id))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut sandboxes: Vec<Sandbox> = sandboxes.into_iter().flatten().collect();
        if let Some(ran) = ran {
            let mut of_sandbox = self.containers(patience, ran).await?;
            for sandbox in &mut sandboxes {
                sandbox.containers = of_sandbox.remove(&sandbox.id).unwrap_or_default();
            }
        }
        Ok(Listing {
            kind: KIND,
            version: self.version,
            sandboxes,
        })
    }

    /// Every container, by its sandbox.
    async fn containers(
        &self,
        patience: &Patience,
        ran: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<Container>>, RuntimeFailure> {
        let request = api::ListContainersRequest {};
        let listed: api::ListContainersResponse =
            self.list(patience, "ListContainers", request).await?;
        let containers: Vec<(String, Container)> = stream::iter(listed.containers)
            .map(|listed| async {
                let (of, mut container) = described_container(listed);
                if container.ended && ran.contains(&container.id) {
                    self.add_end(patience, &mut container).await?;
                }
                Ok::<_, RuntimeFailure>((of, container))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut of_sandbox: BTreeMap<String, Vec<Container>> = BTreeMap::new();
        for (of, container) in containers {
            of_sandbox.entry(of).or_default().push(container);
        }
        for containers in of_sandbox.values_mut() {
            containers.sort();
        }
        Ok(of_sandbox)
    }

    /// How a container ended, unless it was removed since.
    async fn add_end(
        &self,
        patience: &Patience,
        container: &mut Container,
    ) -> Result<(), RuntimeFailure> {
        let step = format!("ContainerStatus {}", plain(&container.id));
        let request = api::ContainerStatusRequest {
            container_id: container.id.clone(),
        };
        let answer: Result<api::ContainerStatusResponse, GrpcError> = self
            .call(patience, &step, "ContainerStatus", request)
            .await?;
        let status = answer.ok().and_then(|answer| answer.status);
        if let Some(status) = status.filter(|status| status.finished_at > 0) {
            container.exit = Some(status.exit_code);
            container.finished = Some(status.finished_at / MILLISECOND);
        }
        Ok(())
    }

    /// One sandbox; `None` if it ended after the list or uses the host's namespace.
    async fn sandbox(
        &self,
        patience: &Patience,
        id: String,
    ) -> Result<Option<Sandbox>, RuntimeFailure> {
        let step = format!("PodSandboxStatus {}", plain(&id));
        let request = api::PodSandboxStatusRequest {
            pod_sandbox_id: id.clone(),
            verbose: true,
        };
        let answer: Result<api::PodSandboxStatusResponse, GrpcError> = self
            .call(patience, &step, "PodSandboxStatus", request)
            .await?;
        match answer {
            Ok(response) if !id.is_empty() => {
                let status = response
                    .status
                    .ok_or_else(|| RuntimeFailure::of(&step, "no status in the answer"))?;
                Ok(described(
                    id,
                    status,
                    response.info.get("info").map_or("", String::as_str),
                ))
            }
            Ok(_) => Err(RuntimeFailure::of(&step, "it was listed without an id")),
            Err(GrpcError::Status(NOT_FOUND, _)) => Ok(None),
            Err(refused) => Err(RuntimeFailure::of(&step, refused)),
        }
    }

    async fn list<A: Message + Default>(
        &self,
        patience: &Patience,
        method: &str,
        request: impl Message,
    ) -> Result<A, RuntimeFailure> {
        let answer = self.call(patience, method, method, request).await?;
        answer.map_err(|refused| RuntimeFailure::of(method, refused))
    }

    async fn call<A: Message + Default>(
        &self,
        patience: &Patience,
        step: &str,
        method: &str,
        request: impl Message,
    ) -> Result<Result<A, GrpcError>, RuntimeFailure> {
        let path = format!("/{}/{method}", self.service);
        patience
            .wait(step, self.channel.unary(&path, &request))
            .await
    }
}

/// The process of a sandbox, and the path of its network namespace, in the verbose part of the answer: what the OCI
/// runtime was given.
fn process_and_netns(info: &Value) -> (Option<u32>, Option<PathBuf>) {
    let pid = info["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let path = info["runtimeSpec"]["linux"]["namespaces"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|namespace| namespace["type"] == "network")
        .and_then(|network| network["path"].as_str())
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    (pid.filter(|pid| *pid != 0), path)
}

/// The sandbox of a container, and the container.
fn described_container(listed: api::CriContainer) -> (String, Container) {
    // A container that kubelet starts again gets the next attempt, and the count as an annotation.
    let attempt = listed.metadata.as_ref().map(|metadata| metadata.attempt);
    let count = listed.annotations.get(RESTARTS);
    let container = Container {
        name: plain(&listed.metadata.unwrap_or_default().name),
        id: listed.id,
        restarts: attempt.max(count.and_then(|count| count.parse().ok())),
        ended: listed.state != api::CONTAINER_RUNNING,
        exit: None,
        finished: None,
        created: (listed.created_at > 0).then_some(listed.created_at / MILLISECOND),
    };
    (listed.pod_sandbox_id, container)
}

pub(super) fn described(id: String, status: api::PodSandboxStatus, info: &str) -> Option<Sandbox> {
    let namespaces = status
        .linux
        .as_ref()
        .and_then(|linux| linux.namespaces.as_ref());
    let options = namespaces.and_then(|namespaces| namespaces.options.as_ref());
    let is_on_host = options.is_some_and(|options| options.network == api::NODE);
    if status.state != api::SANDBOX_READY || is_on_host {
        return None;
    }
    // Optional: without it the namespace is found by cgroup and mount.
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    let (pid, netns) = process_and_netns(&info);
    let attempt = status.metadata.as_ref().map(|metadata| metadata.attempt);
    let api::PodSandboxMetadata {
        name,
        uid,
        namespace,
        attempt: _,
    } = status.metadata.unwrap_or_default();
    Some(Sandbox {
        id,
        namespace: non_empty(&namespace),
        has_network: true,
        name: non_empty(&name),
        uid: non_empty(&uid),
        attempt,
        pid,
        netns,
        source: KIND,
        containers: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_the_attempt_or_kubelets_count() {
        let restarts = |attempt: Option<u32>, count: Option<&str>| {
            let annotation = count.map(|count| (RESTARTS.to_owned(), count.to_owned()));
            let listed = api::CriContainer {
                metadata: attempt.map(|attempt| api::ContainerMetadata {
                    name: "app".to_owned(),
                    attempt,
                }),
                annotations: annotation.into_iter().collect(),
                ..api::CriContainer::default()
            };
            described_container(listed).1.restarts
        };
        assert_eq!(restarts(Some(0), None), Some(0));
        assert_eq!(restarts(Some(0), Some("4")), Some(4));
        assert_eq!(restarts(Some(4), Some("many")), Some(4));
        assert_eq!(restarts(None, None), None);
    }

    #[test]
    fn a_field_that_the_verbose_answer_lacks_is_unknown() {
        for info in [
            "{}",
            r#"{"runtimeSpec": null}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": null}}}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": [{"type": "network"}]}}}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": [{"type": "network", "path": ""}]}}}"#,
        ] {
            let parsed = serde_json::from_str(info).unwrap();
            assert_eq!(process_and_netns(&parsed), (None, None), "{info}");
        }
    }
}

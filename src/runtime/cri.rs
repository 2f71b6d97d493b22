//! Runtimes that speak CRI: containerd, CRI-O, cri-dockerd.
//!
//! The messages used here are the same in `runtime.v1` and in `runtime.v1alpha2`, which older runtimes speak; only the
//! name of the service differs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_cri::v1 as api;
use serde::Deserialize;
use tonic::client::Grpc;
use tonic::codec::Codec;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use super::Sandbox;
use super::call::{AT_ONCE, Failure, Told, before, cause};
use super::names::{plain, told};
use crate::model::window::Container;

/// The kind of runtime.
pub(super) const KIND: &str = "cri";

const SERVICES: [&str; 2] = ["runtime.v1.RuntimeService", "runtime.v1alpha2.RuntimeService"];

/// How large one answer may be, in bytes: as much as kubelet takes.
const MAX_ANSWER: usize = 16 << 20;

const READY: i32 = api::PodSandboxState::SandboxReady as i32;
const RUNNING: i32 = api::ContainerState::ContainerRunning as i32;
const ON_HOST: i32 = api::NamespaceMode::Node as i32;

/// A runtime that has said who it is.
#[derive(Debug)]
pub(super) struct Client {
    grpc: Grpc<Channel>,
    service: &'static str,
    version: String,
}

impl Client {
    /// Connects and asks for the version.
    pub async fn greet(socket: &str, until: Instant) -> Result<Self, Failure> {
        let step = "connecting";
        let unusable = |error: tonic::transport::Error| Failure::of(step, cause(&error));
        let endpoint = Endpoint::from_shared(format!("unix://{socket}")).map_err(unusable)?;
        let channel = before(until, step, endpoint.connect()).await?;
        let channel = channel.map_err(|error| Failure::NotThere(cause(&error)))?;
        let grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER);
        let step = "asking for its version";
        for service in SERVICES {
            let mut client = Self { grpc: grpc.clone(), service, version: String::new() };
            let answer: Result<api::VersionResponse, Status> =
                client.call(until, step, "Version", api::VersionRequest::default()).await?;
            match answer {
                Ok(api::VersionResponse { runtime_name, runtime_version, .. }) => {
                    client.version = plain(&format!("{runtime_name} {runtime_version}"));
                    return Ok(client);
                }
                Err(status) if status.code() == Code::Unimplemented => {}
                Err(status) => return Err(Failure::of(step, why(&status))),
            }
        }
        Err(Failure::NotOffered)
    }

    /// Asks for every running sandbox, and for their running containers where they are wanted.
    pub async fn tell(self, containers: bool, until: Instant) -> Result<Told, Failure> {
        let step = "asking for its pods";
        let state = Some(api::PodSandboxStateValue { state: READY });
        let filter = Some(api::PodSandboxFilter { state, ..api::PodSandboxFilter::default() });
        let request = api::ListPodSandboxRequest { filter };
        let listed: api::ListPodSandboxResponse = self
            .call(until, step, "ListPodSandbox", request)
            .await?
            .map_err(|status| Failure::of(step, why(&status)))?;
        let running = listed.items.into_iter().filter(|item| item.state == READY);
        let sandboxes: Vec<Option<Sandbox>> = stream::iter(running)
            .map(|item| self.sandbox(until, item.id))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut sandboxes: Vec<Sandbox> = sandboxes.into_iter().flatten().collect();
        if containers {
            let mut of_sandbox = self.containers(until).await?;
            for sandbox in &mut sandboxes {
                sandbox.containers = of_sandbox.remove(&sandbox.id).unwrap_or_default();
            }
        }
        Ok(Told { kind: KIND, version: self.version, sandboxes })
    }

    /// Every running container, by its sandbox.
    async fn containers(&self, until: Instant) -> Result<BTreeMap<String, Vec<Container>>, Failure> {
        let step = "asking for its containers";
        let listed: api::ListContainersResponse = self
            .call(until, step, "ListContainers", api::ListContainersRequest::default())
            .await?
            .map_err(|status| Failure::of(step, why(&status)))?;
        let mut of_sandbox: BTreeMap<String, Vec<Container>> = BTreeMap::new();
        for container in listed.containers.into_iter().filter(|container| container.state == RUNNING) {
            let restarts = container.metadata.as_ref().map(|metadata| metadata.attempt);
            let name = plain(&container.metadata.unwrap_or_default().name);
            let of = of_sandbox.entry(container.pod_sandbox_id).or_default();
            of.push(Container { name, id: container.id, restarts });
        }
        for containers in of_sandbox.values_mut() {
            containers.sort();
        }
        Ok(of_sandbox)
    }

    /// One sandbox; `None` if it went away since it was listed or uses the host's namespace.
    async fn sandbox(&self, until: Instant, id: String) -> Result<Option<Sandbox>, Failure> {
        let step = format!("asking for sandbox {}", plain(&id));
        let request = api::PodSandboxStatusRequest { pod_sandbox_id: id.clone(), verbose: true };
        let answer: Result<api::PodSandboxStatusResponse, Status> =
            self.call(until, &step, "PodSandboxStatus", request).await?;
        match answer {
            Ok(response) if !id.is_empty() => {
                let status = response.status.ok_or_else(|| Failure::of(&step, "no status in the answer"))?;
                Ok(described(id, status, response.info.get("info").map_or("", String::as_str)))
            }
            Ok(_) => Err(Failure::of(&step, "it is told of without an id")),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(Failure::of(&step, why(&status))),
        }
    }

    async fn call<Q, A>(
        &self,
        until: Instant,
        step: &str,
        method: &str,
        request: Q,
    ) -> Result<Result<A, Status>, Failure>
    where
        Q: Send + Sync + 'static,
        A: Send + Sync + 'static,
        ProstCodec<Q, A>: Codec<Encode = Q, Decode = A>,
    {
        let path = PathAndQuery::try_from(format!("/{}/{method}", self.service));
        let path = path.map_err(|error| Failure::of(step, error))?;
        let mut grpc = self.grpc.clone();
        let answer = async move {
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            grpc.unary(Request::new(request), path, ProstCodec::default()).await.map(Response::into_inner)
        };
        before(until, step, answer).await
    }
}

fn why(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(_) => cause(status),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}

/// The part of `info["info"]` that containerd and CRI-O have in common.
#[derive(Debug, Default, Deserialize)]
struct Info {
    pid: Option<u32>,
    #[serde(rename = "runtimeSpec")]
    spec: Option<Spec>,
}

/// An OCI runtime specification.
#[derive(Debug, Default, Deserialize)]
struct Spec {
    linux: Option<Linux>,
}

#[derive(Debug, Default, Deserialize)]
struct Linux {
    namespaces: Option<Vec<Namespace>>,
}

#[derive(Debug, Deserialize)]
struct Namespace {
    r#type: String,
    path: Option<PathBuf>,
}

impl Info {
    fn netns(self) -> Option<PathBuf> {
        let namespaces = self.spec?.linux?.namespaces?;
        let network = namespaces.into_iter().find(|namespace| namespace.r#type == "network")?;
        network.path.filter(|path| path.is_absolute())
    }
}

fn described(id: String, status: api::PodSandboxStatus, info: &str) -> Option<Sandbox> {
    let network = || Some(status.linux.as_ref()?.namespaces.as_ref()?.options.as_ref()?.network);
    if status.state != READY || network() == Some(ON_HOST) {
        return None;
    }
    // What cannot be read there is told by nobody, and the namespace is looked for by other means.
    let info: Info = serde_json::from_str(info).unwrap_or_default();
    let attempt = status.metadata.as_ref().map(|metadata| metadata.attempt);
    let api::PodSandboxMetadata { name, uid, namespace, .. } = status.metadata.unwrap_or_default();
    Some(Sandbox {
        id,
        namespace: told(&namespace),
        name: told(&name),
        uid: told(&uid),
        attempt,
        pid: info.pid.filter(|pid| *pid != 0),
        netns: info.netns(),
        source: KIND,
        containers: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn netns_of(info: &str) -> (Option<u32>, Option<PathBuf>) {
        let info: Info = serde_json::from_str(info).unwrap();
        (info.pid, info.netns())
    }

    #[test]
    fn the_process_and_the_namespace_are_read_from_the_verbose_answer() {
        let info = r#"{"pid": 4711, "processStatus": "running", "runtimeSpec": {"ociVersion": "1.1.0", "linux": {
            "namespaces": [{"type": "pid"}, {"type": "network", "path": "/var/run/netns/cni-1"}]}}}"#;
        assert_eq!(netns_of(info), (Some(4711), Some(PathBuf::from("/var/run/netns/cni-1"))));
    }

    #[test]
    fn what_the_verbose_answer_does_not_tell_is_unknown() {
        for info in [
            "{}",
            r#"{"runtimeSpec": null}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": null}}}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": [{"type": "network"}]}}}"#,
            r#"{"runtimeSpec": {"linux": {"namespaces": [{"type": "network", "path": ""}]}}}"#,
        ] {
            assert_eq!(netns_of(info), (None, None), "{info}");
        }
    }
}

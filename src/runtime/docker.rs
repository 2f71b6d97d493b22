//! Docker, and podman behind the same API.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::ListContainersOptions;
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::Sandbox;
use super::call::{AT_ONCE, Failure, Told, before, cause};
use super::names::{KubeName, plain, told};
use super::ping;
use crate::model::window::Container;

const DOCKER: &str = "docker";
const PODMAN: &str = "podman";
/// What podman calls itself there.
const LIBPOD: &str = "libpod";

/// Seconds after which bollard gives a request up by itself: never, for every call here has its own limit.
const NEVER: u64 = 3600;
const GONE: u16 = 404;

/// Labels that dockershim and cri-dockerd put on their containers.
const TYPE: &str = "io.kubernetes.docker.type";
const SANDBOX: &str = "podsandbox";
const APPLICATION: &str = "container";
const POD_NAME: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
const POD_UID: &str = "io.kubernetes.pod.uid";
const SANDBOX_ID: &str = "io.kubernetes.sandbox.id";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";
const RESTARTS: &str = "annotation.io.kubernetes.container.restartCount";

/// A runtime that has said who it is.
#[derive(Debug)]
pub(super) struct Client {
    docker: Docker,
    kind: &'static str,
    version: String,
}

impl Client {
    /// Connects and asks who is there.
    pub async fn greet(socket: &str, until: Instant) -> Result<Self, Failure> {
        let docker = Docker::connect_with_unix(socket, NEVER, API_DEFAULT_VERSION);
        let docker = docker.map_err(|error| Failure::of("connecting", cause(&error)))?;
        let step = "asking for its version";
        let product = before(until, step, ping::product(socket)).await?;
        let product = product.map_err(|error| Failure::of(step, cause(error.as_ref())))?;
        let kind = if product.name.eq_ignore_ascii_case(LIBPOD) { PODMAN } else { DOCKER };
        Ok(Self { docker, kind, version: plain(&format!("{kind} {}", product.version)) })
    }

    /// Asks for every running container that owns a network namespace, and for those of its pod where they are wanted.
    pub async fn tell(self, containers: bool, until: Instant) -> Result<Told, Failure> {
        let step = "asking for its containers";
        // podman would leave out the paused ones unless they are asked for.
        let alive = ["running", "paused"].map(str::to_owned).to_vec();
        let filters = Some(HashMap::from([("status".to_owned(), alive)]));
        let options = ListContainersOptions { filters, ..ListContainersOptions::default() };
        let listed = before(until, step, self.docker.list_containers(Some(options))).await?;
        let listed = listed.map_err(|error| Failure::of(step, cause(&error)))?;
        let is_application =
            |labels: &HashMap<String, String>| labels.get(TYPE).is_some_and(|t| t == APPLICATION);
        let (of_pods, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|container| container.labels.as_ref().is_some_and(is_application));
        let others = others.into_iter().map(|container| container.id.unwrap_or_default());
        let sandboxes: Vec<Option<Sandbox>> = stream::iter(others)
            .map(|id| self.container(until, id))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut sandboxes: Vec<Sandbox> = sandboxes.into_iter().flatten().collect();
        for container in of_pods.into_iter().filter(|_| containers) {
            let Some((of, container)) = of_sandbox(container) else { continue };
            if let Some(sandbox) = sandboxes.iter_mut().find(|sandbox| sandbox.id == of) {
                sandbox.containers.push(container);
            }
        }
        for sandbox in &mut sandboxes {
            sandbox.containers.sort();
        }
        Ok(Told { kind: self.kind, version: self.version, sandboxes })
    }

    /// One container; `None` if it ended since it was listed or owns no network namespace.
    async fn container(&self, until: Instant, id: String) -> Result<Option<Sandbox>, Failure> {
        let step = format!("asking for container {}", plain(&id));
        if id.is_empty() {
            return Err(Failure::of(&step, "it is told of without an id"));
        }
        match before(until, &step, self.docker.inspect_container(&id, None)).await? {
            Ok(container) => Ok(described(id, container, self.kind)),
            Err(Error::DockerResponseServerError { status_code: GONE, .. }) => Ok(None),
            Err(error) => Err(Failure::of(&step, cause(&error))),
        }
    }
}

/// A container of a pod, and its sandbox.
fn of_sandbox(container: ContainerSummary) -> Option<(String, Container)> {
    let labels = container.labels.unwrap_or_default();
    let restarts = labels.get(RESTARTS).and_then(|count| count.parse().ok());
    let name = labels.get(CONTAINER_NAME).map(|name| plain(name)).unwrap_or_default();
    Some((labels.get(SANDBOX_ID)?.clone(), Container { name, id: container.id?, restarts }))
}

fn described(id: String, container: ContainerInspectResponse, kind: &'static str) -> Option<Sandbox> {
    let state = container.state.unwrap_or_default();
    let is = |flag: Option<bool>| flag == Some(true);
    let mode = container.host_config.and_then(|host| host.network_mode).unwrap_or_default();
    let lives = (is(state.running) || is(state.paused)) && !is(state.restarting);
    if !lives || mode == "host" || mode.starts_with("container:") {
        return None;
    }
    let labels = container.config.and_then(|config| config.labels).unwrap_or_default();
    let name = container.name.unwrap_or_default().trim_start_matches('/').to_owned();
    let kube = KubeName::parse(&name);
    if kube.as_ref().is_some_and(|kube| !kube.is_sandbox) {
        return None;
    }
    let netns = container.network_settings.and_then(|settings| settings.sandbox_key).map(PathBuf::from);
    let mut sandbox = Sandbox {
        id,
        namespace: None,
        name: told(&name),
        uid: None,
        attempt: None,
        netns: netns.filter(|path| path.is_absolute()),
        pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0),
        source: kind,
        containers: Vec::new(),
    };
    if kube.is_none() {
        let restarts = container.restart_count.and_then(|count| u32::try_from(count).ok());
        let (name, id) = (sandbox.name.clone().unwrap_or_default(), sandbox.id.clone());
        sandbox.containers.push(Container { name, id, restarts });
    }
    if let Some(kube) = kube {
        sandbox.attempt = Some(kube.attempt);
        sandbox.namespace = told(&kube.namespace);
        sandbox.name = told(&kube.name);
        sandbox.uid = told(&kube.uid);
    }
    if labels.get(TYPE).is_some_and(|r#type| r#type == SANDBOX) {
        let label = |key: &str| labels.get(key).and_then(|label| told(label));
        sandbox.namespace = label(POD_NAMESPACE).or(sandbox.namespace);
        sandbox.name = label(POD_NAME).or(sandbox.name);
        sandbox.uid = label(POD_UID).or(sandbox.uid);
    }
    Some(sandbox)
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerConfig, ContainerState, HostConfig};

    use super::*;

    fn container(name: &str, mode: &str, labels: &[(&str, &str)]) -> ContainerInspectResponse {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        ContainerInspectResponse {
            name: Some(format!("/{name}")),
            state: Some(ContainerState { running: Some(true), pid: Some(4711), ..ContainerState::default() }),
            host_config: Some(HostConfig { network_mode: Some(mode.to_owned()), ..HostConfig::default() }),
            config: Some(ContainerConfig {
                labels: Some(labels.iter().map(own).collect()),
                ..ContainerConfig::default()
            }),
            ..ContainerInspectResponse::default()
        }
    }

    fn names(container: ContainerInspectResponse) -> Option<[String; 3]> {
        let sandbox = described("0123".to_owned(), container, DOCKER)?;
        Some(
            [sandbox.namespace, sandbox.name, sandbox.uid].map(|name| name.unwrap_or_else(|| "-".to_owned())),
        )
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is compared with what may be none")]
    fn called(namespace: &str, name: &str, uid: &str) -> Option<[String; 3]> {
        Some([namespace, name, uid].map(str::to_owned))
    }

    #[test]
    fn the_labels_of_a_pod_sandbox_are_its_names() {
        let labels = [(TYPE, SANDBOX), (POD_NAME, "web-0"), (POD_NAMESPACE, "shop"), (POD_UID, "u-1")];
        let told = called("shop", "web-0", "u-1");
        assert_eq!(names(container("k8s_POD_web-0_shop_u-1_0", "none", &labels)), told);
        assert_eq!(names(container("anything", "none", &labels)), told);
        assert_eq!(names(container("k8s_POD_web-0_shop_u-1_0", "none", &[])), told);
    }

    #[test]
    fn labels_alone_do_not_make_a_container_a_pod() {
        let labels = [(POD_NAME, "web-0"), (POD_NAMESPACE, "shop")];
        assert_eq!(names(container("proxy", "bridge", &labels)), called("-", "proxy", "-"));
    }

    #[test]
    fn a_container_without_a_namespace_of_its_own_is_none() {
        assert_eq!(names(container("agent", "host", &[])), None);
        assert_eq!(names(container("sidecar", "container:0123", &[])), None);
        assert_eq!(names(container("k8s_nginx_web-0_shop_u-1_0", "none", &[])), None);
    }

    #[test]
    fn a_container_that_does_not_run_is_none() {
        let mut ended = container("web", "bridge", &[]);
        ended.state =
            Some(ContainerState { running: Some(false), pid: Some(0), ..ContainerState::default() });
        assert_eq!(names(ended), None);
    }

    #[test]
    fn control_characters_in_labels_reach_nobody() {
        let labels = [(TYPE, SANDBOX), (POD_NAME, "a\u{1b}[31mb"), (POD_NAMESPACE, "shop"), (POD_UID, "")];
        assert_eq!(names(container("x", "none", &labels)), called("shop", "a?[31mb", "-"));
    }
}

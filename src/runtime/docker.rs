//! Docker, and podman behind the same API.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use super::answer::Sandbox;
use super::call::{AT_ONCE, Listing, Patience, RuntimeFailure, before, cause};
use super::docker_api::{self as api, ContainerState, InspectedContainer, Listed, ListedContainer};
use super::names::{KubeName, non_empty, plain};
use crate::model::fate::Container;

const DOCKER: &str = "docker";
const PODMAN: &str = "podman";
/// podman's name in its `Server` header.
const LIBPOD: &str = "libpod";

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

/// A runtime that has answered with its name.
#[derive(Debug)]
pub(super) struct DockerClient {
    socket: String,
    kind: &'static str,
    version: String,
}

impl DockerClient {
    /// Connects and queries the engine's name.
    pub async fn greet(socket: &str, until: Instant) -> Result<Self, RuntimeFailure> {
        let step = "GET /_ping";
        let product = before(until, step, api::product(socket))
            .await?
            .map_err(|error| RuntimeFailure::of(step, cause(error.as_ref())))?;
        let kind = if product.name.eq_ignore_ascii_case(LIBPOD) {
            PODMAN
        } else {
            DOCKER
        };
        Ok(Self {
            socket: socket.to_owned(),
            kind,
            version: plain(&format!("{kind} {}", product.version)),
        })
    }

    /// Lists every running container that owns a network namespace, and its pod's containers where `ran` is set: of those
    /// in it that ended, how they did.
    pub async fn list_sandboxes(
        self,
        ran: Option<&BTreeSet<String>>,
    ) -> Result<Listing, RuntimeFailure> {
        let patience = &Patience::new();
        let listed = if ran.is_some() && self.kind == DOCKER {
            Listed::Restarting
        } else {
            Listed::Running
        };
        let running = self.list(patience, listed).await?;
        let has_pods = running.iter().any(ListedContainer::is_of_pod);
        let others = running
            .into_iter()
            .filter(|container| !container.has_type(APPLICATION))
            .map(|container| container.id.unwrap_or_default());
        let sandboxes: Vec<Option<Sandbox>> = stream::iter(others)
            .map(|id| self.container(patience, id))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut sandboxes: Vec<Sandbox> = sandboxes.into_iter().flatten().collect();
        let is_wanted = |own: &Container| !own.ended || listed == Listed::Restarting;
        sandboxes.retain(|sandbox| sandbox.containers.iter().all(is_wanted));
        if let Some(ran) = ran.filter(|_| has_pods) {
            for (of, container) in self.of_pods(patience, ran).await? {
                if let Some(sandbox) = sandboxes.iter_mut().find(|sandbox| sandbox.id == of) {
                    sandbox.containers.push(container);
                }
            }
        }
        for sandbox in &mut sandboxes {
            sandbox.containers.sort();
        }
        Ok(Listing {
            kind: self.kind,
            version: self.version,
            sandboxes,
        })
    }

    async fn list(
        &self,
        patience: &Patience,
        listed: Listed,
    ) -> Result<Vec<ListedContainer>, RuntimeFailure> {
        let step = "GET /containers/json";
        let all = patience.wait(step, api::list(&self.socket, listed)).await?;
        all.map_err(|error| RuntimeFailure::of(step, cause(error.as_ref())))
    }

    /// The containers of pods, each with the id of its sandbox.
    async fn of_pods(
        &self,
        patience: &Patience,
        ran: &BTreeSet<String>,
    ) -> Result<Vec<(String, Container)>, RuntimeFailure> {
        let mut all = self.list(patience, Listed::OfPods).await?;
        all.retain(|container| container.has_type(APPLICATION));
        let mut all: Vec<_> = all.into_iter().filter_map(of_sandbox).collect();
        for (_, container) in &mut all {
            if !container.ended || !ran.contains(&container.id) {
                continue;
            }
            let inspected = self.inspect(patience, &container.id).await?;
            if let Some(state) = inspected.and_then(|inspected| inspected.state) {
                container.exit = state.exit_code.and_then(|code| i32::try_from(code).ok());
                container.finished = state.finished();
            }
        }
        Ok(all)
    }

    /// One container; `None` if it ended after the list or owns no network namespace.
    async fn container(
        &self,
        patience: &Patience,
        id: String,
    ) -> Result<Option<Sandbox>, RuntimeFailure> {
        let container = self.inspect(patience, &id).await?;
        Ok(container.and_then(|container| described(id, container, self.kind)))
    }

    async fn inspect(
        &self,
        patience: &Patience,
        id: &str,
    ) -> Result<Option<InspectedContainer>, RuntimeFailure> {
        let step = format!("GET /containers/{}/json", plain(id));
        if id.is_empty() {
            return Err(RuntimeFailure::of(&step, "it was listed without an id"));
        }
        let container = patience.wait(&step, api::inspect(&self.socket, id)).await?;
        container.map_err(|error| RuntimeFailure::of(&step, cause(error.as_ref())))
    }
}

impl ContainerState {
    /// When the container ended last, in milliseconds since 1970; `None` if it never did.
    fn finished(&self) -> Option<i64> {
        let finished: Timestamp = self.finished_at.as_ref()?.parse().ok()?;
        Some(finished.as_millisecond()).filter(|ended| *ended > 0)
    }
}

impl ListedContainer {
    /// Whether dockershim or cri-dockerd made it.
    fn is_of_pod(&self) -> bool {
        self.has_type(SANDBOX) || self.has_type(APPLICATION)
    }

    /// Whether it has this type by dockershim's label.
    fn has_type(&self, wanted: &str) -> bool {
        let labels = self.labels.as_ref();
        labels.and_then(|labels| labels.get(TYPE).map(String::as_str)) == Some(wanted)
    }
}

/// A container of a pod, and the id of its sandbox.
pub(super) fn of_sandbox(container: ListedContainer) -> Option<(String, Container)> {
    let labels = container.labels.unwrap_or_default();
    let restarts = labels.get(RESTARTS).and_then(|count| count.parse().ok());
    let name = labels
        .get(CONTAINER_NAME)
        .map(|name| plain(name))
        .unwrap_or_default();
    Some((
        labels.get(SANDBOX_ID)?.clone(),
        Container {
            name,
            id: container.id?,
            restarts,
            ended: container
                .state
                .is_some_and(|state| state == "exited" || state == "created"),
            exit: None,
            finished: None,
            created: container
                .created
                .and_then(|seconds| seconds.checked_mul(1000)),
        },
    ))
}

pub(super) fn described(
    id: String,
    container: InspectedContainer,
    kind: &'static str,
) -> Option<Sandbox> {
    let state = container.state.unwrap_or_default();
    let is = |flag: Option<bool>| flag == Some(true);
    let mode = container.host_config.and_then(|host| host.network_mode);
    let mode = mode.unwrap_or_default();
    let is_restarting = is(state.restarting);
    let is_there = is(state.running) || is(state.paused) || is_restarting;
    if !is_there || mode == "host" || mode.starts_with("container:") {
        return None;
    }
    let labels = container.config.and_then(|config| config.labels);
    let labels = labels.unwrap_or_default();
    let name = container.name.unwrap_or_default();
    let name = name.trim_start_matches('/').to_owned();
    let kube = KubeName::parse(&name);
    if kube.as_ref().is_some_and(|kube| !kube.is_sandbox) {
        return None;
    }
    let (settings, restarts) = (container.network_settings, container.restart_count);
    let netns = settings.and_then(|settings| settings.sandbox_key);
    let itself = kube.is_none().then(|| Container {
        name: non_empty(&name).unwrap_or_default(),
        id: id.clone(),
        restarts: restarts.and_then(|count| u32::try_from(count).ok()),
        ended: is_restarting,
        exit: None,
        finished: state.finished(),
        created: None,
    });
    // The names in the labels count if they say that it is a pod's sandbox, then what dockershim put into its name.
    let is_sandbox = labels.get(TYPE).is_some_and(|kind| kind == SANDBOX);
    let named = |key: &str, in_name: Option<&String>| {
        let label = labels.get(key).filter(|_| is_sandbox);
        let label = label.and_then(|label| non_empty(label));
        label.or_else(|| non_empty(in_name?))
    };
    let kube = kube.as_ref();
    Some(Sandbox {
        namespace: named(POD_NAMESPACE, kube.map(|kube| &kube.namespace)),
        name: named(POD_NAME, Some(kube.map_or(&name, |kube| &kube.name))),
        uid: named(POD_UID, kube.map(|kube| &kube.uid)),
        attempt: kube.map(|kube| kube.attempt),
        netns: netns.filter(|path| path.is_absolute() && !is_restarting),
        pid: state
            .pid
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid != 0 && !is_restarting),
        // A pod's sandbox has this mode as well: its network is CNI's.
        has_network: is_sandbox || mode != "none" || kube.is_some(),
        source: kind,
        containers: itself.into_iter().collect(),
        id,
    })
}

#[cfg(test)]
mod tests {
    use super::super::docker_api::{ContainerConfig, ContainerState, HostConfig};

    use super::*;

    fn container(name: &str, mode: &str, labels: &[(&str, &str)]) -> InspectedContainer {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        InspectedContainer {
            name: Some(format!("/{name}")),
            state: Some(ContainerState {
                running: Some(true),
                pid: Some(4711),
                ..ContainerState::default()
            }),
            host_config: Some(HostConfig {
                network_mode: Some(mode.to_owned()),
            }),
            config: Some(ContainerConfig {
                labels: Some(labels.iter().map(own).collect()),
            }),
            ..InspectedContainer::default()
        }
    }

    fn names(container: InspectedContainer) -> Option<[String; 3]> {
        let sandbox = described("0123".to_owned(), container, DOCKER)?;
        Some(
            [sandbox.namespace, sandbox.name, sandbox.uid]
                .map(|name| name.unwrap_or_else(|| "-".to_owned())),
        )
    }

    #[allow(clippy::unnecessary_wraps, reason = "compared with an Option")]
    fn called(namespace: &str, name: &str, uid: &str) -> Option<[String; 3]> {
        Some([namespace, name, uid].map(str::to_owned))
    }

    #[test]
    fn the_labels_of_a_pod_sandbox_are_its_names() {
        let labels = [
            (TYPE, SANDBOX),
            (POD_NAME, "web-0"),
            (POD_NAMESPACE, "shop"),
            (POD_UID, "u-1"),
        ];
        let expected = called("shop", "web-0", "u-1");
        assert_eq!(
            names(container("k8s_POD_web-0_shop_u-1_0", "none", &labels)),
            expected
        );
        assert_eq!(names(container("anything", "none", &labels)), expected);
        assert_eq!(
            names(container("k8s_POD_web-0_shop_u-1_0", "none", &[])),
            expected
        );
    }

    #[test]
    fn only_a_container_that_is_no_pod_is_without_a_network() {
        let has_network = |name: &str, mode: &str, labels: &[(&str, &str)]| {
            let sandbox = described("0123".to_owned(), container(name, mode, labels), DOCKER);
            sandbox.map(|sandbox| sandbox.has_network)
        };
        assert_eq!(has_network("job", "none", &[]), Some(false));
        assert_eq!(has_network("web", "macvlan7", &[]), Some(true));
        assert_eq!(
            has_network("k8s_POD_web-0_shop_u-1_0", "none", &[]),
            Some(true)
        );
        assert_eq!(has_network("any", "none", &[(TYPE, SANDBOX)]), Some(true));
    }

    #[test]
    fn labels_alone_do_not_make_a_container_a_pod() {
        let labels = [(POD_NAME, "web-0"), (POD_NAMESPACE, "shop")];
        assert_eq!(
            names(container("proxy", "bridge", &labels)),
            called("-", "proxy", "-")
        );
    }

    #[test]
    fn a_container_without_a_namespace_of_its_own_is_none() {
        assert_eq!(names(container("agent", "host", &[])), None);
        assert_eq!(names(container("sidecar", "container:0123", &[])), None);
        assert_eq!(
            names(container("k8s_nginx_web-0_shop_u-1_0", "none", &[])),
            None
        );
    }

    #[test]
    fn a_container_that_waits_for_its_restart_is_there_and_has_ended() {
        let mut waiting = container("web", "bridge", &[]);
        waiting.state = Some(ContainerState {
            running: Some(true),
            restarting: Some(true),
            finished_at: Some("2026-11-21T12:00:01.5Z".to_owned()),
            ..ContainerState::default()
        });
        let sandbox = described("0123".to_owned(), waiting, DOCKER).expect("it is there");
        assert_eq!((sandbox.pid, &sandbox.netns), (None, &None));
        let own = &sandbox.containers[0];
        assert_eq!((own.ended, own.finished), (true, Some(1_795_262_401_500)));
        let never = ContainerState {
            finished_at: Some("0001-01-01T00:00:00Z".to_owned()),
            ..ContainerState::default()
        };
        assert_eq!(never.finished(), None);
    }

    #[test]
    fn a_container_of_a_pod_that_has_ended_is_listed_as_such() {
        let listed = |state: &str| {
            let labels = serde_json::json!({SANDBOX_ID: "4567", RESTARTS: "3"});
            let listed = serde_json::json!({"Id": "0123", "State": state, "Labels": labels});
            of_sandbox(serde_json::from_value(listed).unwrap())
                .map(|(of, container)| (of, container.restarts, container.ended))
        };
        assert_eq!(listed("running"), Some(("4567".to_owned(), Some(3), false)));
        assert_eq!(listed("exited"), Some(("4567".to_owned(), Some(3), true)));
    }

    #[test]
    fn a_container_that_does_not_run_is_none() {
        let mut ended = container("web", "bridge", &[]);
        ended.state = Some(ContainerState {
            running: Some(false),
            pid: Some(0),
            ..ContainerState::default()
        });
        assert_eq!(names(ended), None);
    }
}

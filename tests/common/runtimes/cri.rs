//! A CRI runtime on a Unix socket: `runtime.v1`, or the same messages as `runtime.v1alpha2`.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_cri::v1 as api;
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http, tokio_stream::Stream};
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::{ContainerOfPod, Sandbox};

/// A CRI call that kubelet makes, and netfix too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Version,
    List,
    Status,
    Containers,
}

/// Runs before each list answer, with the number of earlier list calls.
pub type Hook = Box<dyn FnMut(usize, &mut Vec<Sandbox>) + Send>;

/// How the runtime behaves.
#[derive(Default)]
pub struct Script {
    /// The versions of CRI that it supports; v1 only by default.
    pub services: Option<Vec<&'static str>>,
    pub sandboxes: Vec<Sandbox>,
    /// Never answers this call.
    pub hangs_at: Option<Step>,
    /// Answers this call with an error.
    pub fails_at: Option<(Step, &'static str)>,
    /// Answers for one sandbox after the other, with this pause before each.
    pub slow: Option<Duration>,
    /// Ends when the status of one more sandbox is queried.
    pub dies_after: Option<usize>,
    pub hook: Option<Hook>,
}

/// A fake runtime that answers until it is dropped.
pub struct FakeCri {
    pub socket: PathBuf,
    state: Arc<State>,
    thread: Option<thread::JoinHandle<()>>,
}

struct State {
    script: Mutex<Script>,
    lists: AtomicUsize,
    statuses: AtomicUsize,
    death: Notify,
}

impl FakeCri {
    pub fn start(socket: &Path, script: Script) -> Self {
        let state = Arc::new(State {
            script: Mutex::new(script),
            lists: AtomicUsize::new(0),
            statuses: AtomicUsize::new(0),
            death: Notify::new(),
        });
        let listener = std::os::unix::net::UnixListener::bind(socket);
        let listener = listener.unwrap_or_else(|e| panic!("cannot bind {}: {e}", socket.display()));
        listener
            .set_nonblocking(true)
            .expect("a listener that does not block");
        let served = Arc::clone(&state);
        let live = move || {
            let tokio = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            tokio
                .expect("a tokio runtime")
                .block_on(serve(listener, served));
        };
        Self {
            socket: socket.to_owned(),
            state,
            thread: Some(thread::spawn(live)),
        }
    }

    /// Changes how it behaves from now on.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        let script = self.state.script.lock();
        change(&mut script.expect("no test fails while it holds the script"));
    }

    /// The number of list calls so far.
    pub fn lists(&self) -> usize {
        self.state.lists.load(Ordering::SeqCst)
    }
}

impl Drop for FakeCri {
    fn drop(&mut self) {
        self.state.death.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Serves until it must end; then every connection ends with the tokio runtime, and the socket file stays.
async fn serve(listener: std::os::unix::net::UnixListener, state: Arc<State>) {
    let listener = UnixListener::from_std(listener).expect("a listener for tokio");
    let server =
        Server::builder().serve_with_incoming(Runtime(Arc::clone(&state)), Incoming(listener));
    tokio::select! {
        () = state.death.notified() => {}
        ended = server => ended.expect("the server runs until it must end"),
    }
}

struct Incoming(UnixListener);

impl Stream for Incoming {
    type Item = io::Result<UnixStream>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        self.0
            .poll_accept(context)
            .map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

#[derive(Clone)]
struct Runtime(Arc<State>);

impl Service<http::Request<Body>> for Runtime {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let mut words = path.trim_start_matches('/').split('/');
            let spoken = {
                let script = state
                    .script
                    .lock()
                    .expect("no test fails while it holds the script");
                let services = script.services.clone().unwrap_or_else(|| vec!["v1"]);
                let service = words.next().unwrap_or_default();
                services
                    .iter()
                    .any(|version| service == format!("runtime.{version}.RuntimeService"))
            };
            Ok(match words.next() {
                Some("Version") if spoken => {
                    unary(request, move |q| version(state.clone(), q)).await
                }
                Some("ListPodSandbox") if spoken => {
                    unary(request, move |q| list(state.clone(), q)).await
                }
                Some("PodSandboxStatus") if spoken => {
                    unary(request, move |q| status(state.clone(), q)).await
                }
                Some("ListContainers") if spoken => {
                    unary(request, move |q| containers(state.clone(), q)).await
                }
                Some("ContainerStatus") if spoken => {
                    unary(request, move |q| container_status(state.clone(), q)).await
                }
                _ => Status::unimplemented(format!("unknown service or method {path}")).into_http(),
            })
        })
    }
}

struct Method<F>(F);

impl<Q, A, F, R> UnaryService<Q> for Method<F>
where
    F: FnMut(Q) -> R,
    R: Future<Output = Result<A, Status>> + Send + 'static,
    A: 'static,
{
    type Response = A;
    type Future = BoxFuture<Response<A>, Status>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let answer = (self.0)(request.into_inner());
        Box::pin(async move { answer.await.map(Response::new) })
    }
}

async fn unary<Q, A, R>(
    request: http::Request<Body>,
    method: impl FnMut(Q) -> R,
) -> http::Response<Body>
where
    ProstCodec<A, Q>: tonic::codec::Codec<Encode = A, Decode = Q>,
    Q: Send + 'static,
    A: Send + 'static,
    R: Future<Output = Result<A, Status>> + Send + 'static,
{
    Grpc::new(ProstCodec::<A, Q>::default())
        .unary(Method(method), request)
        .await
}

impl State {
    /// Hangs or fails where the script has it so.
    async fn reach(&self, step: Step) -> Result<(), Status> {
        let (hangs_at, fails_at) = {
            let script = self
                .script
                .lock()
                .expect("no test fails while it holds the script");
            (script.hangs_at, script.fails_at)
        };
        if hangs_at == Some(step) {
            std::future::pending::<()>().await;
        }
        match fails_at {
            Some((at, why)) if at == step => Err(Status::internal(why)),
            _ => Ok(()),
        }
    }
}

async fn version(
    state: Arc<State>,
    _: api::VersionRequest,
) -> Result<api::VersionResponse, Status> {
    state.reach(Step::Version).await?;
    Ok(api::VersionResponse {
        version: "0.1.0".to_owned(),
        runtime_name: "fake".to_owned(),
        runtime_version: "1.2.3".to_owned(),
        runtime_api_version: "v1".to_owned(),
    })
}

async fn list(
    state: Arc<State>,
    request: api::ListPodSandboxRequest,
) -> Result<api::ListPodSandboxResponse, Status> {
    let before = state.lists.fetch_add(1, Ordering::SeqCst);
    state.reach(Step::List).await?;
    let ready = api::PodSandboxState::SandboxReady as i32;
    let requested = request
        .filter
        .and_then(|filter| filter.state)
        .map(|state| state.state);
    assert_eq!(requested, Some(ready), "only running pods are requested");
    let mut script = state
        .script
        .lock()
        .expect("no test fails while it holds the script");
    let mut sandboxes = script.sandboxes.clone();
    if let Some(hook) = &mut script.hook {
        hook(before, &mut sandboxes);
        script.sandboxes.clone_from(&sandboxes);
    }
    let item = |sandbox: &Sandbox| api::PodSandbox {
        id: sandbox.id.clone(),
        metadata: Some(metadata(sandbox)),
        state: ready,
        ..api::PodSandbox::default()
    };
    Ok(api::ListPodSandboxResponse {
        items: sandboxes.iter().map(item).collect(),
    })
}

async fn status(
    state: Arc<State>,
    request: api::PodSandboxStatusRequest,
) -> Result<api::PodSandboxStatusResponse, Status> {
    let before = state.statuses.fetch_add(1, Ordering::SeqCst);
    state.reach(Step::Status).await?;
    let slow = state.script.lock().expect("the script").slow;
    if let Some(pause) = slow {
        let turn = u32::try_from(before + 1).expect("few pods");
        tokio::time::sleep(pause * turn).await;
    }
    let sandbox = {
        let script = state
            .script
            .lock()
            .expect("no test fails while it holds the script");
        if script.dies_after.is_some_and(|count| before >= count) {
            state.death.notify_one();
            None
        } else {
            Some(
                script
                    .sandboxes
                    .iter()
                    .find(|sandbox| sandbox.id == request.pod_sandbox_id)
                    .cloned(),
            )
        }
    };
    let Some(sandbox) = sandbox else {
        return std::future::pending().await;
    };
    let sandbox = sandbox.filter(|sandbox| !sandbox.is_gone);
    let sandbox =
        sandbox.ok_or_else(|| Status::not_found(format!("no {}", request.pod_sandbox_id)))?;
    let network = if sandbox.host_network {
        api::NamespaceMode::Node
    } else {
        api::NamespaceMode::Pod
    };
    let options = api::NamespaceOption {
        network: network as i32,
        ..api::NamespaceOption::default()
    };
    let status = api::PodSandboxStatus {
        id: sandbox.id.clone(),
        metadata: Some(metadata(&sandbox)),
        state: api::PodSandboxState::SandboxReady as i32,
        linux: Some(api::LinuxPodSandboxStatus {
            namespaces: Some(api::Namespace {
                options: Some(options),
            }),
        }),
        ..api::PodSandboxStatus::default()
    };
    let info = if request.verbose {
        info(&sandbox)
    } else {
        None
    };
    Ok(api::PodSandboxStatusResponse {
        status: Some(status),
        info: info
            .into_iter()
            .map(|info| ("info".to_owned(), info))
            .collect(),
        ..api::PodSandboxStatusResponse::default()
    })
}

fn all_containers(state: &State) -> Vec<(String, ContainerOfPod)> {
    let script = state.script.lock();
    let script = script.expect("no test fails while it holds the script");
    let of = |sandbox: &Sandbox| {
        let containers = sandbox.containers.iter().cloned();
        containers
            .map(|container| (sandbox.id.clone(), container))
            .collect::<Vec<_>>()
    };
    script.sandboxes.iter().flat_map(of).collect()
}

async fn containers(
    state: Arc<State>,
    _: api::ListContainersRequest,
) -> Result<api::ListContainersResponse, Status> {
    state.reach(Step::Containers).await?;
    let item = |(sandbox, container): (String, ContainerOfPod)| api::Container {
        id: container.id.clone(),
        pod_sandbox_id: sandbox,
        state: container.state(),
        created_at: nanoseconds(container.created),
        metadata: Some(api::ContainerMetadata {
            name: container.name,
            attempt: container.attempt,
        }),
        ..api::Container::default()
    };
    Ok(api::ListContainersResponse {
        containers: all_containers(&state).into_iter().map(item).collect(),
    })
}

/// Since 1970.
fn nanoseconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_nanos()).expect("before 2262")
}

async fn container_status(
    state: Arc<State>,
    request: api::ContainerStatusRequest,
) -> Result<api::ContainerStatusResponse, Status> {
    state.reach(Step::Containers).await?;
    let all = all_containers(&state);
    let mut found = all
        .into_iter()
        .filter(|(_, one)| one.id == request.container_id);
    let (_, container) = found
        .next()
        .ok_or_else(|| Status::not_found(format!("no {}", request.container_id)))?;
    let finished = container.ended.map(|(at, _)| nanoseconds(at));
    let status = api::ContainerStatus {
        id: container.id.clone(),
        state: container.state(),
        finished_at: finished.unwrap_or_default(),
        exit_code: container.ended.map_or(0, |(_, code)| code),
        ..api::ContainerStatus::default()
    };
    Ok(api::ContainerStatusResponse {
        status: Some(status),
        ..api::ContainerStatusResponse::default()
    })
}

impl ContainerOfPod {
    fn state(&self) -> i32 {
        let state = if self.ended.is_some() {
            api::ContainerState::ContainerExited
        } else {
            api::ContainerState::ContainerRunning
        };
        state as i32
    }
}

fn metadata(sandbox: &Sandbox) -> api::PodSandboxMetadata {
    api::PodSandboxMetadata {
        name: sandbox.name.clone(),
        uid: sandbox.uid.clone(),
        namespace: sandbox.namespace.clone(),
        attempt: sandbox.attempt,
    }
}

/// As containerd reports it; empty, as from cri-dockerd, if the sandbox has none of it.
fn info(sandbox: &Sandbox) -> Option<String> {
    if sandbox.netns.is_none() && sandbox.pid.is_none() {
        return None;
    }
    let mut network = json!({"type": "network"});
    if let Some(path) = &sandbox.netns {
        network["path"] = json!(path);
    }
    let spec = json!({"ociVersion": "1.0.2", "linux": {"namespaces": [{"type": "pid"}, network]}});
    Some(json!({"pid": sandbox.pid.unwrap_or_default(), "runtimeSpec": spec}).to_string())
}

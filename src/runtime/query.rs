//! Queries all existing runtimes in parallel, within one time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect};

use super::answer::{Configured, Queried, RuntimeAnswer, RuntimeConfig, Sandbox, Which};
use super::call::{Listing, RuntimeFailure, cause};
use super::cri::CriClient;
use super::docker::DockerClient;
use super::endpoints::{self, Endpoint};
use super::names::plain;
use crate::model::Problem;
use crate::model::problem::InventoryCause;

/// How long a query that fails is repeated.
const LIMIT: Duration = Duration::from_secs(4);
/// The time limit for a runtime to identify itself; after it netfix reconnects.
const GREETING: Duration = Duration::from_secs(2);
/// The pause before a failed query is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// Queries every runtime that is there, the configured one first. The errors are all that are there and could not be
/// queried (`runtime-unreachable`).
pub(crate) fn query(
    config: &RuntimeConfig,
    configured: Option<&Configured>,
) -> Result<RuntimeAnswer, Vec<Problem>> {
    let until = Instant::now() + LIMIT;
    let endpoints = endpoints::to_query(config, configured).map_err(|problem| vec![problem])?;
    if endpoints.is_empty() {
        return Ok(RuntimeAnswer::default());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            let error = error.to_string();
            vec![InventoryCause::ClientFailed { error }.error("")]
        })?;
    let is_only = endpoints.len() == 1;
    let listing = runtime.block_on(join_all(endpoints.iter().map(|endpoint| {
        let is_needed = is_only || !endpoint.is_optional();
        persist(endpoint, is_needed, config.containers.as_ref(), until)
    })));
    let mut answer = RuntimeAnswer::default();
    let mut failed = Vec::new();
    for (endpoint, listing) in endpoints.into_iter().zip(listing) {
        match listing {
            Ok(listing) => answer.take(endpoint, listing),
            // Docker's packages install a containerd without CRI.
            Err(RuntimeFailure::NotOffered) if !endpoint.named && config.which == Which::Auto => {
                answer.queried.push(Queried {
                    endpoint: endpoint.path,
                    kind: None,
                    version: None,
                    sandboxes: 0,
                });
            }
            Err(failure) => failed.push((endpoint, failure)),
        }
    }
    let other = answer.answering();
    let are_left_over = failed.iter().all(|(endpoint, failure)| {
        other.is_some() && endpoint.is_optional() && is_not_listening(&endpoint.path, failure)
    });
    if !are_left_over {
        return Err(failed
            .iter()
            .map(|(endpoint, failure)| unreachable(endpoint, failure, other))
            .collect());
    }
    answer.refused = failed
        .into_iter()
        .map(|(endpoint, failure)| (endpoint.path, plain(&words(&failure))))
        .collect();
    Ok(answer)
}

/// Queries one runtime, and repeats a failed query until the limit. An attempt that the limit cuts short has less
/// information than the one before. A socket that is not needed and on which no process listens is tried once.
async fn persist(
    endpoint: &Endpoint,
    is_needed: bool,
    containers: Option<&BTreeSet<String>>,
    until: Instant,
) -> Result<Listing, RuntimeFailure> {
    let mut before = None;
    loop {
        let settled = attempt(endpoint, containers, until).await;
        let may_pass = match &settled {
            Err(failure @ (RuntimeFailure::NotThere(_) | RuntimeFailure::Failed(_))) => {
                is_needed || !is_not_listening(&endpoint.path, failure)
            }
            _ => false,
        };
        if may_pass && Instant::now() >= until {
            return before.unwrap_or(settled);
        }
        if !may_pass || Instant::now() + PAUSE >= until {
            return settled;
        }
        before = Some(settled);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn attempt(
    endpoint: &Endpoint,
    containers: Option<&BTreeSet<String>>,
    until: Instant,
) -> Result<Listing, RuntimeFailure> {
    let path = endpoint.path.to_str();
    let socket =
        path.ok_or_else(|| RuntimeFailure::NotThere("the path is not UTF-8".to_owned()))?;
    fs::metadata(socket).map_err(|error| RuntimeFailure::NotThere(cause(&error)))?;
    if is_refused(&endpoint.path) {
        return Err(RuntimeFailure::NotThere(Errno::ECONNREFUSED.to_string()));
    }
    let greeting = || until.min(Instant::now() + GREETING);
    if endpoint.protocol == Which::Docker {
        return DockerClient::greet(socket, greeting())
            .await?
            .list_sandboxes(containers)
            .await;
    }
    match CriClient::greet(socket, greeting()).await {
        Ok(client) => client.list_sandboxes(containers).await,
        Err(as_cri @ (RuntimeFailure::NotOffered | RuntimeFailure::Failed(_)))
            if endpoint.protocol == Which::Auto =>
        {
            match DockerClient::greet(socket, greeting()).await {
                Ok(client) => client.list_sandboxes(containers).await,
                Err(as_docker) => Err(neither(&as_cri, as_docker)),
            }
        }
        Err(failure) => Err(failure),
    }
}

/// A server with neither protocol.
fn neither(as_cri: &RuntimeFailure, as_docker: RuntimeFailure) -> RuntimeFailure {
    let (cri, docker) = (words(as_cri), words(&as_docker));
    if cri == docker {
        return as_docker;
    }
    RuntimeFailure::Failed(format!(
        "it offers neither CRI ({cri}) nor Docker's API ({docker})"
    ))
}

fn words(failure: &RuntimeFailure) -> String {
    match failure {
        RuntimeFailure::NotThere(why) => format!("connecting: {why}"),
        RuntimeFailure::NotOffered => "it answers and offers no CRI (Unimplemented)".to_owned(),
        RuntimeFailure::Failed(why) => why.clone(),
    }
}

/// The problem of a runtime that failed; `other` is the socket of one that answered. A socket on which no process listens
/// may be left over: then the other runtime alone knows all pods.
fn unreachable(endpoint: &Endpoint, failure: &RuntimeFailure, other: Option<&Path>) -> Problem {
    let error = plain(&words(failure));
    match other {
        Some(other) if !endpoint.configured && is_refused(&endpoint.path) => {
            refusal(&endpoint.path, error, other, &[])
        }
        _ => InventoryCause::RuntimeFailed { error }.error(endpoint.path.display()),
    }
}

/// The problem of a socket on which no process listens, where `namespaces` are not reported by the runtimes that answered.
pub(crate) fn refusal(
    socket: &Path,
    error: String,
    other: &Path,
    namespaces: &[PathBuf],
) -> Problem {
    let text = |path: &Path| plain(&path.display().to_string());
    let cause = InventoryCause::RuntimeRefused {
        error,
        other: text(other),
        namespaces: namespaces.iter().map(|path| text(path)).collect(),
    };
    cause.error(socket.display())
}

/// Whether a query failed because no process listens on the socket.
fn is_not_listening(socket: &Path, failure: &RuntimeFailure) -> bool {
    matches!(failure, RuntimeFailure::NotThere(_)) && is_refused(socket)
}

/// Whether no process listens on the socket.
fn is_refused(socket: &Path) -> bool {
    let stream = nix::sys::socket::socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    );
    let (Ok(stream), Ok(address)) = (stream, UnixAddr::new(socket)) else {
        return false;
    };
    connect(stream.as_raw_fd(), &address) == Err(Errno::ECONNREFUSED)
}

impl RuntimeAnswer {
    /// Adds the answer of one runtime. Docker and cri-dockerd may both report one sandbox: then each adds what the
    /// other lacks.
    fn take(&mut self, endpoint: Endpoint, listing: Listing) {
        let Listing {
            kind,
            version,
            sandboxes,
        } = listing;
        let (count, version) = (sandboxes.len(), Some(version));
        self.queried.push(Queried {
            endpoint: endpoint.path,
            kind: Some(kind),
            version,
            sandboxes: count,
        });
        let mut known: BTreeMap<String, Sandbox> = std::mem::take(&mut self.sandboxes)
            .into_iter()
            .map(|sandbox| (sandbox.id.clone(), sandbox))
            .collect();
        for sandbox in sandboxes {
            let merged = match known.remove(&sandbox.id) {
                Some(first) => first.or(sandbox),
                None => sandbox,
            };
            known.insert(merged.id.clone(), merged);
        }
        self.sandboxes = known.into_values().collect();
    }
}

impl Sandbox {
    /// The values of one runtime, completed by those of the other.
    fn or(self, other: Self) -> Self {
        Self {
            id: self.id,
            namespace: self.namespace.or(other.namespace),
            name: self.name.or(other.name),
            uid: self.uid.or(other.uid),
            attempt: self.attempt.or(other.attempt),
            netns: self.netns.or(other.netns),
            pid: self.pid.or(other.pid),
            has_network: self.has_network || other.has_network,
            source: self.source,
            containers: if self.containers.is_empty() {
                other.containers
            } else {
                self.containers
            },
        }
    }
}

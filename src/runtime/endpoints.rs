//! The sockets of container runtimes, and their protocols.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::answer::{Configured, RuntimeConfig, Which};
use crate::model::Problem;
use crate::model::problem::InventoryCause;

/// A socket to query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub path: PathBuf,
    pub protocol: Which,
    /// Whether the user named it: then it must answer.
    pub named: bool,
    /// Whether kubelet is configured for it.
    pub configured: bool,
}

impl Endpoint {
    fn new(path: PathBuf, protocol: Which) -> Self {
        Self {
            path,
            protocol,
            named: false,
            configured: false,
        }
    }

    /// Whether it may be left over from a runtime that is not in use.
    pub fn is_optional(&self) -> bool {
        !self.named && !self.configured
    }
}

/// containerd, CRI-O and cri-dockerd; k3s and rke2, k0s and microk8s have their own containerd.
const CRI: [&str; 6] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
];
const DOCKER: [&str; 2] = ["/run/docker.sock", "/run/podman/podman.sock"];

/// The sockets to query, each once, the configured one first. Fails when the user names a kind of runtime of which no socket exists.
pub(super) fn to_query(
    config: &RuntimeConfig,
    configured: Option<&Configured>,
) -> Result<Vec<Endpoint>, Problem> {
    let wanted = config.which;
    if wanted == Which::None {
        return Ok(Vec::new());
    }
    if let Some(path) = &config.endpoint {
        let endpoint = Endpoint::new(path.clone(), wanted);
        return Ok(vec![Endpoint {
            named: true,
            ..endpoint
        }]);
    }
    let mut endpoints = usual(wanted);
    if let Some(configured) = configured {
        put_first(configured, wanted, &mut endpoints);
    }
    if endpoints.is_empty() && wanted != Which::Auto {
        let (word, sockets) = if wanted == Which::Cri {
            ("cri", &CRI[..])
        } else {
            ("docker", &DOCKER[..])
        };
        let sockets = sockets.iter().copied().map(str::to_owned).collect();
        return Err(InventoryCause::NoRuntimeSocket { sockets }.error(word));
    }
    Ok(endpoints)
}

/// Marks the socket that kubelet is configured for, or adds it: it need not be a usual one.
fn put_first(configured: &Configured, wanted: Which, endpoints: &mut Vec<Endpoint>) {
    let file = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let own = file(&configured.path);
    let known = endpoints.iter().position(|endpoint| {
        endpoint.path == configured.path || (own.is_some() && file(&endpoint.path) == own)
    });
    let mut endpoint = match known {
        Some(at) => endpoints.remove(at),
        None if wanted == Which::Docker || !(own.is_some() || configured.is_certain) => return,
        None => Endpoint::new(configured.path.clone(), Which::Cri),
    };
    endpoint.configured = true;
    endpoints.insert(0, endpoint);
}

/// The usual sockets that exist.
fn usual(wanted: Which) -> Vec<Endpoint> {
    let of =
        |protocol: Which, paths: &'static [&str]| paths.iter().map(move |path| (protocol, *path));
    let mut known = BTreeSet::new();
    let mut endpoints = Vec::new();
    for (protocol, path) in of(Which::Cri, &CRI).chain(of(Which::Docker, &DOCKER)) {
        if wanted != Which::Auto && wanted != protocol {
            continue;
        }
        let older = Path::new("/var").join(path.trim_start_matches('/'));
        for path in [PathBuf::from(path), older] {
            // One socket may have several paths: /var/run is usually a link to /run.
            match fs::metadata(&path).map(|meta| (meta.dev(), meta.ino())) {
                Ok(file) if !known.insert(file) => {}
                Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
                _ => endpoints.push(Endpoint::new(path, protocol)),
            }
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_socket_is_the_first() {
        let first = |is_certain| {
            let configured = Configured {
                path: PathBuf::from("/nowhere/my.sock"),
                is_certain,
            };
            let config = RuntimeConfig {
                which: Which::Auto,
                endpoint: None,
                containers: None,
            };
            let endpoints = to_query(&config, Some(&configured)).unwrap();
            let first = endpoints.into_iter().next();
            first.filter(|first| first.configured && first.path == configured.path)
        };
        // One that a stopped kubelet left in a file may be gone with its runtime.
        assert!(first(true).is_some() && first(false).is_none());
    }
}

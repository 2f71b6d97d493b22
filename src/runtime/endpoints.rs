//! The sockets of container runtimes, and their protocols.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Config, Which};
use crate::model::Problem;
use crate::model::problem::InventoryCause;

/// A socket to query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub path: PathBuf,
    pub speaks: Which,
    /// Whether the user named it: then it must answer.
    pub named: bool,
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

/// The sockets to query, each once. Fails when the user names a kind of runtime of which no socket exists.
pub(super) fn to_ask(config: &Config) -> Result<Vec<Endpoint>, Problem> {
    let wanted = config.which;
    if wanted == Which::None {
        return Ok(Vec::new());
    }
    if let Some(path) = &config.endpoint {
        return Ok(vec![Endpoint {
            path: path.clone(),
            speaks: wanted,
            named: true,
        }]);
    }
    let endpoints = usual(wanted);
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

/// The usual sockets that exist.
fn usual(wanted: Which) -> Vec<Endpoint> {
    let of = |speaks: Which, paths: &'static [&str]| paths.iter().map(move |path| (speaks, *path));
    let mut known = BTreeSet::new();
    let mut endpoints = Vec::new();
    for (speaks, path) in of(Which::Cri, &CRI).chain(of(Which::Docker, &DOCKER)) {
        if wanted != Which::Auto && wanted != speaks {
            continue;
        }
        let older = Path::new("/var").join(path.trim_start_matches('/'));
        for path in [PathBuf::from(path), older] {
            // One socket may have several paths: /var/run is usually a link to /run.
            match fs::metadata(&path).map(|meta| (meta.dev(), meta.ino())) {
                Ok(file) if !known.insert(file) => {}
                Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
                _ => endpoints.push(Endpoint {
                    path,
                    speaks,
                    named: false,
                }),
            }
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(which: Which, endpoint: Option<&str>) -> Config {
        Config {
            which,
            endpoint: endpoint.map(PathBuf::from),
            containers: false,
        }
    }

    #[test]
    fn runtime_none_queries_no_socket() {
        for endpoint in [None, Some("/run/containerd/containerd.sock")] {
            assert_eq!(to_ask(&config(Which::None, endpoint)), Ok(Vec::new()));
        }
    }

    #[test]
    fn a_named_socket_is_the_only_one_even_if_it_is_missing() {
        for (which, speaks) in [
            (Which::Auto, Which::Auto),
            (Which::Cri, Which::Cri),
            (Which::Docker, Which::Docker),
        ] {
            let path = PathBuf::from("/nowhere/my.sock");
            let named = Endpoint {
                path,
                speaks,
                named: true,
            };
            assert_eq!(
                to_ask(&config(which, Some("/nowhere/my.sock"))),
                Ok(vec![named])
            );
        }
    }
}

//! Which sockets there are to ask, and what they speak.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Config, Which};
use crate::model::{Code, Problem};

/// The protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Cri,
    Docker,
    /// One of the two: asking tells.
    Either,
}

/// A socket that is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub path: PathBuf,
    pub speaks: Speaks,
    /// Whether the user named it: then it has to be of use.
    pub named: bool,
}

/// containerd, CRI-O and cri-dockerd; k3s and rke2, k0s and microk8s bring a containerd of their own.
const CRI: [&str; 6] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
];
const DOCKER: [&str; 2] = ["/run/docker.sock", "/run/podman/podman.sock"];

/// The sockets to ask, each once.
///
/// # Errors
/// When the user wants a runtime to be asked and no socket of it is there.
pub(super) fn to_ask(config: &Config) -> Result<Vec<Endpoint>, Problem> {
    let wanted = match config.which {
        Which::None => return Ok(Vec::new()),
        Which::Auto => Speaks::Either,
        Which::Cri => Speaks::Cri,
        Which::Docker => Speaks::Docker,
    };
    if let Some(path) = &config.endpoint {
        return Ok(vec![Endpoint { path: path.clone(), speaks: wanted, named: true }]);
    }
    let endpoints = usual(wanted);
    if endpoints.is_empty() && wanted != Speaks::Either {
        let (word, sockets) = if wanted == Speaks::Cri { ("cri", &CRI[..]) } else { ("docker", &DOCKER[..]) };
        let message = format!(
            "no such runtime is found: there is none of {}. Name its socket with --runtime-endpoint unix:///PATH, or \
             go on without it: --runtime none",
            sockets.join(", ")
        );
        return Err(Problem::error(Code::RuntimeUnreachable, word, message));
    }
    Ok(endpoints)
}

/// The usual sockets that exist.
fn usual(wanted: Speaks) -> Vec<Endpoint> {
    let of = |speaks: Speaks, paths: &'static [&str]| paths.iter().map(move |path| (speaks, *path));
    let mut known = BTreeSet::new();
    let mut endpoints = Vec::new();
    for (speaks, path) in of(Speaks::Cri, &CRI).chain(of(Speaks::Docker, &DOCKER)) {
        if wanted != Speaks::Either && wanted != speaks {
            continue;
        }
        let older = Path::new("/var").join(path.trim_start_matches('/'));
        for path in [PathBuf::from(path), older] {
            // One socket may have several paths: /var/run is mostly /run, and symbolic links are common.
            match fs::metadata(&path).map(|meta| (meta.dev(), meta.ino())) {
                Ok(file) if !known.insert(file) => {}
                Err(error) if is_absent(&error) => {}
                _ => endpoints.push(Endpoint { path, speaks, named: false }),
            }
        }
    }
    endpoints
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(which: Which, endpoint: Option<&str>) -> Config {
        Config { which, endpoint: endpoint.map(PathBuf::from), containers: false }
    }

    #[test]
    fn nobody_is_asked_when_nobody_is_to_be_asked() {
        for endpoint in [None, Some("/run/containerd/containerd.sock")] {
            assert_eq!(to_ask(&config(Which::None, endpoint)), Ok(Vec::new()));
        }
    }

    #[test]
    fn a_named_socket_is_asked_alone_and_whether_or_not_it_is_there() {
        for (which, speaks) in
            [(Which::Auto, Speaks::Either), (Which::Cri, Speaks::Cri), (Which::Docker, Speaks::Docker)]
        {
            let path = PathBuf::from("/nowhere/my.sock");
            let named = Endpoint { path, speaks, named: true };
            assert_eq!(to_ask(&config(which, Some("/nowhere/my.sock"))), Ok(vec![named]));
        }
    }
}

//! The runtime that kubelet is configured for, and queries of the runtimes that know it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::checked;
use crate::inventory::kubelets::{self, Kubelet};
use crate::model::Problem;
use crate::runtime::{self, Configured, RuntimeAnswer, RuntimeConfig};

/// What kubeadm writes, for a kubelet that does not run now.
const FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";
const CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// The containerd of k3s and RKE2.
const K3S: &str = "/run/k3s/containerd/containerd.sock";
/// The socket of a kubelet that serves Docker's pods itself, and Docker's own.
const DOCKERSHIM: &str = "dockershim.sock";
const DOCKER: &str = "/run/docker.sock";

/// Queries every runtime that is there, the one that kubelet is configured for first.
pub(crate) fn query(config: &RuntimeConfig) -> Result<RuntimeAnswer, Vec<Problem>> {
    // In a window kubelet is stopped later on, and its command line is gone.
    static CONFIGURED: OnceLock<Option<Configured>> = OnceLock::new();
    let configured = if config.uses_usual_sockets() {
        CONFIGURED.get_or_init(find).as_ref()
    } else {
        None
    };
    runtime::query(config, configured)
}

fn find() -> Option<Configured> {
    let running = kubelets::running().unwrap_or_default();
    let of_process = running.iter().find_map(|kubelet| {
        let line = fs::read(format!("/proc/{}/cmdline", kubelet.pid)).ok()?;
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        in_words(&words).or_else(|| in_config(Path::new(option(&words, "config")?)))
    });
    if let Some(path) = of_process {
        return Some(Configured {
            path,
            is_certain: true,
        });
    }
    let path = if running.iter().any(is_k3s) {
        PathBuf::from(K3S)
    } else {
        checked::text(FLAGS)
            .ok()
            .and_then(|text| in_flags(&text))
            .or_else(|| in_config(Path::new(CONFIG)))?
    };
    Some(Configured {
        path,
        is_certain: false,
    })
}

fn is_k3s(kubelet: &Kubelet) -> bool {
    ["k3s", "rke2"].iter().any(|k| kubelet.name.starts_with(k))
}

/// The value of an option on a command line; the last one counts.
fn option<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let value = |(at, word): (usize, &'a String)| {
        let rest = word.strip_prefix("--")?.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => words.get(at + 1).map(String::as_str),
            None => None,
        }
    };
    words.iter().enumerate().filter_map(value).next_back()
}

fn in_words(words: &[String]) -> Option<PathBuf> {
    socket(option(words, "container-runtime-endpoint")?)
}

/// The endpoint in kubeadm's file of one shell variable with all options.
fn in_flags(text: &str) -> Option<PathBuf> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    in_words(&words.map(str::to_owned).collect::<Vec<_>>())
}

fn in_config(path: &Path) -> Option<PathBuf> {
    in_yaml(&checked::text(path).ok()?)
}

/// The endpoint in a `KubeletConfiguration`: a key of the outermost level.
fn in_yaml(text: &str) -> Option<PathBuf> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("containerRuntimeEndpoint:"))?;
    let value = value.split(" #").next().unwrap_or_default().trim();
    socket(value.trim_matches(['"', '\'']))
}

/// The path of a socket's address.
fn socket(address: &str) -> Option<PathBuf> {
    let path = address
        .strip_prefix("unix://")
        .or_else(|| address.strip_prefix("unix:"))
        .unwrap_or(address);
    let path = Path::new(path);
    match path.file_name() {
        Some(name) if name == DOCKERSHIM => Some(PathBuf::from(DOCKER)),
        _ => path.is_absolute().then(|| path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn path(text: &str) -> PathBuf {
        PathBuf::from(text)
    }

    #[test]
    fn the_command_line_names_the_endpoint() {
        let of = |line: &str| in_words(&words(line));
        let containerd = Some(path("/run/containerd/containerd.sock"));
        for address in [
            "=unix:///run/containerd/containerd.sock",
            " unix:///run/containerd/containerd.sock",
            "=/run/containerd/containerd.sock",
            "=/run/crio/crio.sock --container-runtime-endpoint=unix:/run/containerd/containerd.sock",
        ] {
            let line = format!("kubelet --v=2 --container-runtime-endpoint{address} --x");
            assert_eq!(of(&line), containerd, "{line}");
        }
        assert_eq!(
            of("kubelet --container-runtime-endpoint=unix:///var/run/dockershim.sock"),
            Some(path("/run/docker.sock"))
        );
        for line in [
            "kubelet",
            "kubelet --container-runtime-endpoint",
            "kubelet --container-runtime-endpoint=",
            "kubelet --container-runtime-endpoint=tcp://localhost:1",
            "kubelet --container-runtime-endpoints=/run/x.sock",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(
            option(&words("kubelet --config=/etc/k.yaml"), "config"),
            Some("/etc/k.yaml")
        );
    }

    #[test]
    fn the_files_name_the_endpoint() {
        let text = "KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=unix:///run/crio/crio.sock --pod=x\"\n";
        assert_eq!(in_flags(text), Some(path("/run/crio/crio.sock")));
        for value in [
            "unix:///run/crio/crio.sock",
            "\"unix:///run/crio/crio.sock\" # the runtime",
            "'/run/crio/crio.sock'",
        ] {
            let text = format!("kind: KubeletConfiguration\ncontainerRuntimeEndpoint: {value}\n");
            assert_eq!(in_yaml(&text), Some(path("/run/crio/crio.sock")), "{value}");
        }
        for text in [
            "",
            "containerRuntimeEndpoint: \"\"\n",
            "  containerRuntimeEndpoint: unix:///run/crio/crio.sock\n",
            "# containerRuntimeEndpoint: unix:///run/crio/crio.sock\n",
        ] {
            assert_eq!(in_yaml(text), None, "{text}");
        }
    }
}

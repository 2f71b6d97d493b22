//! Fake container runtimes that report, for real namespaces, what a test wants.

mod cgroup;
mod cri;
mod docker;

use std::fmt::Write as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use super::node::Node;
use super::pod::Pod;
use super::run::Run;

pub use cgroup::Cgroup;
pub use cri::{FakeCri, Script, Step};
pub use docker::{Container, FakeDocker};

/// A pod sandbox as the fake CRI runtime reports it.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    pub id: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub attempt: u32,
    pub netns: Option<PathBuf>,
    pub pid: Option<u32>,
    pub host_network: bool,
    /// Listed as running, but gone when its status is queried.
    pub is_gone: bool,
    pub containers: Vec<ContainerOfPod>,
}

/// A container of a pod as the fake CRI runtime reports it.
#[derive(Debug, Clone)]
pub struct ContainerOfPod {
    pub id: String,
    pub name: String,
    pub attempt: u32,
    pub created: SystemTime,
    /// When it ended, and its exit code; `None` while it runs.
    pub ended: Option<(SystemTime, i32)>,
}

impl ContainerOfPod {
    /// One that runs, after so many restarts.
    pub fn running(name: &str, attempt: u32) -> Self {
        Self {
            id: unique_id(),
            name: name.to_owned(),
            attempt,
            created: SystemTime::now(),
            ended: None,
        }
    }
}

impl Sandbox {
    /// `shop/NAME`, number `number`, with the pod's path only.
    pub fn of(pod: &Pod<'_>, name: &str, number: u8) -> Self {
        Self {
            netns: Some(pod.ns.path()),
            ..Self::nowhere(name, number)
        }
    }

    /// The same without anything that identifies a namespace.
    pub fn nowhere(name: &str, number: u8) -> Self {
        Self {
            id: id(number),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: uid(number),
            ..Self::default()
        }
    }

    /// Every container ends with this code, as far as it runs.
    pub fn end_containers(&mut self, code: i32) {
        for container in &mut self.containers {
            container.ended.get_or_insert((SystemTime::now(), code));
        }
    }

    /// What kubelet does: another container in the place of the last one, which is kept.
    pub fn restart(&mut self) {
        let last = self.containers.last().expect("a container").clone();
        let next = ContainerOfPod::running(&last.name, last.attempt + 1);
        self.containers = vec![last, next];
    }

    /// The file name of the pod's checkpoint.
    pub fn short_id(&self) -> &str {
        &self.id[..12]
    }
}

/// A sandbox id, unique for each number.
pub fn id(number: u8) -> String {
    format!("{number:02x}c9b8d0a800{}", "0123456789abcdef".repeat(4))[..64].to_owned()
}

/// A container id whose first characters no other test uses, in this process or another one.
pub fn unique_id() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{:08x}{:04x}{:052x}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed),
        1
    )
}

/// A pod uid, unique for each number.
pub fn uid(number: u8) -> String {
    format!("5e0c6f86-7f6c-4a1c-9f5e-2f4f0f3c1a{number:02x}")
}

/// The options that make netfix use this socket and detect its protocol.
pub fn auto(socket: &Path) -> String {
    format!(
        "--runtime auto --runtime-endpoint unix://{}",
        socket.display()
    )
}

/// A socket whose owner has gone.
pub fn dead_socket(path: &Path) {
    drop(
        UnixListener::bind(path).unwrap_or_else(|e| panic!("cannot bind {}: {e}", path.display())),
    );
    assert!(path.exists(), "the socket's file went with the socket");
}

impl Node {
    /// netfix on a machine that has these sockets at their usual paths, and no others.
    pub fn netfix_with_sockets(&self, sockets: &[(&str, &Path)], words: &str) -> Run {
        self.netfix_after("true", sockets, words)
    }

    /// The same where kubelet is configured for this endpoint and does not run.
    pub fn netfix_with_kubelet(
        &self,
        endpoint: &str,
        sockets: &[(&str, &Path)],
        words: &str,
    ) -> Run {
        let config = "/var/lib/kubelet/config.yaml";
        let script = format!(
            "mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/kubelet && \
             echo 'containerRuntimeEndpoint: \"unix://{endpoint}\"' >{config}"
        );
        self.netfix_after(&script, sockets, words)
    }

    /// The same after a script of the shell.
    fn netfix_after(&self, script: &str, sockets: &[(&str, &Path)], words: &str) -> Run {
        let run = self.temp().join("run");
        let mut script = format!(
            "{script} && mkdir -p {run} && mount -t tmpfs tmpfs {run} && mkdir {run}/netns && \
             mount --rbind /run/netns {run}/netns",
            run = run.display()
        );
        for (usual, socket) in sockets {
            let usual = usual.strip_prefix("/run/").expect("a socket below /run");
            let path = run.join(usual);
            let folder = path.parent().expect("a folder").display();
            write!(
                script,
                " && mkdir -p {folder} && ln -s {} {}",
                socket.display(),
                path.display()
            )
            .expect("a text takes any text");
        }
        write!(
            script,
            " && mount --rbind {} /run && exec \"$@\"",
            run.display()
        )
        .expect("a text takes any text");
        Run::of(&mut self.netfix_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], words))
    }
}

//! A node with a real containerd, runc and the CNI macvlan plugin, and pods created over CRI as kubelet creates
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::background::wait_until;
use super::capture::Capture;
use super::cni::PLUGINS;
use super::cni_cache::Cached;
use super::cri::{Cri, PodSpec, Sandbox};
use super::image;
use super::machine::Machine;
use super::namespace::Namespace;
use super::node::{GATEWAY4, GATEWAY6, Node};
use super::run::Run;
use super::tool;

/// containerd's socket, by its path inside the machine.
pub const SOCKET: &str = "/run/containerd/containerd.sock";

/// The node, and on it a machine with containerd. The drop removes everything.
pub struct CriNode {
    daemon: Option<Daemon>,
    pub machine: Machine,
    pub node: Node,
}

/// A running containerd.
struct Daemon {
    /// The process id inside the machine.
    pid: u32,
    cri: Cri,
}

/// A running sandbox with its own network namespace.
pub struct CriPod {
    pub sandbox: Sandbox,
    /// The namespace under a name of the test, which the machine does not see.
    pub ns: Namespace,
}

impl CriNode {
    /// With a macvlan in bridge mode for every pod.
    pub fn new() -> Self {
        Self::with_macvlan(&json!({"mode": "bridge"}))
    }

    /// With these keys in the configuration of the macvlan plugin.
    pub fn with_macvlan(keys: &Value) -> Self {
        let node = Node::new();
        let machine = Machine::start(&node);
        Self::on(node, machine, keys)
    }

    /// On a machine with systemd.
    pub fn with_systemd() -> Self {
        let node = Node::new();
        let machine = Machine::with_systemd(&node);
        Self::on(node, machine, &json!({"mode": "bridge"}))
    }

    fn on(node: Node, machine: Machine, keys: &Value) -> Self {
        let image = image::pause(&node.temp().join("image"));
        configure(&node.temp(), keys);
        let mut this = Self {
            daemon: None,
            machine,
            node,
        };
        this.start();
        this.import(&image);
        this
    }

    /// Loads an image into containerd.
    pub fn import(&self, archive: &Path) {
        tool::run(
            self.machine
                .exec("ctr")
                .args(["-n", "k8s.io", "images", "import"])
                .arg(archive),
        );
    }

    /// Starts containerd; it finds its running sandboxes again.
    pub fn start(&mut self) {
        assert!(self.daemon.is_none(), "containerd is already running");
        let [config, log] = [config_file(&self.node.temp()), self.log()];
        let script = "echo $$ >/sys/fs/cgroup/init/cgroup.procs; setsid containerd -c \"$0\" </dev/null >>\"$1\" 2>&1 & \
            echo $!";
        let pid = tool::run(
            self.machine
                .exec("sh")
                .args(["-c", script])
                .arg(config)
                .arg(&log),
        );
        let pid = pid
            .trim()
            .parse()
            .unwrap_or_else(|e| panic!("{pid:?} is no pid: {e}"));
        let socket = self.machine.outside(SOCKET);
        let mut ready = None;
        wait_until(|| {
            ready = Cri::connect(&socket).ok().filter(Cri::is_ready);
            ready.is_some()
        });
        let log = || fs::read_to_string(&log).unwrap_or_default();
        let cri = ready.unwrap_or_else(|| panic!("containerd does not become ready:\n{}", log()));
        self.daemon = Some(Daemon { pid, cri });
    }

    /// Kills containerd with SIGKILL, so it cannot clean up. The pods keep running.
    pub fn kill(&mut self) {
        let pid = self.pid();
        self.daemon = None;
        assert!(
            self.machine.signal(pid, Signal::SIGKILL),
            "containerd was not running"
        );
        assert!(
            wait_until(|| !self.machine.is_alive(pid)),
            "containerd does not end"
        );
    }

    /// Makes containerd hang: it accepts connections and does not answer.
    pub fn freeze(&self) {
        assert!(
            self.machine.signal(self.pid(), Signal::SIGSTOP),
            "containerd was not running"
        );
    }

    pub fn thaw(&self) {
        assert!(
            self.machine.signal(self.pid(), Signal::SIGCONT),
            "containerd was not running"
        );
    }

    fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("containerd was started").pid
    }

    pub fn cri(&self) -> &Cri {
        &self.daemon.as_ref().expect("containerd was started").cri
    }

    fn log(&self) -> PathBuf {
        self.node.temp().join("containerd.log")
    }

    /// `count` pods of two Kubernetes namespaces with the same names in both; every third is a second attempt.
    pub fn pods(&self, count: usize) -> Vec<CriPod> {
        let spec = |number: usize| {
            let namespace = if number.is_multiple_of(2) {
                "default"
            } else {
                "shop"
            };
            let (name, uid) = (
                format!("web-{}", number / 2),
                format!("7d1c2a50-88aa-4f31-9b6e-{number:012}"),
            );
            let attempt = u32::from(number.is_multiple_of(3));
            PodSpec {
                attempt,
                ..PodSpec::new(namespace, &name, &uid)
            }
        };
        let specs: Vec<_> = (0..count).map(spec).collect();
        self.cri()
            .run(&specs)
            .iter()
            .map(|id| self.pod(id))
            .collect()
    }

    pub fn run(&self, spec: PodSpec) -> CriPod {
        let id = self.cri().run(&[spec]).remove(0);
        self.pod(&id)
    }

    fn pod(&self, id: &str) -> CriPod {
        let sandbox = self.cri().status(id);
        let name = format!("{}.{}", self.node.ns.name(), &id[..12]);
        let file = self.machine.proc_file(sandbox.pid, "ns/net");
        CriPod {
            ns: Namespace::of_file(&name, &file),
            sandbox,
        }
    }

    /// Deletes the pod, as kubelet does.
    pub fn remove(&self, pod: CriPod) {
        let CriPod { sandbox, ns } = pod;
        drop(ns);
        self.cri().remove(&sandbox.id);
    }

    /// libcni's cache entry of the pod.
    pub fn cached(&self, pod: &CriPod) -> Cached {
        Cached::of(&self.machine, &pod.sandbox.id, "eth0")
    }

    /// The CHECK of the macvlan plugin, from libcni's cache.
    pub fn assert_cni_check(&self, pods: &[CriPod]) {
        for pod in pods {
            let checked = self.cached(pod).check(&self.machine);
            checked.unwrap_or_else(|e| panic!("CHECK of {}: {e}", pod.transcript()));
        }
    }

    pub fn capture(&self, pod: &CriPod) -> Capture {
        Capture::of_pod(&pod.ns, &self.node.ns)
    }

    /// Every pod has exactly its captured state.
    pub fn assert_same_as(&self, pods: &[CriPod], before: &[Capture]) {
        assert_eq!(pods.len(), before.len());
        for (pod, before) in pods.iter().zip(before) {
            before.assert_becomes(&pod.transcript(), || self.capture(pod));
        }
    }

    /// `netfix WORDS` inside, with the test's state directory.
    pub fn netfix(&self, words: &str) -> Run {
        Run::inside(&self.machine, &self.node.state_dir(), words)
    }
}

impl CriPod {
    pub fn transcript(&self) -> String {
        let Sandbox {
            namespace,
            name,
            id,
            ..
        } = &self.sandbox;
        format!("{namespace}/{name} ({id})")
    }

    /// The file name of the pod's checkpoint.
    pub fn short_id(&self) -> &str {
        &self.sandbox.id[..12]
    }
}

fn config_file(temp: &Path) -> PathBuf {
    temp.join("containerd.toml")
}

/// Writes the configuration of containerd and of the one network.
fn configure(temp: &Path, macvlan: &Value) {
    let networks = temp.join("networks");
    fs::create_dir_all(&networks).expect("a folder for networks");
    fs::write(
        networks.join("10-lab.conflist"),
        network(macvlan).to_string(),
    )
    .expect("the network's file");
    let text = format!(
        r#"version = 2
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
disable_cgroup = true
sandbox_image = "{image}"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
"#,
        image = image::PAUSE,
        networks = networks.display(),
    );
    fs::write(config_file(temp), text).expect("containerd's configuration");
}

/// Macvlan on the node's `eth0`, an address and a default route of each family.
fn network(keys: &Value) -> Value {
    let ipam = json!({
        "type": "host-local",
        "ranges": [
            [{"subnet": "10.88.0.0/16", "rangeStart": "10.88.4.10", "gateway": GATEWAY4}],
            [{"subnet": "fd88::/64", "rangeStart": "fd88::4:10", "gateway": GATEWAY6}],
        ],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
    });
    let mut macvlan = json!({"type": "macvlan", "master": "eth0", "ipam": ipam});
    for (key, value) in keys.as_object().into_iter().flatten() {
        macvlan[key] = value.clone();
    }
    json!({"cniVersion": "1.0.0", "name": "lab", "plugins": [macvlan]})
}

//! The CNI macvlan plugin: it creates pods, and it checks them independently of netfix.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::namespace::Namespace;
use super::node::{GATEWAY4, GATEWAY6, Node};
use super::tool::CNI_MACVLAN;

/// The directory of Debian's plugins.
pub const PLUGINS: &str = "/usr/lib/cni";

pub struct Attachment {
    config: Value,
    result: Value,
}

impl Attachment {
    pub fn add(node: &Node, pod: &Namespace, ipam: &Value) -> Self {
        let config = json!({
            "cniVersion": "0.4.0", "name": "lab", "type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": ipam,
        });
        let answer = run_plugin(node, pod, "ADD", &config)
            .unwrap_or_else(|e| panic!("CNI ADD for {}: {e}", pod.name()));
        let result = serde_json::from_str(&answer)
            .unwrap_or_else(|e| panic!("CNI ADD answered {answer}: {e}"));
        Self { config, result }
    }

    pub fn check(&self, node: &Node, pod: &Namespace) -> Result<(), String> {
        let mut config = self.config.clone();
        config["prevResult"] = self.result.clone();
        run_plugin(node, pod, "CHECK", &config).map(drop)
    }
}

/// Fixed addresses, each with the gateway of its family, and a default route for each family.
pub fn static_ipam(addresses: &[&str]) -> Value {
    let gateway = |address: &str| {
        if address.contains(':') {
            GATEWAY6
        } else {
            GATEWAY4
        }
    };
    let list: Vec<_> = addresses
        .iter()
        .map(|a| json!({"address": a, "gateway": gateway(a)}))
        .collect();
    let mut routes = vec![json!({"dst": "0.0.0.0/0", "gw": GATEWAY4})];
    if addresses.iter().any(|a| a.contains(':')) {
        routes.push(json!({"dst": "::/0", "gw": GATEWAY6}));
    }
    json!({"type": "static", "addresses": list, "routes": routes})
}

/// Addresses from the host-local plugin, which keeps its records in a directory of the test.
pub fn host_local_ipam(node: &Node) -> Value {
    json!({
        "type": "host-local", "dataDir": node.temp().join("ipam"), "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.4.10", "gateway": GATEWAY4}]],
    })
}

fn run_plugin(node: &Node, pod: &Namespace, verb: &str, config: &Value) -> Result<String, String> {
    let mut command = node.ns.exec(CNI_MACVLAN);
    command
        .env("CNI_CONTAINERID", pod.name())
        .env("CNI_NETNS", pod.path())
        .env("CNI_IFNAME", "eth0");
    call(&mut command, verb, config)
}

/// Calls a plugin. `command` starts it, with its environment.
pub fn call(command: &mut Command, verb: &str, config: &Value) -> Result<String, String> {
    command.env("CNI_COMMAND", verb).env("CNI_PATH", PLUGINS);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin
        .write_all(config.to_string().as_bytes())
        .map_err(|e| format!("cannot write to the plugin: {e}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!(
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

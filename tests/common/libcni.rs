//! A small libcni: calls the plugins of a network one after the other and writes the same cache entry as libcni,
//! byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cni::{self, PLUGINS};
use super::cni_cache::Cached;
use super::namespace::Namespace;
use super::node::Node;
use super::pod::Pod;

/// One network of a node, and the cache that its attachments are written to.
pub struct Network<'n> {
    node: &'n Node,
    config: Value,
    capabilities: Value,
    /// The directory below the cache.
    place: &'static str,
}

impl<'n> Network<'n> {
    /// A list of plugins; the first one creates the interface.
    pub fn new(node: &'n Node, name: &str, plugins: &[Value]) -> Self {
        let config = json!({"cniVersion": "1.0.0", "name": name, "plugins": plugins});
        Self {
            node,
            config,
            capabilities: json!({}),
            place: "results",
        }
    }

    /// The same with another version of the CNI specification.
    pub fn version(mut self, version: &str) -> Self {
        self.config["cniVersion"] = version.into();
        self
    }

    /// The same with runtime configuration for plugins that declare a capability.
    pub fn capabilities(mut self, values: Value) -> Self {
        self.capabilities = values;
        self
    }

    /// The same, cached in another directory below the cache, as multus does.
    pub fn cached_in(mut self, place: &'static str) -> Self {
        self.place = place;
        self
    }

    /// Runs ADD and writes the cache entry.
    pub fn attach(&self, pod: &Pod<'_>, ifname: &str) -> Attached {
        let args = [
            ["IgnoreUnknown", "1"].map(str::to_owned),
            ["K8S_POD_NAMESPACE".to_owned(), "shop".to_owned()],
            ["K8S_POD_NAME".to_owned(), short_name(pod)],
            ["K8S_POD_INFRA_CONTAINER_ID".to_owned(), sandbox_id(pod)],
            ["K8S_POD_UID".to_owned(), uid(pod)],
        ];
        let text = args.each_ref().map(|pair| pair.join("=")).join(";");
        let mut result = Value::Null;
        for plugin in self.config["plugins"]
            .as_array()
            .expect("a list of plugins")
        {
            let config = self.plugin_input(plugin, &result);
            let answer = call(
                self.node,
                &pod.ns,
                &sandbox_id(pod),
                ifname,
                &text,
                "ADD",
                &config,
            );
            let answer = answer.unwrap_or_else(|e| panic!("ADD of {config}: {e}"));
            result = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{answer}: {e}"));
        }
        let folder = cache_dir(self.node).join(self.place);
        let name = self.config["name"].as_str().expect("the network's name");
        let attached = Attached {
            file: folder.join(format!("{name}-{}-{ifname}", sandbox_id(pod))),
            args: args.to_vec(),
            capabilities: self.capabilities.clone(),
            netns: pod.ns.path().to_str().map(str::to_owned),
            cached: Cached {
                file: PathBuf::new(),
                container: sandbox_id(pod),
                interface: ifname.to_owned(),
                config: self.config.clone(),
                args: text,
                result,
            },
        };
        attached.write();
        attached
    }

    /// The standard input of one plugin of the list.
    fn plugin_input(&self, plugin: &Value, result: &Value) -> Value {
        let mut config = plugin.clone();
        for key in ["name", "cniVersion"] {
            config[key] = self.config[key].clone();
        }
        if !result.is_null() {
            config["prevResult"] = result.clone();
        }
        for (key, value) in self.capabilities.as_object().into_iter().flatten() {
            if config["capabilities"][key] == true {
                config["runtimeConfig"][key] = value.clone();
            }
        }
        config
    }
}

/// An interface that plugins created.
pub struct Attached {
    pub file: PathBuf,
    pub cached: Cached,
    args: Vec<[String; 2]>,
    capabilities: Value,
    netns: Option<String>,
}

impl Attached {
    /// Writes the cache entry, or replaces it.
    pub fn write(&self) {
        let Cached {
            container,
            interface,
            config,
            result,
            ..
        } = &self.cached;
        let mut entry = json!({
            "kind": "cniCacheV1", "containerId": container, "config": BASE64_STANDARD.encode(config.to_string()),
            "ifName": interface, "networkName": config["name"], "cniArgs": self.args, "result": result,
        });
        if self
            .capabilities
            .as_object()
            .is_some_and(|values| !values.is_empty())
        {
            entry["capabilityArgs"] = self.capabilities.clone();
        }
        // libcni writes it since 1.3; an early result does not contain it.
        if let Some(netns) = self
            .netns
            .as_ref()
            .filter(|_| result["interfaces"].is_null())
        {
            entry["netns"] = netns.clone().into();
        }
        let folder = self.file.parent().expect("a file in a folder");
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        self.overwrite(&entry.to_string());
    }

    /// Replaces the cache entry by any text.
    pub fn overwrite(&self, text: &str) {
        fs::write(&self.file, text).unwrap_or_else(|e| panic!("{}: {e}", self.file.display()));
        fs::set_permissions(&self.file, Permissions::from_mode(0o600)).expect("a private file");
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_else(|e| panic!("{}: {e}", self.file.display()))
    }

    /// The CHECK of every plugin of the list.
    pub fn check(&self, node: &Node, pod: &Pod<'_>) -> Result<(), String> {
        self.cached
            .check_with(&pod.ns.path().to_string_lossy(), |program| {
                node.ns.exec(program)
            })
    }
}

/// The cache of a node: a directory of the test.
pub fn cache_dir(node: &Node) -> PathBuf {
    node.temp().join("cni")
}

/// The sandbox id that a runtime would use for the pod.
pub fn sandbox_id(pod: &Pod<'_>) -> String {
    let digest = Sha256::digest(pod.name());
    digest
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

/// The pod's name in Kubernetes: the part after the last dot of its namespace's name.
pub fn short_name(pod: &Pod<'_>) -> String {
    pod.name().rsplit('.').next().unwrap_or_default().to_owned()
}

/// Its uid.
pub fn uid(pod: &Pod<'_>) -> String {
    let id = sandbox_id(pod);
    format!(
        "{}-{}-4{}-8{}-{}",
        &id[..8],
        &id[8..12],
        &id[13..16],
        &id[17..20],
        &id[20..32]
    )
}

fn call(
    node: &Node,
    pod: &Namespace,
    container: &str,
    ifname: &str,
    args: &str,
    verb: &str,
    config: &Value,
) -> Result<String, String> {
    let program = config["type"].as_str().expect("the plugin's type");
    let mut command = node.ns.exec(&format!("{PLUGINS}/{program}"));
    command
        .env("CNI_CONTAINERID", container)
        .env("CNI_NETNS", pod.path())
        .env("CNI_IFNAME", ifname);
    cni::call(command.env("CNI_ARGS", args), verb, config)
}

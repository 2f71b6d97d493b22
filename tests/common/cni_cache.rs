//! libcni's cache, read without netfix, and the CHECK of the macvlan plugin from its content.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::cni;
use super::machine::Machine;
use super::tool;

/// The directory of libcni's cache.
pub const FOLDER: &str = "/var/lib/cni";

/// One cached attachment.
#[derive(Debug)]
pub struct Cached {
    /// Its path, seen from outside.
    pub file: PathBuf,
    /// The sandbox's id.
    pub container: String,
    pub interface: String,
    /// The network's list of plugins.
    pub config: Value,
    /// `KEY=VALUE;…`
    pub args: String,
    pub result: Value,
}

impl Cached {
    /// The cache entry of a sandbox's interface.
    pub fn of(machine: &Machine, container: &str, interface: &str) -> Self {
        let file = file_of(machine, container, interface);
        let decode = ".config |= (@base64d | fromjson)";
        let text = tool::run(tool::command("jq", ["-c", decode]).arg(&file));
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let pair = |pair: &Value| Some(format!("{}={}", pair[0].as_str()?, pair[1].as_str()?));
        let args: Vec<_> = value["cniArgs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(pair)
            .collect();
        Self {
            container: container.to_owned(),
            interface: interface.to_owned(),
            config: value["config"].clone(),
            args: args.join(";"),
            result: value["result"].clone(),
            file,
        }
    }

    /// The CHECK of every plugin of the list, called like libcni.
    pub fn check(&self, machine: &Machine) -> Result<(), String> {
        let netns = self.result["interfaces"][0]["sandbox"]
            .as_str()
            .expect("the result's namespace");
        self.check_with(netns, |program| machine.exec(program))
    }

    /// The same for any namespace; `start` creates the command that starts a program where the plugins run.
    pub fn check_with(&self, netns: &str, start: impl Fn(&str) -> Command) -> Result<(), String> {
        let plugins = self.config["plugins"]
            .as_array()
            .expect("the list's plugins");
        assert!(!plugins.is_empty(), "no plugin in {}", self.config);
        plugins.iter().try_for_each(|plugin| {
            let mut config = plugin.clone();
            for key in ["name", "cniVersion"] {
                config[key] = self.config[key].clone();
            }
            config["prevResult"] = self.result.clone();
            let program = plugin["type"].as_str().expect("the plugin's type");
            let mut command = start(&format!("{}/{program}", cni::PLUGINS));
            command
                .env("CNI_CONTAINERID", &self.container)
                .env("CNI_NETNS", netns);
            command
                .env("CNI_IFNAME", &self.interface)
                .env("CNI_ARGS", &self.args);
            cni::call(&mut command, "CHECK", &config).map(drop)
        })
    }
}

fn file_of(machine: &Machine, container: &str, interface: &str) -> PathBuf {
    let folder = machine.outside(FOLDER).join("results");
    let end = format!("-{container}-{interface}");
    let files =
        fs::read_dir(&folder).unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()));
    let is_it = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().ends_with(&end))
    };
    let mut found = files.flatten().map(|entry| entry.path()).filter(is_it);
    found
        .next()
        .unwrap_or_else(|| panic!("nothing of {container} in {}", folder.display()))
}

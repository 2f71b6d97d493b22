//! The control machine: ansible-playbook with the collection, and ssh to sshd on each node. Every connection starts in the
//! gateway's namespace and crosses the NIC of the node, so it is cut with that NIC.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::common::leftovers::FOLDER_PREFIX;
use crate::common::machine::Machine;
use crate::common::namespace::unique_name;
use crate::common::run::{BINARY, Run};
use crate::common::systemd::ADMINISTRATOR;
use crate::common::{Node, tool};

/// The address of `Node` on its NIC.
const ADDRESS: &str = "10.88.0.2";
const PROGRAMS: [&str; 2] = ["/usr/sbin/sshd", "/usr/bin/ssh-keygen"];
// Against a hang; a busy machine is slow.
const LIMIT_SECONDS: &str = "900";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program of the Ansible that `scripts/setup --all` has installed.
pub fn program(name: &str) -> PathBuf {
    let path = root().join("target/ansible/bin").join(name);
    let needed = PROGRAMS.map(Path::new).into_iter().chain([path.as_path()]);
    let missing: Vec<_> = needed.filter(|path| !path.exists()).collect();
    assert!(
        missing.is_empty(),
        "missing {missing:?}: run scripts/setup --all"
    );
    path
}

pub struct Control {
    temp: TempDir,
    hosts: Map<String, Value>,
}

impl Control {
    pub fn new() -> Self {
        program("ansible-playbook");
        let prefix = format!("{FOLDER_PREFIX}{}-", unique_name());
        let temp = TempDir::with_prefix(prefix).expect("a temporary folder");
        let control = Self {
            temp,
            hosts: Map::new(),
        };
        let parent = control.path("collections/ansible_collections/netfix");
        fs::create_dir_all(&parent).expect("a folder");
        symlink(root().join("contrib/ansible"), parent.join("node")).expect("a link");
        control.keygen("key");
        fs::create_dir(control.path("bin")).expect("a folder");
        control.kubectl_does("");
        control
    }

    /// What the replacement of kubectl(1) does beside noting its words.
    pub fn kubectl_does(&self, script: &str) {
        let calls = self.path("kubectl");
        let kubectl = format!("#!/bin/sh\necho \"$@\" >>{}\n{script}\n", calls.display());
        tool::program(&kubectl, &self.path("bin/kubectl"));
    }

    /// What kubectl(1), which is a replacement, was called with.
    pub fn kubectl_calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("kubectl")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn keygen(&self, name: &str) {
        let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
        tool::run(tool::command("ssh-keygen", words).arg(self.path(name)));
    }

    /// Starts sshd on a machine, and makes that a host with these variables.
    pub fn add(&mut self, name: &str, node: &Node, machine: &Machine, variables: &Value) {
        tool::run(machine.exec("hostname").arg(name));
        // The shell of a login reads what this machine's own root has there, and may wait for it.
        tool::run(
            machine
                .exec("mount")
                .args(["-t", "tmpfs", "tmpfs", "/root"]),
        );
        self.keygen(&format!("{name}.key"));
        let config = format!(
            "ListenAddress {ADDRESS}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
            PasswordAuthentication no\nSubsystem sftp internal-sftp\nSetEnv NETFIX_STATE_DIR={} NETFIX_RUNTIME=none\n",
            self.path(&format!("{name}.key")).display(),
            self.path("key.pub").display(),
            node.state_dir().display()
        );
        let file = self.path(&format!("{name}.sshd"));
        fs::write(&file, config).expect("a file");
        let unit = format!(
            "[Service]\nExecStart=/usr/sbin/sshd -D -e -f {}\nRuntimeDirectory=sshd\nKillMode=process\n",
            file.display()
        );
        machine.put(&format!("{ADMINISTRATOR}/node-ssh.service"), &unit);
        for words in ["daemon-reload", "start node-ssh.service"] {
            machine.systemctl(words).unwrap_or_else(|e| panic!("{e}"));
        }
        let gateway = node.gateway.path();
        let proxy = format!(
            "nsenter --net={} socat STDIO TCP:{ADDRESS}:22",
            gateway.display()
        );
        let mut host = json!({
            "ansible_host": name,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": self.path("key"),
            "ansible_ssh_common_args": format!("-F none -o UserKnownHostsFile=/dev/null -o ProxyCommand='{proxy}'"),
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_remote_tmp": "/run/ansible",
        });
        let all = host.as_object_mut().expect("an object");
        all.extend(variables.as_object().expect("variables").clone());
        self.hosts.insert(name.to_owned(), host);
    }

    /// One more variable of a host.
    pub fn set(&mut self, host: &str, name: &str, value: impl Into<Value>) {
        self.hosts[host][name] = value.into();
    }

    /// Runs a playbook, a file or a name of the collection.
    pub fn play(&self, playbook: impl AsRef<OsStr>, options: &[&str]) -> Played {
        let inventory = self.path("inventory.json");
        let all = json!({ "all": { "hosts": self.hosts } });
        fs::write(&inventory, all.to_string()).expect("an inventory");
        // Every process of Ansible ends with it, also the shared connections of ssh.
        let isolated = [
            "--kill-after=5",
            LIMIT_SECONDS,
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ];
        let mut command = tool::command("timeout", isolated);
        command
            .arg(program("ansible-playbook"))
            .arg("-i")
            .arg(inventory)
            .args(options)
            .arg(playbook);
        self.environment(&mut command);
        Played::of(Run::of(&mut command))
    }

    fn environment(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ANSIBLE_") {
                command.env_remove(&name);
            }
        }
        let path = std::env::var("PATH").expect("a PATH");
        command
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .current_dir(self.temp.path())
            .env("PWD", self.temp.path())
            .env("HOME", self.temp.path())
            .env("ANSIBLE_HOME", self.path("ansible"))
            .env("ANSIBLE_COLLECTIONS_PATH", self.path("collections"))
            .env("ANSIBLE_HOST_KEY_CHECKING", "false")
            .env("ANSIBLE_PIPELINING", "true")
            .env("ANSIBLE_TIMEOUT", "60")
            .env("ANSIBLE_NOCOLOR", "true")
            .env("ANSIBLE_DEPRECATION_WARNINGS", "false")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NETFIX_STATE_DIR")
            .stdin(Stdio::null());
    }

    /// The page of all nodes, and the document of one, as far as they were written.
    pub fn report(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path("netfix-reports").join(name)).ok()
    }
}

/// A playbook that has ended, with the numbers of its recap.
pub struct Played {
    pub run: Run,
    hosts: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Played {
    fn of(run: Run) -> Self {
        let recap = run.out.split("PLAY RECAP").nth(1).unwrap_or_default();
        let row = |line: &str| {
            let (host, numbers) = line.split_once(" : ")?;
            let numbers = numbers.split_whitespace().filter_map(|word| {
                let (name, number) = word.split_once('=')?;
                Some((name.to_owned(), number.parse().ok()?))
            });
            Some((host.trim().to_owned(), numbers.collect()))
        };
        let hosts = recap.lines().filter_map(row).collect();
        Self { run, hosts }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.run.code, Some(code), "{}", self.run.transcript());
        self
    }

    /// A number of the recap; a host that did nothing is not in it.
    #[track_caller]
    pub fn count(&self, host: &str, name: &str) -> u32 {
        let row = self.hosts.get(host);
        row.and_then(|row| row.get(name)).copied().unwrap_or(0)
    }

    #[track_caller]
    pub fn counts(&self, host: &str, expected: &[(&str, u32)]) {
        for (name, number) in expected {
            let found = self.count(host, name);
            assert_eq!(
                found,
                *number,
                "{name} of {host}\n{}",
                self.run.transcript()
            );
        }
    }

    #[track_caller]
    pub fn prints(&self, texts: &[&str]) {
        for text in texts {
            assert!(
                self.run.out.contains(text),
                "no {text:?}\n{}",
                self.run.transcript()
            );
        }
    }
}

/// The variables of the playbook for a node: the program, and the command that reloads the driver.
pub fn upgrading(script: &str) -> Value {
    json!({
        "netfix_executable": BINARY,
        "netfix_control": BINARY,
        "netfix_argv": [script],
        "netfix_settle": "0s",
        "netfix_wait": "20s",
        "netfix_wave_pause": 0,
    })
}

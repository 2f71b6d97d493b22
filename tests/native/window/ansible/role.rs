//! The role: netfix from a Debian package, from the archive and from the program alone.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::control::Control;
use crate::common::machine::Machine;
use crate::common::run::BINARY;
use crate::common::{Node, tool};

/// What this machine and the node's machine share, and the role writes: here the node gets its own.
const OWN: &str = "set -e
mkdir /run/own
mount -t tmpfs own /run/own
for folder in /usr/bin /etc/default /var/cache; do
    mkdir -p /run/own$folder/upper /run/own$folder/work
    mount -t overlay -o lowerdir=$folder,upperdir=/run/own$folder/upper,workdir=/run/own$folder/work overlay $folder
done
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
touch /var/lib/dpkg/status /var/lib/dpkg/available
mkdir -p /run/systemd/system/netfix-snapshot.service.d
cat >/run/systemd/system/netfix-snapshot.service.d/test.conf <<END
[Service]
# /dev of the machine consists of single mounts, with which systemd builds no other root.
PrivateMounts=no
ProtectSystem=no
ProtectHome=no
ProtectKernelTunables=no
ProtectKernelModules=no
ProtectKernelLogs=no
ProtectControlGroups=no
ProtectProc=default
ProtectClock=no
ProtectHostname=no
PrivateDevices=no
END
systemctl daemon-reload";

const TIMERS: [&str; 3] = [
    "netfix-snapshot.timer",
    "netfix-check.timer",
    "netfix-rehearsal.timer",
];

fn machine(node: &Node) -> Machine {
    let machine = Machine::with_systemd(node);
    tool::run(machine.exec("sh").args(["-c", OWN]));
    machine
}

/// The files of a package, as scripts/package lays them out.
fn tree(control: &Control) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tree = control.path("tree");
    let put = |from: &Path, to: &str, mode: &str| {
        let words = ["-D", "-m", mode];
        tool::run(tool::command("install", words).arg(from).arg(tree.join(to)));
    };
    put(Path::new(BINARY), "usr/bin/netfix", "755");
    for unit in fs::read_dir(root.join("contrib/systemd"))
        .expect("the units")
        .flatten()
    {
        let name = unit.file_name().into_string().expect("a name");
        put(
            &unit.path(),
            &format!("usr/lib/systemd/system/{name}"),
            "644",
        );
    }
    put(
        &root.join("contrib/packaging/default"),
        "etc/default/netfix",
        "644",
    );
    tree
}

fn debian_package(control: &Control) -> PathBuf {
    let tree = tree(control);
    fs::create_dir(tree.join("DEBIAN")).expect("a folder");
    let about = "Package: netfix\nVersion: 0.1.0\nArchitecture: amd64\nMaintainer: test <test@localhost>\nDescription: test\n";
    fs::write(tree.join("DEBIAN/control"), about).expect("a file");
    fs::write(tree.join("DEBIAN/conffiles"), "/etc/default/netfix\n").expect("a file");
    let file = control.path("netfix_0.1.0_amd64.deb");
    let words = ["--root-owner-group", "-Znone", "-b"];
    tool::run(tool::command("dpkg-deb", words).arg(&tree).arg(&file));
    fs::remove_dir_all(tree.join("DEBIAN")).expect("a folder");
    file
}

fn archive(control: &Control) -> PathBuf {
    let file = control.path("netfix-0.1.0-x86_64-linux.tar.gz");
    let mut tar = tool::command("tar", ["-czf"]);
    tar.arg(&file).arg("-C").arg(control.path("tree"));
    tool::run(tar.args(["--transform", "s,^\\.,netfix-0.1.0,", "."]));
    file
}

/// A playbook that applies the role.
fn playbook(control: &Control) -> PathBuf {
    let plays = json!([{"hosts": "all", "gather_facts": false, "roles": ["netfix.node.netfix"]}]);
    let file = control.path("role.yml");
    fs::write(&file, plays.to_string()).expect("a playbook");
    file
}

/// A node for each kind of package. `NETFIX_ANSIBLE=all` tests all kinds.
fn kinds(control: &Control) -> Vec<(&'static str, PathBuf)> {
    let package = ("deb", debian_package(control));
    if std::env::var_os("NETFIX_ANSIBLE").is_none() {
        return vec![package];
    }
    let archive = ("archive", archive(control));
    vec![package, archive, ("program", PathBuf::from(BINARY))]
}

#[test]
fn the_role_installs_a_package_once_and_check_mode_installs_nothing() {
    let mut control = Control::new();
    let kinds = kinds(&control);
    let nodes: Vec<Node> = kinds.iter().map(|_| Node::new()).collect();
    let machines: Vec<Machine> = nodes.iter().map(machine).collect();
    for (((name, package), node), machine) in kinds.iter().zip(&nodes).zip(&machines) {
        let options = json!({
            "netfix_package": package,
            "netfix_options": {"NETFIX_CHECK_OPTIONS": "--max-age 3h", "NETFIX_RUNTIME": "none"},
        });
        control.add(name, node, machine, &options);
    }
    let file = playbook(&control);

    let played = control.play(&file, &["--check"]).exits(0);
    for ((name, _), machine) in kinds.iter().zip(&machines) {
        assert_ne!(played.count(name, "changed"), 0);
        let left = "! ls -d /usr/bin/netfix /etc/default/netfix /var/cache/netfix /etc/systemd/system/netfix* \
            /usr/lib/systemd/system/netfix* 2>/dev/null | grep .";
        tool::run(machine.exec("sh").args(["-c", left]));
    }

    control.play(&file, &[]).exits(0);
    for machine in &machines {
        assert_installed(machine);
    }

    let played = control.play(&file, &[]).exits(0);
    for (name, _) in &kinds {
        played.counts(name, &[("changed", 0), ("failed", 0)]);
    }
}

fn assert_installed(machine: &Machine) {
    tool::run(machine.exec("/usr/bin/netfix").arg("--version"));
    let options = tool::run(machine.exec("cat").arg("/etc/default/netfix"));
    let line = "\nNETFIX_CHECK_OPTIONS=--max-age 3h\n";
    assert!(options.contains(line), "{options}");
    for timer in TIMERS {
        let state = ["UnitFileState", "ActiveState"].map(|property| machine.unit(timer, property));
        assert_eq!(state, ["enabled", "active"]);
    }
    let first = ["-e", "/var/lib/netfix/node.json"];
    tool::run(machine.exec("test").args(first));
}

//! Names of processes and mounts are bytes to the kernel: one that is not UTF-8 hides no pod, and stops nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};
use std::time::Duration;

use crate::common::background::wait_until;
use crate::common::{Node, Run, tool};

/// `büro` in Latin-1.
const NAME: &[u8] = b"b\xfcro";

/// A process with this name, alone in a network namespace that is mounted nowhere.
struct Holder(Child);

impl Holder {
    fn start(node: &Node) -> Self {
        let program = node.temp().join(OsStr::from_bytes(NAME));
        tool::copy_program("/bin/sleep", &program);
        let mut command = Command::new("unshare");
        let child = command.arg("--net").arg(program).arg("600").spawn();
        let holder = Self(child.expect("unshare starts"));
        let comm = format!("/proc/{}/comm", holder.0.id());
        let runs = || std::fs::read(&comm).is_ok_and(|comm| comm.starts_with(NAME));
        assert!(wait_until(Duration::from_secs(5), runs), "no process");
        holder
    }

    /// Runs ip(8) in the namespace.
    fn ip(&self, words: &str) -> String {
        let mut command = tool::command("nsenter", ["--net", "--target"]);
        command.arg(self.0.id().to_string()).arg("ip");
        tool::run(command.args(words.split_whitespace()))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_pod_that_only_a_process_with_such_a_name_holds_is_restored() {
    let node = Node::new();
    let holder = Holder::start(&node);
    let pid = holder.0.id();
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {pid} type macvlan mode bridge"
    ));
    holder.ip("link set new0 name eth0 up");
    holder.ip("addr add 10.88.4.4/16 dev eth0");
    let show = || holder.ip("-o address show dev eth0 scope global");
    let before = show();
    let netfix = |words: &str| node.netfix(&format!("{words} --netns /proc/{pid}/ns/net"));
    netfix("snapshot").exits(0).stdout_has(&["1 pod saved"]);
    node.lose_and_reload();
    netfix("restore --wait 10s")
        .exits(0)
        .stdout_has(&["1 pod restored"]);
    assert_eq!(show(), before);
}

#[test]
fn a_mount_point_with_such_a_name_stops_nothing() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let before = pod.capture();
    let folder = node.temp().join(OsStr::from_bytes(NAME));
    let script = "mkdir -p \"$0\" && mount -t tmpfs none \"$0\" && exec \"$@\"";
    let inside = |words: &str| {
        let mut command = node.ns.exec("unshare");
        let netfix = node.netfix_command(&[], words);
        command.args(["--mount", "sh", "-c", script]).arg(&folder);
        command.arg(netfix.get_program()).args(netfix.get_args());
        command.env("NETFIX_RUNTIME", "none").env("NO_COLOR", "1");
        Run::of(&mut command)
    };
    inside("snapshot").exits(0);
    node.lose_and_reload();
    inside("restore --wait 10s").exits(0);
    inside("check").exits(0);
    pod.assert_same_as(&before);
}

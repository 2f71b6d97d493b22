//! Names of processes and mounts are bytes to the kernel: one that is not UTF-8 hides no pod, and stops nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::common::alone::Alone;
use crate::common::{Node, Run, tool};

/// `büro` in Latin-1.
const NAME: &[u8] = b"b\xfcro";

#[test]
fn a_pod_that_only_a_process_with_such_a_name_holds_is_restored() {
    let node = Node::new();
    let program = node.temp().join(OsStr::from_bytes(NAME));
    tool::copy_program("/bin/sleep", &program);
    let mut command = Command::new("unshare");
    let holder = Alone::named(command.arg("--net").arg(program).arg("600"), NAME);
    let pid = holder.id();
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {pid} type macvlan mode bridge"
    ));
    holder.ip("link set new0 name eth0 up");
    holder.ip("addr add 10.88.4.4/16 dev eth0");
    let show = || holder.ip("-o address show dev eth0 scope global");
    let before = show();
    let netfix = |words: &str| node.netfix(&format!("{words} --netns {}", holder.path()));
    netfix("snapshot")
        .exits(0)
        .stdout_has(&["1 selected pod saved"]);
    node.lose_and_reload();
    netfix("restore --nic-wait 10s")
        .exits(0)
        .stdout_has(&["1 selected pod restored"]);
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
    inside("restore --nic-wait 10s").exits(0);
    inside("check").exits(0);
    pod.assert_same_as(&before);
}

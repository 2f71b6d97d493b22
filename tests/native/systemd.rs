//! Checks the machine with systemd that other tests use.

use std::fs;

use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::systemd::{ADMINISTRATOR, PACKAGES};
use crate::common::{Node, tool};

#[test]
fn units_of_packages_and_of_the_administrator_start_and_only_some_can_be_masked() {
    let node = Node::new();
    let machine = Machine::with_systemd(&node);
    for (folder, is_masked) in [(PACKAGES, true), (ADMINISTRATOR, false)] {
        machine.start_kubelet(folder);
        assert_eq!(
            machine.unit("kubelet.service", "ActiveState"),
            "active",
            "{}",
            machine.systemd_state()
        );
        machine.systemctl("stop kubelet.service").expect("a stop");
        assert_eq!(machine.unit("kubelet.service", "ActiveState"), "inactive");
        machine
            .systemctl("mask --runtime kubelet.service")
            .expect("a mask");
        assert_eq!(
            machine.unit("kubelet.service", "LoadState") == "masked",
            is_masked,
            "{folder}"
        );
        machine
            .systemctl("unmask --runtime kubelet.service")
            .expect("no mask");
    }
}

#[test]
fn dbus_timers_and_the_journal_work() {
    let node = Node::new();
    let machine = Machine::with_systemd(&node);
    let name = [
        "--system",
        "get-property",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
    ];
    let version = ["org.freedesktop.systemd1.Manager", "Version"];
    let reported = tool::run(machine.exec("busctl").args(name).args(version));
    assert!(reported.starts_with("s \""), "{reported}");
    let timer = [
        "--on-active=100ms",
        "--timer-property=AccuracySec=1ms",
        "echo",
        "word of a timer",
    ];
    tool::run(machine.exec("systemd-run").args(timer));
    let journal = || {
        tool::run(
            machine
                .exec("journalctl")
                .args(["--no-pager", "--output=cat"]),
        )
    };
    let heard = || journal().lines().any(|line| line == "word of a timer");
    assert!(wait_until(heard), "{}", journal());
}

#[test]
fn the_machine_ends_with_the_test_and_leaves_nothing() {
    let node = Node::new();
    let machine = Machine::with_systemd(&node);
    machine.start_kubelet(PACKAGES);
    let inside = fs::read_link(format!("/proc/{}/ns/pid", machine.init())).expect("its namespace");
    let living = || {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter(|entry| fs::read_link(entry.path().join("ns/pid")).is_ok_and(|ns| ns == inside))
            .count()
    };
    assert!(living() >= 3, "systemd, the journal and kubelet at least");
    drop(machine);
    assert_eq!(living(), 0, "a process is left");
    let listed = "mount -t cgroup2 none /sys/fs/cgroup && ls /sys/fs/cgroup";
    let cgroups = tool::run(&mut tool::command(
        "unshare",
        ["--mount", "sh", "-c", listed],
    ));
    assert!(
        !cgroups.contains(node.ns.name()),
        "a cgroup is left: {cgroups}"
    );
}

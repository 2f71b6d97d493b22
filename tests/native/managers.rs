//! Network managers of the host: netfix lets them go first, and one that hangs costs little time.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::window::beside::Beside;
use crate::common::background::{wait_until, wait_until_it_waits};
use crate::common::machine::Machine;
use crate::common::{Node, Pod, Run, tool};

/// A machine with the node's pods, which are saved.
fn machine_with<'a>(node: &'a Node, pods: &[Pod<'a>]) -> Machine {
    let machine = Machine::with_systemd(node);
    for pod in pods {
        machine.adopt(&pod.ns);
    }
    machine
}

fn netfix(node: &Node, machine: &Machine, words: &str) -> Run {
    Run::inside(machine, &node.state_dir(), words)
}

/// Starts networkd, which gives the NIC its address.
fn start_networkd(machine: &Machine) {
    let settings = "/etc/systemd/system/systemd-networkd.service.d";
    tool::run(
        machine
            .exec("mkdir")
            .args(["-p", "/run/systemd/network", settings]),
    );
    // By this networkd knows that there is no udev to wait for.
    machine.put(
        &format!("{settings}/no-udev.conf"),
        "[Service]\nReadOnlyPaths=/sys\n",
    );
    let reloaded = machine.systemctl("daemon-reload");
    reloaded.unwrap_or_else(|e| panic!("{e}"));
    machine.put(
        "/run/systemd/network/10-nic.network",
        "[Match]\nName=eth0\n[Network]\nAddress=10.88.0.2/16\nGateway=10.88.0.1\nIPv6AcceptRA=no\n",
    );
    let started = machine.systemctl("start systemd-networkd.service");
    started.unwrap_or_else(|e| panic!("{e}\n{}", machine.systemd_state()));
    assert!(
        wait_until(|| is_configured(machine, "eth0")),
        "networkd did not configure eth0: {}",
        tool::run(machine.exec("networkctl").args(["status", "eth0"]))
    );
}

/// A machine with the node's pods and networkd, and a snapshot of it.
fn saved_beside_networkd<'a>(node: &'a Node, pods: &[Pod<'a>]) -> Machine {
    let machine = machine_with(node, pods);
    start_networkd(&machine);
    netfix(node, &machine, "snapshot --runtime none").exits(0);
    machine
}

/// Loses and reloads the NIC beside a networkd that is stopped; returns its process.
fn lose_beside_stopped(node: &Node, machine: &Machine) -> u32 {
    let networkd = networkd(machine);
    assert!(machine.signal(networkd, Signal::SIGSTOP), "no signal");
    node.lose_and_reload();
    networkd
}

/// networkd gave the NIC its address, not netfix.
fn assert_networkd_went_first(run: &Run) {
    assert!(
        !run.out.contains("10.88.0.2/16"),
        "networkd did not go first\n{}",
        run.transcript()
    );
}

fn is_configured(machine: &Machine, device: &str) -> bool {
    let list = ["list", "--no-legend", "--no-pager", device];
    tool::run(machine.exec("networkctl").args(list)).contains(" configured")
}

/// networkd's process.
fn networkd(machine: &Machine) -> u32 {
    let process = machine.unit("systemd-networkd.service", "MainPID");
    process.parse().expect("a process id")
}

/// A restore beside a networkd that is stopped until `meanwhile` has run; netfix is the last words of another command.
fn restore_beside(
    node: &Node,
    machine: &Machine,
    networkd: u32,
    wrapper: &[&str],
    meanwhile: impl FnOnce(&Beside),
) -> Run {
    let words = "restore --runtime none -v --manager-wait 20s";
    let command = Run::command(machine, wrapper, &node.state_dir(), words);
    let mut restore = Beside::start_in(&node.temp(), command);
    meanwhile(&restore);
    assert!(!restore.has_ended(), "netfix did not wait");
    assert!(machine.signal(networkd, Signal::SIGCONT), "no signal");
    restore.finish()
}

/// netfix waits for networkd.
fn until_it_waits(restore: &Beside) {
    restore.wait_for("waiting up to");
}

#[test]
fn a_bus_that_hangs_costs_little_time_and_is_reported() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    let machine = machine_with(&node, &pods);
    netfix(&node, &machine, "snapshot --runtime none").exits(0);
    tool::run(machine.exec("mkdir").arg("/run/NetworkManager"));
    tool::run(machine.exec("busctl").arg("list"));
    let bus = machine.unit("dbus.service", "MainPID");
    let bus = bus.parse().expect("a process id");
    node.lose_and_reload();
    assert!(machine.signal(bus, Signal::SIGSTOP), "no signal");
    let start = Instant::now();
    let run = netfix(&node, &machine, "restore --runtime none");
    let took = start.elapsed();
    assert!(machine.signal(bus, Signal::SIGCONT), "no signal");
    run.exits(0).warnings(&[("manager-unreachable", "")]).names(
        "manager-unreachable",
        "",
        &["D-Bus"],
    );
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    before.assert_same(&pods[0].capture(), pods[0].name());
}

#[test]
fn networkd_configures_the_nic_first_and_what_it_does_not_know_is_named() {
    let node = Node::without_addresses();
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    let machine = machine_with(&node, &pods);
    start_networkd(&machine);
    node.ns.ip("addr add 172.30.0.2/24 dev eth0");
    netfix(&node, &machine, "snapshot --runtime none").exits(0);
    let networkd = lose_beside_stopped(&node, &machine);
    // With a mount namespace of its own, as by `PrivateMounts=` in the units of the packages.
    let wrapper = ["unshare", "--mount"];
    let run = restore_beside(&node, &machine, networkd, &wrapper, until_it_waits);
    let run = run
        .exits(0)
        .stderr_has(&["waiting up to 20 s for systemd-networkd to bring back eth0"])
        .warnings(&[("managed-link", "")])
        .names("managed-link", "", &["172.30.0.2/24", "systemd-networkd"]);
    assert_networkd_went_first(&run);
    let addresses = node.ns.ip("-4 -o addr show dev eth0");
    for address in ["10.88.0.2/16", "172.30.0.2/24"] {
        assert_eq!(addresses.matches(address).count(), 1, "{addresses}");
    }
    assert!(is_configured(&machine, "eth0"));
    before.assert_same(&pods[0].capture(), pods[0].name());
}

/// networkd adds addresses only where there is carrier, which a NIC can have later than the manager's time is long.
#[test]
fn the_time_of_an_owner_begins_with_the_carrier_of_the_nic() {
    let node = Node::without_addresses();
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    let machine = saved_beside_networkd(&node, &pods);
    node.lose();
    let state_dir = node.state_dir();
    let words = "restore --runtime none -v --nic-wait 60s --manager-wait 10s";
    let run = thread::scope(|scope| {
        let restore = scope.spawn(|| Run::inside(&machine, &state_dir, words));
        wait_until_it_waits(&state_dir, &machine.root().join("proc"));
        node.reload_without_carrier();
        thread::sleep(Duration::from_secs(12));
        assert!(!restore.is_finished(), "netfix did not wait");
        node.give_carrier();
        restore.join().expect("netfix ends")
    });
    let run = run.exits(0).warnings(&[]);
    assert_networkd_went_first(&run);
    assert!(is_configured(&machine, "eth0"));
    before.assert_same(&pods[0].capture(), pods[0].name());
}

/// A manager that notices a loss of carrier late drops addresses that were there when the restore began.
#[test]
fn an_owner_that_drops_an_address_during_a_restore_brings_it_back_itself() {
    let node = Node::without_addresses();
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    let machine = saved_beside_networkd(&node, &pods);
    let networkd = lose_beside_stopped(&node, &machine);
    node.ns.ip("link set eth0 up");
    node.ns.ip("addr add 10.88.0.2/16 broadcast + dev eth0");
    node.ns
        .ip("route add default via 10.88.0.1 dev eth0 proto static");
    // netfix waits for udev, which has not finished with the new device.
    tool::run(machine.exec("mkdir").args(["-p", "/run/udev/data"]));
    machine.put("/run/udev/control", "");
    let run = restore_beside(&node, &machine, networkd, &[], |_| {
        wait_until_it_waits(&node.state_dir(), &machine.root().join("proc"));
        node.ns.ip("addr flush dev eth0");
        let index = node.ns.index_of("eth0");
        machine.put(&format!("/run/udev/data/n{index}"), "I:1\n");
        node.ns.ip("link set eth0 promisc on");
        node.ns.ip("link set eth0 promisc off");
        thread::sleep(Duration::from_secs(2));
    });
    let run = run
        .exits(0)
        .warnings(&[])
        .stderr_has(&["waiting up to 20 s for systemd-networkd to bring back eth0"]);
    assert_networkd_went_first(&run);
    let addresses = node.ns.ip("-4 -o addr show dev eth0");
    assert_eq!(addresses.matches("10.88.0.2/16").count(), 1, "{addresses}");
    before.assert_same(&pods[0].capture(), pods[0].name());
}

/// systemd stops `ifup@.service` of a device that vanishes, which runs `ifdown`; on a busy host it does so late.
#[test]
fn what_a_late_ifdown_takes_away_is_restored_again() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let (before, host) = (pods[0].capture(), node.capture());
    let machine = machine_with(&node, &pods);
    netfix(&node, &machine, "snapshot --runtime none").exits(0);
    tool::run(machine.exec("mkdir").arg("/run/network"));
    machine.put("/run/network/ifstate", "eth0=eth0\n");
    machine.put(
        "/run/systemd/system/ifup@.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n\
         ExecStop=/bin/sh -c 'sleep 6; ip -4 addr flush dev %i'\n",
    );
    machine.systemctl("daemon-reload").expect("a reload");
    machine
        .systemctl("start ifup@eth0.service")
        .expect("a start");
    machine
        .systemctl("stop --no-block ifup@eth0.service")
        .expect("a stop");
    let words = "restore --runtime none --watch 2s --manager-wait 30s";
    netfix(&node, &machine, words)
        .exits(0)
        .names("degraded", "", &["again"]);
    node.assert_same_as(&host);
    before.assert_same(&pods[0].capture(), pods[0].name());
}

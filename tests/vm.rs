//! Real drivers, VLANs and bonds: each scenario of `tests/vm/scenarios` in a virtual machine of its own, by `scripts/lab`.
//!
//! What is true of the network is judged there, by ip(8) and arping, never by netfix.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More side by side only slow each other down: a VM is two busy threads of software emulation.
static FREE_SLOTS: Mutex<usize> = Mutex::new(2);
static SLOT_FREED: Condvar = Condvar::new();

struct Slot;

impl Slot {
    fn take() -> Self {
        let mut free = lock();
        while *free == 0 {
            free = SLOT_FREED.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *lock() += 1;
        SLOT_FREED.notify_one();
    }
}

fn lock() -> MutexGuard<'static, usize> {
    FREE_SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(scenario: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let _slot = Slot::take();
    let result = Command::new(root.join("scripts/lab"))
        .arg("run")
        .arg(root.join(format!("tests/vm/scenarios/{scenario}.sh")))
        .env("NETFIX", env!("CARGO_BIN_EXE_netfix"))
        .env("LAB_TIMEOUT", "900")
        .stdin(Stdio::null())
        .output();
    let output = match result {
        Ok(output) => output,
        Err(error) => panic!("scripts/lab does not start: {error}"),
    };
    assert!(
        output.status.success(),
        "scenario {scenario}: {}\n{}{}\n(a missing lab is made by scripts/setup; alone: NETFIX={} scripts/lab run tests/vm/scenarios/{scenario}.sh)",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        env!("CARGO_BIN_EXE_netfix"),
    );
}

macro_rules! scenarios {
    ($($test:ident: $file:literal,)+) => {
        const SCENARIOS: &[&str] = &[$($file),+];
        $(#[test] fn $test() { run($file); })+
    };
}

scenarios! {
    vlan: "vlan",
    vlan_kinds: "vlan-kinds",
    macvlan_modes: "macvlan-modes",
    bond_port_lost: "bond-port-lost",
    bond_gone: "bond-gone",
    on_nic: "on-nic",
    on_bond: "on-bond",
    renamed: "renamed",
    link_local: "link-local",
    twice: "twice",
    nothing_lost: "nothing-lost",
    half_repaired: "half-repaired",
    ipvlan: "ipvlan",
    taken_index: "taken-index",
    nic_missing: "nic-missing",
    nic_late: "nic-late",
    vlan_id_taken: "vlan-id-taken",
    mac_taken: "mac-taken",
    cni_cache: "cni-cache",
    units: "units",
    docker: "docker",
    podman: "podman",
    containerd: "containerd",
    kubelet_rebuilds: "kubelet-rebuilds",
    window: "window",
    window_killed: "window-killed",
    window_killed_late: "window-killed-late",
    window_terminal: "window-terminal",
    window_fails: "window-fails",
    window_hold: "window-hold",
    window_late: "window-late",
    window_disk: "window-disk",
    window_clock: "window-clock",
    window_units: "window-units",
}

#[test]
fn every_scenario_file_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vm/scenarios");
    let files: BTreeSet<String> = match std::fs::read_dir(&folder) {
        Ok(entries) => entries
            .flatten()
            .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
            .collect(),
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    let run: BTreeSet<String> = SCENARIOS.iter().map(ToString::to_string).collect();
    assert_eq!(files, run);
}

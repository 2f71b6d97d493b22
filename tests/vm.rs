//! Real drivers, VLANs, bonds and container engines: scenarios of `tests/vm/scenarios` in virtual machines, by
//! `scripts/lab`; several scenarios run one after the other in one machine.
//!
//! There, ip(8) and arping check the network, never netfix. `cargo test --test vm [-- WORD…]` runs the scenarios whose
//! `BOOT::NAME.sh` contains a word.

#![allow(clippy::double_ended_iterator_last, reason = "a short list")]
#![allow(clippy::print_stdout, reason = "the results are for people")]

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// One virtual machine, and the scenarios that it runs in this order.
struct Boot {
    name: &'static str,
    scenarios: &'static [&'static str],
}

/// The longest first. All scenarios of one machine have the same line `# lab:`.
const BOOTS: [Boot; 21] = [
    Boot {
        name: "dockershim",
        scenarios: &[
            "dockershim",
            "guard-dockershim",
            "dockershim-fates",
            "dockershim-bond",
        ],
    },
    Boot {
        name: "losses-dockershim",
        scenarios: &["guard-losses-dockershim"],
    },
    Boot {
        name: "losses-containerd",
        scenarios: &["guard-losses-containerd"],
    },
    Boot {
        name: "managers",
        scenarios: &["ifupdown", "network-manager", "network-manager-bond"],
    },
    Boot {
        name: "networkd",
        scenarios: &["udev", "networkd", "networkd-bond"],
    },
    Boot {
        name: "kubernetes",
        scenarios: &["window"],
    },
    Boot {
        name: "daemonset",
        scenarios: &["daemonset"],
    },
    Boot {
        name: "reset",
        scenarios: &["dockershim-reset"],
    },
    Boot {
        name: "unattended",
        scenarios: &["unattended"],
    },
    Boot {
        name: "ansible",
        scenarios: &["ansible"],
    },
    Boot {
        name: "links",
        scenarios: &[
            "vlan",
            "vlan-kinds",
            "vlan-id-taken",
            "half-repaired",
            "renamed",
            "nic-held",
            "router",
            "radvd",
            "host-alone",
            "pod-kinds",
            "cni-cache",
            "cni-plugins",
            "neighbour-table",
            "qdiscs",
            "bridges",
            "bridge-plain",
            "ovs",
            "flannel",
            "tunnels",
            "nft-chains",
        ],
    },
    Boot {
        name: "guard",
        scenarios: &["guard"],
    },
    Boot {
        name: "guard-unit",
        scenarios: &[
            "guard-networkd",
            "guard-network-manager",
            "guard-ifupdown",
            "guard-bond",
        ],
    },
    Boot {
        name: "nic",
        scenarios: &[
            "nic-settings",
            "nic-index",
            "nic-bond",
            "sriov",
            "sriov-macvlan",
            "sriov-risk",
            "guard-vf",
        ],
    },
    Boot {
        name: "linux-5.10",
        scenarios: &["nic-index-old"],
    },
    Boot {
        name: "netdevsim",
        scenarios: &["nic-refused", "nic-devlink"],
    },
    Boot {
        name: "netdevsim-udev",
        scenarios: &["nic-renamed"],
    },
    Boot {
        name: "nic-owners",
        scenarios: &["nic-owners", "nic-network-manager", "sriov-owners"],
    },
    Boot {
        name: "engines",
        scenarios: &["docker", "podman"],
    },
    Boot {
        name: "systemd",
        scenarios: &["window-clock", "package", "units"],
    },
    Boot {
        name: "bonds",
        scenarios: &[
            "bond-port-lost",
            "bond-gone",
            "on-bond",
            "immune",
            "nic-index-drivers",
            "nic-index-ports",
            "native",
            "roundtrip",
        ],
    },
];

/// A machine emulates two processors; more machines at once only slow each other down.
const MACHINES: usize = 2;
/// The time limit of one machine.
const LIMIT_SECONDS: &str = "3600";

/// What the machines share.
struct Work {
    boots: Mutex<Vec<(&'static str, Vec<&'static str>)>>,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    passed: usize,
    /// The failed scenarios, each with its output.
    failed: Vec<(String, String)>,
}

impl Results {
    fn add(&mut self, name: String, seconds: &str, failure: Option<String>) {
        let word = if failure.is_none() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} <{seconds}s>");
        match failure {
            None => self.passed += 1,
            Some(text) => self.failed.push((name, text)),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let since = Instant::now();
    let boots = chosen(&words);
    let all: usize = BOOTS.iter().map(|boot| boot.scenarios.len()).sum();
    let count: usize = boots.iter().map(|(_, scenarios)| scenarios.len()).sum();
    println!("\nrunning {count} scenarios in {} machines", boots.len());
    let work = Work {
        boots: Mutex::new(boots),
        results: Mutex::default(),
    };
    files_are_run(&work);
    let native = native_tests(&work);
    std::thread::scope(|scope| {
        for _ in 0..MACHINES {
            scope.spawn(|| work.carry_out(&native));
        }
    });
    let results = lock(&work.results);
    for (name, text) in &results.failed {
        println!("\n---- {name} ----\n{text}");
    }
    let (passed, failed) = (results.passed, results.failed.len());
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        all - count,
        since.elapsed().as_secs_f64(),
    );
    ExitCode::from(if failed == 0 { 0 } else { 101 })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The machines to boot, the last one first, each with the scenarios that match a word.
fn chosen(words: &[String]) -> Vec<(&'static str, Vec<&'static str>)> {
    let is_chosen = |boot: &Boot, scenario: &str| {
        let name = format!("{}::{scenario}.sh", boot.name);
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    };
    let scenarios = |boot: &'static Boot| {
        let chosen = boot.scenarios.iter().copied();
        let chosen: Vec<_> = chosen
            .filter(|scenario| is_chosen(boot, scenario))
            .collect();
        (boot.name, chosen)
    };
    let boots = BOOTS.iter().rev().map(scenarios);
    boots
        .filter(|(_, scenarios)| !scenarios.is_empty())
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file_of(scenario: &str) -> PathBuf {
    root().join(format!("tests/vm/scenarios/{scenario}.sh"))
}

/// A scenario that no machine runs is an error.
fn files_are_run(work: &Work) {
    let entries = std::fs::read_dir(root().join("tests/vm/scenarios"));
    let files: BTreeSet<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let run = BOOTS.iter().flat_map(|boot| boot.scenarios);
    let run: BTreeSet<PathBuf> = run.map(|scenario| file_of(scenario)).collect();
    let differ: Vec<_> = files.symmetric_difference(&run).collect();
    if !differ.is_empty() {
        let text = format!("in tests/vm/scenarios or in tests/vm.rs, not in both: {differ:?}");
        lock(&work.results).add("every_scenario_is_run".to_owned(), "0", Some(text));
    }
}

/// The current binary of `tests/native`. To build netfix anew for it is an error: other tests run the netfix that it replaces.
fn native_tests(work: &Work) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "test", "--locked", "--quiet", "--no-run", "--test", "native",
    ]);
    // Other features would build everything anew.
    for (feature, is_on) in [
        ("failpoints", cfg!(feature = "failpoints")),
        ("fuzzing", cfg!(feature = "fuzzing")),
    ] {
        if is_on {
            cargo.args(["--features", feature]);
        }
    }
    cargo
        .args(["--message-format", "json"])
        .current_dir(root())
        .stderr(Stdio::inherit());
    let text = cargo.output().map(|output| output.stdout);
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    let messages: Vec<_> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .collect();
    let is_new = |message: &serde_json::Value| {
        message["executable"] == env!("CARGO_BIN_EXE_netfix") && message["fresh"] != true
    };
    if messages.iter().any(is_new) {
        let text = "cargo has built netfix anew for a test that runs cargo".to_owned();
        lock(&work.results).add("netfix_is_built_once".to_owned(), "0", Some(text));
    }
    let mut binaries = messages.iter().rev();
    let binary = binaries.find(|message| message["target"]["name"] == "native");
    let path = binary.and_then(|message| message["executable"].as_str());
    // If it is empty, the scenario that runs it fails.
    path.unwrap_or_default().to_owned()
}

impl Work {
    /// Runs machines one after the other until none is left.
    fn carry_out(&self, native: &str) {
        loop {
            let boot = lock(&self.boots).pop();
            let Some((name, scenarios)) = boot else {
                return;
            };
            self.boot(name, &scenarios, native);
        }
    }

    fn boot(&self, boot: &str, scenarios: &[&str], native: &str) {
        let since = Instant::now();
        let mut left = scenarios.iter();
        let mut text = String::new();
        let end = start(scenarios, native).and_then(|(mut lab, output)| {
            for line in BufReader::new(output).lines() {
                let line = line?;
                text.push_str(&line);
                text.push('\n');
                if let Some((scenario, code, seconds)) = result(&line)
                    && left.clone().next() == Some(&scenario)
                {
                    left.next();
                    let text = std::mem::take(&mut text);
                    let failure = (code != "0").then_some(text);
                    lock(&self.results).add(format!("{boot}::{scenario}"), seconds, failure);
                }
            }
            lab.wait()
        });
        let is_success = end.as_ref().is_ok_and(std::process::ExitStatus::success);
        let seconds = since.elapsed().as_secs().to_string();
        // A single scenario has no line of its own; scenarios after the end of the machine did not run.
        for scenario in left {
            let is_good = is_success && scenarios.len() == 1;
            let failure = (!is_good).then(|| format!("{text}scripts/lab: {end:?}"));
            lock(&self.results).add(format!("{boot}::{scenario}"), &seconds, failure);
        }
    }
}

/// Runs `scripts/lab` with these scenarios, and returns its output.
fn start(scenarios: &[&str], native: &str) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    // No machine outlives the test, even when that is killed.
    let lab = Command::new("setpriv")
        .args(["--pdeathsig", "TERM"])
        .arg(root().join("scripts/lab"))
        .arg("run")
        .args(scenarios.iter().map(|scenario| file_of(scenario)))
        .env("NETFIX", env!("CARGO_BIN_EXE_netfix"))
        .env("NATIVE_TESTS", native)
        .env("LAB_TIMEOUT", LIMIT_SECONDS)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    Ok((lab, reader))
}

/// Scenario, exit code and seconds, as `scripts/lab-guest` prints them after each.
fn result(line: &str) -> Option<(&str, &str, &str)> {
    let (scenario, rest) = line.strip_prefix("lab: ")?.split_once(".sh: exit code ")?;
    let (code, rest) = rest.split_once(" after ")?;
    Some((scenario, code, rest.strip_suffix(" s")?))
}

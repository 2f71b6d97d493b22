//! Random namespaces: snapshot, a loss, restore; afterwards nothing differs, or the snapshot named it.
//!
//! `NETFIX_CASES=1000 NETFIX_SEED=7 cargo test --features failpoints,fuzzing --test native roundtrip` runs other ones, and more.
//! A case that fails is made smaller and printed: it belongs into `testdata/roundtrip`.

mod decided;
#[path = "../../common/numbers.rs"]
mod numbers;
mod random;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::common::{Node, Pod};

/// Lines for ip(8) in a pod; the kernel may refuse some. `sysctl KEY VALUE` writes below `/proc/sys/net`, and `tc` is a line
/// for tc(8).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What `eth0` is, as ip(8) has it; a macvlan where it is empty, or the kernel lacks the kind.
    #[serde(default)]
    kind: String,
    /// The link of the node below the pod: a VLAN, a bond, or a VLAN on a bond; `eth0` where it is empty, or the kernel lacks it.
    #[serde(default)]
    parent: String,
    /// Whether the pod has a second macvlan `eth1`.
    #[serde(default)]
    second: bool,
    /// What the pod gets, after an `eth0` that is down.
    lines: Vec<String>,
    /// The loss.
    loss: Loss,
    /// What the pod suffers besides.
    harm: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Loss {
    /// The driver is reloaded.
    Nic,
    /// None: the pod keeps its link.
    None,
}

/// The result of a case.
enum Ending {
    /// Everything is as before, after so many lines that the kernel accepted.
    Equal(usize),
    /// Something differs, and the snapshot named an object that no restore could bring back.
    Named,
    /// Something differs.
    Different(String),
}

/// Returns how many lines the kernel accepted.
fn run_lines(pod: &Pod<'_>, lines: &[String]) -> usize {
    let (of_tc, others): (Vec<&str>, Vec<&str>) = lines
        .iter()
        .map(String::as_str)
        .partition(|line| line.starts_with("tc "));
    let (settings, of_ip): (Vec<&str>, Vec<&str>) = others
        .into_iter()
        .partition(|line| line.starts_with("sysctl "));
    let is_refused = |line: &&&str| {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let ["sysctl", key, value] = words[..] else {
            return false;
        };
        let path = Path::new("/proc/sys/net").join(key);
        pod.ns.enter(|| fs::write(path, value)).is_err()
    };
    // `ip maddr add` ends the batch that it is in.
    let (groups, of_ip): (Vec<&str>, Vec<&str>) = of_ip
        .into_iter()
        .partition(|line| line.starts_with("maddr "));
    let groups = groups.iter().map(|line| refused_by(pod, "ip", &[line]));
    let refused = refused_by(pod, "ip", &of_ip)
        + groups.sum::<usize>()
        + settings.iter().filter(is_refused).count();
    let of_tc: Vec<&str> = of_tc.iter().map(|line| &line["tc ".len()..]).collect();
    lines.len() - refused - refused_by(pod, "tc", &of_tc)
}

/// How many of the lines for ip(8) or tc(8) the kernel refuses.
fn refused_by(pod: &Pod<'_>, tool: &str, lines: &[&str]) -> usize {
    use std::io::Write as _;
    if lines.is_empty() {
        return 0;
    }
    let words = ["-n", pod.name(), "-force", "-batch", "-"];
    let mut tool = crate::common::tool::command(tool, words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the batch");
    let mut stdin = tool.stdin.take().expect("the input of the batch");
    let batch = lines.join("\n") + "\n";
    stdin.write_all(batch.as_bytes()).expect("the lines");
    drop(stdin);
    let ended = tool.wait_with_output().expect("the end of the batch");
    let errors = String::from_utf8_lossy(&ended.stderr);
    errors.matches("Command failed").count()
}

const BOND: &str = "bond4";

/// Makes the link of the node below the pod, and returns its name.
fn parent_of<'c>(node: &Node, case: &'c Case) -> &'c str {
    let parent = case.parent.as_str();
    let bond = "link add bond4 type bond mode active-backup miimon 100";
    let mut below = "eth0";
    if parent.starts_with(BOND) {
        if node.ns.try_ip(bond).is_err() {
            return below;
        }
        for line in [
            "addr flush dev eth0",
            "link set eth0 down",
            "link set eth0 master bond4",
            "link set bond4 up",
            "addr add 10.88.0.2/16 dev bond4",
        ] {
            node.ns.ip(line);
        }
        below = BOND;
    }
    if parent.ends_with(".3") {
        let vlan = format!("link add link {below} name {parent} type vlan id 3");
        if node.ns.try_ip(&vlan).is_err() {
            return below;
        }
        node.ns.ip(&format!("link set {parent} up"));
        below = parent;
    }
    below
}

/// A pod with the links of a case, which are down.
fn pod_of<'n>(node: &'n Node, case: &Case) -> Pod<'n> {
    let pod = node.pod("web");
    let name = pod.name().to_owned();
    let parent = parent_of(node, case);
    let add = |link: &str, kind: &str| {
        let added = node.ns.try_ip(&format!(
            "link add link {parent} name new0 netns {name} type {kind}"
        ));
        added
            .is_ok()
            .then(|| pod.ip(&format!("link set new0 name {link}")))
            .is_some()
    };
    if case.kind.is_empty() || !add("eth0", &case.kind) {
        assert!(add("eth0", "macvlan mode bridge"), "a macvlan on {parent}");
    }
    if case.second {
        // One link cannot be the parent of ipvlans and macvlans.
        let _ = add("eth1", "macvlan mode bridge");
    }
    pod
}

fn ending(case: &Case) -> Ending {
    let node = Node::new();
    let pod = pod_of(&node, case);
    let accepted = run_lines(&pod, &case.lines);
    let (host, before) = (node.capture(), pod.capture());
    let snapshot = node.netfix_json("snapshot");
    let is_named = snapshot.code == Some(5) && !snapshot.coded("unsupported").is_empty();
    if case.loss == Loss::Nic {
        // A bond without ports would keep what is on it.
        let _ = node.ns.try_ip("link del bond4");
        node.lose_and_reload();
    }
    let accepted = accepted + run_lines(&pod, &case.harm);
    let restore = node.netfix("restore");
    let mut lines = before.becomes(|| pod.capture());
    lines.extend(host.becomes(|| node.capture()));
    let diff = node.netfix("diff");
    if lines.is_empty() && restore.code == Some(0) && diff.code == Some(0) {
        return Ending::Equal(accepted);
    }
    if is_named {
        return Ending::Named;
    }
    let lines = lines.join("\n");
    let (snapshot, restore) = (snapshot.transcript(), restore.transcript());
    Ending::Different(format!(
        "{lines}\n{snapshot}\n{restore}\n{}",
        diff.transcript()
    ))
}

/// The case without each line that it does not need to fail.
fn smaller(mut case: Case) -> (Case, String) {
    let mut why = String::new();
    for part in [0, 1] {
        let mut at = 0;
        loop {
            let mut without = case.clone();
            let lines = if part == 0 {
                &mut without.lines
            } else {
                &mut without.harm
            };
            if at >= lines.len() {
                break;
            }
            lines.remove(at);
            if let Ending::Different(what) = ending(&without) {
                (case, why) = (without, what);
            } else {
                at += 1;
            }
        }
    }
    (case, why)
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn what_a_random_pod_loses_comes_back_or_was_named() {
    let (cases, seed) = (number("NETFIX_CASES", 12), number("NETFIX_SEED", 1));
    let counter = || AtomicUsize::new(0);
    let (equal, named, accepted) = (counter(), counter(), counter());
    let failures = std::sync::Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..number("NETFIX_THREADS", 3) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed) as u64
                    && at < cases
                {
                    let case = random::case(seed.wrapping_mul(0x1_0000_0001).wrapping_add(at));
                    match ending(&case) {
                        Ending::Equal(lines) => {
                            accepted.fetch_add(lines, Ordering::Relaxed);
                            equal.fetch_add(1, Ordering::Relaxed)
                        }
                        Ending::Named => named.fetch_add(1, Ordering::Relaxed),
                        Ending::Different(first) => {
                            // What is left may fail in another way.
                            let whole = serde_json::to_string_pretty(&case).expect("a case");
                            eprintln!("case {at} of seed {seed}, whole: {whole}\n{first}\n");
                            let (case, why) = smaller(case);
                            let json = serde_json::to_string_pretty(&case).expect("a case");
                            eprintln!("case {at} of seed {seed}: {json}\n{why}\n");
                            failures.lock().expect("the failures").push(at);
                            0
                        }
                    };
                }
            });
        }
    });
    let (equal, named) = (equal.into_inner(), named.into_inner());
    let accepted = accepted.into_inner();
    eprintln!("seed {seed}: {equal} equal ({accepted} lines), {named} named by the snapshot");
    let failures = failures.into_inner().expect("the failures");
    assert!(failures.is_empty(), "cases {failures:?} of seed {seed}");
    assert!(
        equal > named && accepted > 5 * equal,
        "{equal} equal, {named} named, {accepted} lines"
    );
}

#[test]
fn every_case_in_testdata_comes_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/roundtrip");
    let mut files: Vec<_> = fs::read_dir(&root)
        .expect("the cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).expect("a case");
        let case: Case = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Ending::Different(what) = ending(&case) {
            panic!("{}: {what}", file.display());
        }
    }
}

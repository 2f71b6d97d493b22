//! What `check` writes for monitoring: the status line of a plugin, and metrics.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::common::{Node, Pod, Run, tool};

#[test]
fn a_plugin_that_cannot_check_prints_one_line_and_is_unknown() {
    let node = Node::new();
    let unprivileged = ["setpriv", "--reuid", "4242", "--clear-groups"];
    for (wrapper, words) in [
        (&unprivileged[..], "check --nagios"),
        (&[], "check --nagios --no-such-option"),
        (&[], "check --nagios -o name"),
    ] {
        let run = Run::of(&mut node.netfix_command(wrapper, words)).exits(3);
        assert_eq!(run.out.lines().count(), 1, "{}", run.transcript());
        assert!(
            run.out.starts_with("NETFIX UNKNOWN - "),
            "{}",
            run.transcript()
        );
    }
}

/// The plugin's line of a node that is well.
fn the_line_says_that_all_is_well(node: &Node) {
    let run = node.netfix("check --nagios").exits(0);
    assert_eq!(run.out.lines().count(), 1, "{}", run.transcript());
    assert!(
        run.out
            .starts_with("NETFIX OK - 2 of 2 selected pods match a fresh checkpoint"),
        "{}",
        run.transcript()
    );
}

/// The plugin's line after a loss.
fn the_line_names_a_pod_and_has_performance_data(node: &Node, pods: &[Pod<'_>]) {
    let run = node.netfix("check --nagios").exits(2);
    let (text, data) = run
        .out
        .trim_end()
        .split_once(" | ")
        .expect("performance data");
    let names_one = pods.iter().any(|pod| text.contains(pod.name()));
    assert!(
        text.starts_with("NETFIX CRITICAL - ") && names_one,
        "{}",
        run.transcript()
    );
    assert!(
        data.split(' ').any(|item| item == "degraded=2;;0;0"),
        "{}",
        run.transcript()
    );
    for item in data.split(' ') {
        let (name, values) = item
            .split_once('=')
            .unwrap_or_else(|| panic!("{item} is no performance data"));
        let value = values
            .split(';')
            .next()
            .unwrap_or_default()
            .trim_end_matches('s');
        assert!(
            !name.is_empty() && value.parse::<u64>().is_ok(),
            "{item} is no performance data"
        );
    }
}

/// The samples of a metrics file: name with labels, and value.
fn samples(text: &str) -> Vec<(String, f64)> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line: &str| {
        let (name, value) = line
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("{line} is no sample"));
        (
            name.to_owned(),
            value
                .parse()
                .unwrap_or_else(|_| panic!("{line} has no value")),
        )
    };
    samples.map(split).collect()
}

fn sample(text: &str, name: &str) -> f64 {
    let found = samples(text).into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name} in\n{text}")).1
}

/// The metrics of a node that is well, in a new file.
#[expect(clippy::float_cmp, reason = "counts are whole numbers")]
fn the_metrics_say_that_all_is_well(file: &Path, text: &str) {
    assert_eq!(sample(text, "netfix_check_status"), 0.0);
    assert_eq!(sample(text, "netfix_pods{state=\"in-sync\"}"), 2.0);
    assert_eq!(sample(text, "netfix_drift_steps"), 0.0);
    assert!(sample(text, "netfix_checkpoint_oldest_age_seconds") < 60.0);
    // node_exporter runs as another user.
    assert_eq!(
        fs::metadata(file)
            .expect("the metrics")
            .permissions()
            .mode()
            & 0o777,
        0o644
    );
}

/// The metrics after a loss.
#[expect(clippy::float_cmp, reason = "counts are whole numbers")]
fn the_metrics_show_the_loss(text: &str) {
    assert_eq!(sample(text, "netfix_check_status"), 2.0);
    assert_eq!(sample(text, "netfix_pods{state=\"degraded\"}"), 2.0);
    assert_eq!(sample(text, "netfix_pods{state=\"in-sync\"}"), 0.0);
    assert_eq!(
        sample(
            text,
            "netfix_findings{code=\"degraded\",severity=\"error\"}"
        ),
        2.0,
        "the two pods: what took their links took the host's addresses, too, which is a warning"
    );
    assert!(sample(text, "netfix_drift_steps") >= 2.0);
}

fn nothing_is_left_beside_the_metrics(node: &Node) {
    let beside = fs::read_dir(node.temp()).expect("the folder").flatten();
    let left = beside
        .filter(|entry| entry.file_name().to_string_lossy().contains("netfix.prom"))
        .count();
    assert_eq!(left, 1, "something is left beside the metrics");
}

fn every_metric_has_a_help_text_and_a_type_of_its_own(text: &str) {
    for (name, _) in samples(text) {
        let family = name.split('{').next().unwrap_or_default();
        for kind in ["HELP", "TYPE"] {
            let count = text
                .lines()
                .filter(|line| line.starts_with(&format!("# {kind} {family} ")))
                .count();
            assert_eq!(count, 1, "{kind} of {family}\n{text}");
        }
    }
}

/// The values of the only label of a metric.
fn values<'a>(text: &'a str, metric: &str, label: &str) -> Vec<&'a str> {
    let start = format!("{metric}{{{label}=\"");
    text.lines()
        .filter_map(|line| line.strip_prefix(&start)?.split('"').next())
        .collect()
}

/// What is documented and drawn of the metrics.
struct Shown {
    document: String,
    dashboard: Value,
}

impl Shown {
    fn read() -> Self {
        let read = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            fs::read_to_string(path).expect(name)
        };
        let dashboard = read("contrib/grafana/dashboard.json");
        Self {
            document: read("docs/reference/metrics.md"),
            dashboard: serde_json::from_str(&dashboard).expect("JSON"),
        }
    }

    fn panel(&self, title: &str) -> &Value {
        let panels = self.dashboard["panels"].as_array().expect("panels");
        let panel = panels.iter().find(|panel| panel["title"] == title);
        panel.unwrap_or_else(|| panic!("no panel {title}"))
    }
}

/// A colour of its own for each state; what is lost has one, whatever the cause.
fn every_state_is_exported_documented_and_drawn(text: &str, shown: &Shown) {
    let states = values(text, "netfix_pods", "state");
    assert!(
        states.contains(&"new") && states.contains(&"in-sync"),
        "{text}"
    );
    let overrides = shown.panel("Pods by state")["fieldConfig"]["overrides"].as_array();
    let colours: Vec<(&str, String)> = overrides
        .expect("overrides")
        .iter()
        .filter_map(|one| {
            let properties = one["properties"].as_array()?;
            let colour = properties.iter().find(|one| one["id"] == "color")?;
            Some((
                one["matcher"]["options"].as_str()?,
                colour["value"].to_string(),
            ))
        })
        .collect();
    for state in states {
        let drawn = if state == "degraded" { "lost" } else { state };
        let of_state = colours.iter().filter(|(name, _)| *name == drawn);
        assert_eq!(of_state.count(), 1, "{state}: {colours:?}");
        assert!(shown.document.contains(&format!("`{state}`")), "{state}");
    }
    let different: BTreeSet<&String> = colours.iter().map(|(_, colour)| colour).collect();
    assert_eq!(different.len(), colours.len(), "{colours:?}");
}

/// Always, so that an alert ends with a zero.
fn every_cause_of_a_loss_is_exported_documented_and_drawn(text: &str, shown: &Shown) {
    let causes = values(text, "netfix_pods_lost", "cause");
    for cause in [
        "addresses",
        "default-route",
        "gateway-routes",
        "link-down",
        "link-gone",
        "link-replaced",
        "no-checkpoint",
    ] {
        assert!(causes.contains(&cause), "{cause}: {text}");
    }
    let query = &shown.panel("Lost pods by node and cause")["targets"][0]["expr"];
    let query = query.as_str().unwrap_or_default();
    assert!(
        query.contains("by (instance, cause) (netfix_pods_lost{instance=~\"$instance\"})"),
        "{query}"
    );
    for cause in causes {
        let name = format!("netfix_pods_lost{{cause=\"{cause}\"}}");
        assert!(samples(text).contains(&(name, 0.0)), "{cause}: {text}");
        assert!(shown.document.contains(&format!("`{cause}`")), "{cause}");
    }
}

#[test]
fn the_plugin_line_and_the_metrics_show_a_node_that_is_well_and_a_loss() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    the_line_says_that_all_is_well(&node);
    node.netfix_alone("snapshot").exits(0);
    let file = node.temp().join("netfix.prom");
    let check = format!("check -q --textfile {}", file.display());
    // As the units of systemd do.
    node.alone("umask 077", &check).exits(0);
    let text = fs::read_to_string(&file).expect("the metrics");
    the_metrics_say_that_all_is_well(&file, &text);
    every_metric_has_a_help_text_and_a_type_of_its_own(&text);
    let shown = Shown::read();
    every_state_is_exported_documented_and_drawn(&text, &shown);
    every_cause_of_a_loss_is_exported_documented_and_drawn(&text, &shown);
    node.lose_and_reload();
    the_line_names_a_pod_and_has_performance_data(&node, &pods);
    node.netfix_alone(&check).exits(2);
    let text = fs::read_to_string(&file).expect("the metrics");
    the_metrics_show_the_loss(&text);
    nothing_is_left_beside_the_metrics(&node);
}

/// The metrics of a node that is well.
fn metrics(node: &Node) -> String {
    let file = node.temp().join("netfix.prom");
    node.netfix_alone(&format!("check --textfile {}", file.display()))
        .exits(0);
    fs::read_to_string(&file).expect("the metrics")
}

#[test]
fn what_cannot_be_read_is_in_no_series_and_that_is_one() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    assert!(!metrics(&node).contains("netfix_unread{part=\"network\"} 1"));
    pods[1].ip("link set eth0 down");
    let file = node.temp().join("netfix.prom");
    let blind = |words: &str| {
        let script = "exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\"";
        Run::of(&mut node.script_alone("true", script, words))
    };
    blind(&format!("check --textfile {}", file.display())).exits(3);
    let text = fs::read_to_string(&file).expect("the metrics");
    for absent in [
        "netfix_pods",
        "netfix_drift_steps",
        "netfix_unsupported_objects",
    ] {
        assert!(!text.contains(&format!("\n{absent}")), "{absent}: {text}");
    }
    assert!(
        text.contains("\nnetfix_unread{part=\"network\"} 1\n"),
        "{text}"
    );
    let check = blind("check -o json").exits(3).json()["check"].clone();
    for counts in [&check["pods"], &check["lost"]] {
        let counts = counts.as_object().expect("counts");
        assert!(
            !counts.is_empty() && counts.values().all(Value::is_null),
            "{check:#}"
        );
    }
    assert!(
        check["steps"].is_null() && check["unsupported"].is_null(),
        "{check:#}"
    );
    let line = blind("check --nagios").exits(3).out;
    assert!(!line.contains("lost=") && !line.contains("pods="), "{line}");
}

#[test]
fn a_pod_whose_record_is_damaged_makes_no_cause_of_a_loss_zero() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.netfix_alone("snapshot").exits(0);
    pods[0].ip("link set eth0 down");
    fs::write(node.checkpoint_of(&pods[1]), "{").expect("a damaged checkpoint");
    fs::remove_dir_all(node.state_dir().join("generations")).expect("the generations");
    let file = node.temp().join("netfix.prom");
    node.netfix_alone(&format!("check --textfile {}", file.display()))
        .exits(2);
    let text = fs::read_to_string(&file).expect("the metrics");
    for line in [
        "netfix_pods_lost{cause=\"link-down\"} 1",
        "netfix_unread{part=\"network\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    assert_eq!(
        values(&text, "netfix_pods_lost", "cause"),
        ["link-down"],
        "{text}"
    );
}

#[test]
fn a_selection_never_writes_the_metrics_of_the_node_and_unwritable_ones_are_reported() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    let file = node.temp().join("netfix.prom");
    for selector in [
        pods[0].name().to_owned(),
        format!("--pod {}", pods[0].name()),
        format!("--netns /run/netns/{}", pods[0].name()),
    ] {
        let check = format!("check {selector} --textfile {}", file.display());
        node.netfix_alone(&check)
            .exits(2)
            .stderr_has(&["--textfile"]);
        let line = node.netfix_alone(&format!("{check} --nagios")).exits(3);
        line.stdout_has(&["NETFIX UNKNOWN - "]);
        assert!(!file.exists(), "{selector}");
    }
    node.netfix_alone("check --textfile /nowhere/at/all.prom")
        .exits(3)
        .errors(&[("unwritable", "")])
        .names("unwritable", "", &["/nowhere/at/all.prom", "No such file"]);
}

/// The lines of docs/check.md for a file.
fn documented(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/check.md");
    let text = fs::read_to_string(path).expect("docs/check.md");
    let lines = text.lines().skip_while(|line| *line != format!("# {file}"));
    let lines = lines
        .skip(1)
        .take_while(|line| !line.starts_with('#') && !line.starts_with("```"));
    lines.map(str::to_owned).collect()
}

/// Whether visudo(8) accepts a file of sudoers.
fn is_sudoers(node: &Node, text: &str) -> bool {
    let file = node.temp().join("sudoers");
    fs::write(&file, text).expect("a file");
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lab/sudo/usr");
    let visudo = unpacked.join("sbin/visudo");
    assert!(
        visudo.exists(),
        "{} is missing: run scripts/setup",
        visudo.display()
    );
    let mut command = tool::command(&visudo.display().to_string(), ["-c", "-f"]);
    command
        .arg(file)
        .env("LD_LIBRARY_PATH", unpacked.join("libexec/sudo"));
    tool::try_run(&mut command).is_ok()
}

#[test]
fn the_documented_lines_for_nrpe_and_sudo_fit_each_other_and_the_package() {
    let node = Node::new();
    let [sudoers, nrpe] =
        ["/etc/sudoers.d/netfix", "/etc/nagios/nrpe.d/netfix.cfg"].map(documented);
    let [(sudoers, nrpe)] = [(&*sudoers, &*nrpe)].map(|pair| match pair {
        ([sudoers], [nrpe]) => (sudoers.as_str(), nrpe.as_str()),
        other => panic!("one line each: {other:?}"),
    });
    assert!(is_sudoers(&node, &format!("{sudoers}\n")), "{sudoers}");
    let wrong = sudoers.replace("NOPASSWD", "NOPASSWORD");
    assert!(!is_sudoers(&node, &format!("{wrong}\n")), "{wrong}");
    // The agent may run what NRPE runs, and the packages install it there.
    let command = sudoers.split_once("NOPASSWD: ").expect("a command").1;
    assert_eq!(
        nrpe,
        format!("command[check_netfix]=/usr/bin/sudo -n {command}")
    );
    let package = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .expect("Cargo.toml");
    let program = command.split(' ').next().unwrap_or_default();
    assert!(
        package.contains(&format!("dest = \"{program}\"")),
        "{program}"
    );
    Run::of(&mut node.netfix_command(&[], command.split_once(' ').expect("arguments").1))
        .stdout_has(&["NETFIX "]);
}

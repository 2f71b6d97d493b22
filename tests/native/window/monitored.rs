//! The metrics in a real Prometheus, fed by `node_exporter`'s textfile collector: the alerts and the dashboard of `contrib`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::scene::{Scene, hasty};
use crate::common::background::{Background, wait_until};
use crate::common::{Node, manifest, tool};

/// A program of the packages that scripts/setup unpacks.
fn program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lab/prometheus/usr/bin");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: run scripts/setup",
        path.display()
    );
    path.display().to_string()
}

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("contrib")
        .join(name)
}

/// Prometheus and `node_exporter` in the node's namespace.
struct Monitoring<'n> {
    node: &'n Node,
    _programs: [Background; 2],
}

impl<'n> Monitoring<'n> {
    /// They read the metrics of this folder.
    fn start(node: &'n Node, folder: &Path) -> Self {
        node.ns.ip("link set lo up");
        let path = |name: &str| node.temp().join(name);
        let rules = contrib("prometheus/rules.yml");
        let settings = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\n\
             scrape_configs: [{{job_name: node, static_configs: [{{targets: ['127.0.0.1:9100']}}]}}]\n",
            rules.display()
        );
        fs::write(path("prometheus.yml"), settings).expect("a file");
        let mut exporter = node.ns.exec(&program("prometheus-node-exporter"));
        exporter.args(["--collector.disable-defaults", "--collector.textfile"]);
        exporter.arg(format!(
            "--collector.textfile.directory={}",
            folder.display()
        ));
        exporter.arg("--web.listen-address=127.0.0.1:9100");
        let mut server = node.ns.exec(&program("prometheus"));
        server.arg(format!(
            "--config.file={}",
            path("prometheus.yml").display()
        ));
        server.arg(format!("--storage.tsdb.path={}", path("data").display()));
        server.arg("--web.listen-address=127.0.0.1:9090");
        Self {
            node,
            _programs: [
                Background::start(&mut exporter, path("exporter.log")),
                Background::start(&mut server, path("prometheus.log")),
            ],
        }
    }

    /// An answer of its HTTP API; null until it answers.
    fn get(&self, path: &str, query: Option<&str>) -> Value {
        let mut curl = self.node.ns.exec("curl");
        curl.args([
            "-sG",
            "--max-time",
            "5",
            &format!("http://127.0.0.1:9090/api/v1/{path}"),
        ]);
        if let Some(query) = query {
            curl.args(["--data-urlencode", &format!("query={query}")]);
        }
        let text = tool::try_run(&mut curl).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The samples of a query.
    fn samples(&self, query: &str) -> Vec<Value> {
        let answer = self.get("query", Some(query));
        let result = answer["data"]["result"].as_array();
        result.cloned().unwrap_or_default()
    }
}

/// The queries of all panels, for all nodes.
fn queries_of_the_dashboard() -> Vec<String> {
    let text = fs::read_to_string(contrib("grafana/dashboard.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().expect("queries"));
    targets
        .map(|target| target["expr"].as_str().expect("a query"))
        .map(|query| query.replace("$instance", ".*"))
        .collect()
}

#[test]
fn the_alerts_and_the_dashboard_find_the_metrics_of_a_window_in_a_real_prometheus() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let folder = scene.path("textfiles");
    fs::create_dir(&folder).expect("a folder");
    scene.netfix(&hasty("", &scene.reload())).exits(0);
    let check = |scene: &Scene<'_>| {
        let file = folder.join("netfix.prom");
        scene.netfix(&format!("check -q --textfile {}", file.display()))
    };
    check(&scene);

    let monitoring = Monitoring::start(&node, &folder);
    let is_scraped = wait_until(|| !monitoring.samples("netfix_build_info").is_empty());
    assert!(is_scraped, "{}", monitoring.get("targets", None));

    // A good node has no findings and no lost pod, and this one no device on a bus, and no guard.
    let lacks = [
        "netfix_findings",
        "_nic_",
        "netfix_pods_lost",
        "netfix_guard_",
    ];
    let queries = queries_of_the_dashboard();
    for query in &queries {
        let answer = monitoring.get("query", Some(query));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let may_lack = lacks.iter().any(|name| query.contains(name));
        assert!(
            may_lack || !monitoring.samples(query).is_empty(),
            "{query}: {answer}"
        );
    }

    let is_evaluated = || {
        let rules = monitoring.get("rules", None);
        let rules = rules["data"]["groups"][0]["rules"].as_array().cloned();
        rules.filter(|rules| rules.iter().all(|rule| rule["health"] == "ok"))
    };
    assert!(wait_until(|| is_evaluated().is_some()));
    let rules = is_evaluated().unwrap_or_default();
    let pending: Vec<&Value> = rules
        .iter()
        .filter(|rule| rule["state"] != "inactive")
        .collect();
    assert!(rules.len() > 10 && pending.is_empty(), "{pending:#?}");

    // A loss is in the alert and in the dashboard, with its cause.
    node.lose();
    check(&scene).exits(2);
    let lost = queries
        .iter()
        .find(|query| query.contains("by (instance, cause)"))
        .expect("a query of the causes");
    assert!(wait_until(|| !monitoring.samples(lost).is_empty()));
    let found = &monitoring.samples(lost)[0];
    assert_eq!(found["metric"]["cause"], "link-gone", "{found}");
    assert_eq!(found["value"][1], "2", "{found}");
    let is_pending = || {
        let rules = is_evaluated().unwrap_or_default();
        let alert = rules
            .iter()
            .find(|rule| rule["name"] == "NetfixPodsWithoutNetwork");
        alert.is_some_and(|alert| alert["state"] == "pending")
    };
    assert!(wait_until(is_pending));
}

#[test]
fn each_alert_fires_when_it_should_and_not_before() {
    for words in [&["check", "rules"][..], &["test", "rules"]] {
        let name = if words[0] == "check" {
            "rules.yml"
        } else {
            "rules.test.yml"
        };
        let mut promtool = tool::command(&program("promtool"), words);
        let text = tool::run(promtool.arg(contrib("prometheus").join(name)));
        assert!(text.contains("SUCCESS"), "{text}");
    }
    let rules = fs::read_to_string(contrib("prometheus/rules.yml")).expect("the rules");
    let tests = fs::read_to_string(contrib("prometheus/rules.test.yml")).expect("their tests");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n");
        assert!(tests.contains(&fires), "no test shows that {alert} fires");
    }
    let rules = manifest::documents(&rules).remove(0);
    for rule in rules["groups"][0]["rules"].as_array().expect("rules") {
        let has = |place: &str| rule.pointer(place).is_some_and(Value::is_string);
        let [severity, runbook, summary] = [
            "/labels/severity",
            "/annotations/runbook_url",
            "/annotations/summary",
        ]
        .map(has);
        assert!(severity && runbook && summary, "{rule}");
        // What netfix recorded does not flap.
        let is_recorded = [
            "NetfixWindowFailed",
            "NetfixGuardGivenUp",
            "NetfixGuardPodLeft",
            "NetfixGuardRestored",
        ]
        .iter()
        .any(|name| rule["alert"] == *name);
        assert!(has("/for") || is_recorded, "{rule}");
    }
}

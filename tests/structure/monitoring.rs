//! The alerts and the dashboard: they use only metrics that netfix writes, and the documents explain each of those.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).expect(name)
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("netfix_"))
        .collect()
}

/// The metrics that netfix writes: the strings of the module, without its tests.
fn written(source: &str) -> BTreeSet<&str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| text.starts_with("netfix_"))
        .collect()
}

#[test]
fn the_alerts_and_the_dashboard_use_metrics_that_netfix_writes_and_the_documents_explain_all() {
    let sources = ["src/report/metrics.rs", "src/report/metrics/last.rs"].map(read);
    let written: BTreeSet<_> = sources.iter().flat_map(|source| written(source)).collect();
    assert!(written.len() > 15, "{written:?}");
    for file in [
        "contrib/prometheus/rules.yml",
        "contrib/prometheus/rules.test.yml",
        "contrib/grafana/dashboard.json",
    ] {
        let text = read(file);
        let used = names(&text);
        assert!(used.len() > 8, "{file}: {used:?}");
        let unknown: Vec<_> = used.difference(&written).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let document = read("docs/reference/metrics.md");
    let table: Vec<&str> = document
        .lines()
        .filter(|line| line.starts_with("| `netfix_"))
        .filter_map(|line| line.split(" | ").next())
        .collect();
    let table = table.join("\n");
    assert_eq!(names(&table), written, "docs/reference/metrics.md");
}

#[test]
fn the_documents_list_every_alert_with_its_severity() {
    let rules = read("contrib/prometheus/rules.yml");
    let alerts = rules.split("- alert: ").skip(1).map(|rule| {
        let name = rule.lines().next().unwrap_or_default();
        let severity = rule.split_once("severity: ").expect("a severity").1;
        (name, severity.split('}').next().unwrap_or_default())
    });
    let document = read("docs/reference/metrics.md");
    let listed: BTreeSet<_> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `Netfix")?.split_once("` | "))
        .map(|(name, rest)| {
            (
                format!("Netfix{name}"),
                rest.split(' ').next().unwrap_or_default(),
            )
        })
        .collect();
    let alerts: BTreeSet<_> = alerts
        .map(|(name, severity)| (name.to_owned(), severity))
        .collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(listed, alerts);
}

//! The state of a stage: the networks of the host and of all pods, the state directory, and leftovers of runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Pod;
use crate::common::capture::Capture;
use crate::common::{diff, tool};
use crate::kubelet;
use crate::stage::Stage;
use crate::stored;

/// How long a network may take to settle.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Picture {
    /// Empty if networks are not compared.
    networks: Vec<(String, Capture)>,
    rest: Value,
}

impl Picture {
    /// The state of a stage after everything has settled.
    pub fn of(stage: &Stage<'_>) -> Self {
        stage.pods.iter().for_each(|pod| drop(pod.capture()));
        drop(stage.node.capture());
        Self::now(stage, true)
    }

    fn now(stage: &Stage<'_>, networks: bool) -> Self {
        let of_pod = |pod: &Pod<'_>| {
            let capture = Capture::of_pod_at_once(&pod.ns, &stage.node.ns);
            let capture = if stage.keeps_indexes() {
                capture
            } else {
                capture.without_indexes()
            };
            (pod.name().to_owned(), capture)
        };
        let node = || {
            (
                "the node".to_owned(),
                Capture::of_node_at_once(&stage.node.ns),
            )
        };
        let all = || stage.pods.iter().map(of_pod).chain([node()]).collect();
        let networks = if networks { all() } else { Vec::new() };
        let links = stage.node.ns.enter(|| tool::ip("-br link show"));
        let temporary: Vec<&str> = links
            .lines()
            .filter(|line| line.starts_with("nfx"))
            .collect();
        let rest = json!({
            "state folder": stored::picture(stage),
            "temporary links": temporary,
            "kubelet": kubelet::picture(stage),
        });
        Self { networks, rest }
    }

    /// The differences on the stage; it gets a moment to become the same.
    pub fn missed_by(&self, stage: &Stage<'_>, networks: bool) -> Vec<String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let lines = self.differences(&Self::now(stage, networks));
            if lines.is_empty() || Instant::now() > deadline {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    fn differences(&self, now: &Self) -> Vec<String> {
        let mut lines = diff::lines(&self.rest, &now.rest);
        for ((name, before), (_, after)) in self.networks.iter().zip(&now.networks) {
            lines.extend(
                before
                    .differences(after)
                    .into_iter()
                    .map(|line| format!("{name}: {line}")),
            );
        }
        lines
    }
}

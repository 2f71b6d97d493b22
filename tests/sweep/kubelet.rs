//! kubelet's unit and what guards it, as systemd itself tells.

use std::fs;

use serde_json::{Value, json};

use crate::common::{kept, tool};
use crate::stage::Stage;

/// Where the logs of open windows are.
const LOGS: &str = "/run/netfix";

/// Makes kubelet run and forgets every window, by other means than netfix's.
pub fn let_run(stage: &Stage<'_>) {
    let script = "systemctl --quiet stop 'netfix-*' && systemctl --quiet unmask --runtime kubelet.service && \
        rm -rf /run/systemd/system.control/kubelet.service \"$1\" && systemctl daemon-reload && systemctl start kubelet.service";
    tool::run(stage.machine.exec("sh").args(["-c", script, "sh", LOGS]));
    let folder = stage.node.state_dir();
    let _ = fs::remove_file(folder.join("window.json"));
    let _ = fs::remove_dir_all(folder.join("windows"));
}

/// Whether kubelet is stopped without anything that starts it again.
pub fn unguarded(stage: &Stage<'_>) -> Vec<String> {
    if stage.start.kubelet().is_none() || stage.machine.unit("kubelet.service", "ActiveState") == "active" {
        return Vec::new();
    }
    let is_timer = |unit: &String| unit.starts_with("netfix-deadline-") && unit.ends_with(".timer active");
    match units(stage).iter().any(is_timer) {
        true => Vec::new(),
        false => vec![format!("kubelet is stopped, and no deadline is armed: {:?}", units(stage))],
    }
}

/// netfix's own units, each with its state and without the number in its name.
fn units(stage: &Stage<'_>) -> Vec<String> {
    let text = stage.machine.systemctl("list-units --all --plain --no-legend --no-pager netfix-*");
    let text = text.unwrap_or_else(|e| panic!("{e}"));
    let unit = |line: &str| {
        let mut words = line.split_whitespace();
        let name: String = words.next()?.chars().filter(|char| !char.is_ascii_digit()).collect();
        Some(format!("{name} {}", words.nth(1)?))
    };
    text.lines().filter_map(unit).collect()
}

/// What is to be the same after a disturbed run.
pub fn picture(stage: &Stage<'_>) -> Value {
    if stage.start.kubelet().is_none() {
        return Value::Null;
    }
    let state = stage.machine.systemctl("show --property LoadState,ActiveState kubelet.service");
    json!({
        "unit": state.unwrap_or_else(|e| panic!("{e}")),
        "units of netfix": units(stage),
        "window": stage.node.state_dir().join("window.json").exists(),
        "logs": kept::names(&stage.machine.outside(LOGS)).len(),
    })
}

//! kubelet's unit and its protection, as systemd reports them.

use std::fs;

use serde_json::{Value, json};

use crate::common::{kept, tool};
use crate::stage::Stage;
use crate::stored;

/// The directory of the logs of open windows.
pub const LOGS: &str = "/run/netfix";

/// Starts kubelet and deletes every window, without netfix.
pub fn let_run(stage: &Stage<'_>) {
    let script = "systemctl --quiet stop 'netfix-*' && systemctl --quiet unmask --runtime kubelet.service && \
        rm -rf /run/systemd/system.control/kubelet.service \"$1\" && systemctl daemon-reload && systemctl start kubelet.service";
    tool::run(stage.machine.exec("sh").args(["-c", script, "sh", LOGS]));
    forget_windows(stage);
}

pub fn forget_windows(stage: &Stage<'_>) {
    let folder = stage.node.state_dir();
    let _ = fs::remove_file(folder.join("window.json"));
    let _ = fs::remove_dir_all(folder.join("windows"));
}

/// Whether kubelet is stopped and nothing will start it.
pub fn unguarded(stage: &Stage<'_>) -> Vec<String> {
    if stage.start.kubelet().is_none() {
        return Vec::new();
    }
    let units = units(stage);
    let is_active = |name: &str| {
        units
            .iter()
            .any(|unit| unit.contains(&format!("Id={name} ")) && unit.contains("=active"))
    };
    if is_active("kubelet.service") || is_active("netfix-deadline-.timer") {
        return Vec::new();
    }
    vec![format!(
        "kubelet is stopped, and no deadline is armed: {units:?}"
    )]
}

/// kubelet's and netfix's units, with their states and without the numbers in their names.
fn units(stage: &Stage<'_>) -> Vec<String> {
    let text = stage
        .machine
        .systemctl("show --property Id,LoadState,ActiveState kubelet.service netfix-*");
    let text = text.unwrap_or_else(|e| panic!("{e}"));
    let units = text
        .split("\n\n")
        .map(|unit| unit.trim().replace('\n', " "));
    let mut units: Vec<String> = units
        .map(|unit| unit.replace(|char: char| char.is_ascii_digit(), ""))
        .collect();
    units.sort();
    units
}

/// The logs in memory without a window: neither of the open one nor of one whose log the disk refused.
fn stray_logs(stage: &Stage<'_>) -> Vec<String> {
    let files = stage.node.state_files();
    let logs: Vec<Value> = files
        .iter()
        .filter_map(|(_, text)| stored::parse(text))
        .map(|file| file["log"].clone())
        .collect();
    let folder = stage.machine.outside(LOGS);
    let of_process = |pid: &String| {
        kept::names(&folder.join(pid))
            .into_iter()
            .map(|name| format!("{LOGS}/{pid}/{name}"))
            .collect::<Vec<_>>()
    };
    let live = kept::names(&folder)
        .iter()
        .flat_map(of_process)
        .collect::<Vec<_>>();
    // Beside them are the copies of records.
    let live = live
        .into_iter()
        .filter(|file| !file.contains("window.json"));
    live.filter(|log| !logs.iter().any(|named| named == log))
        .collect()
}

/// What must be the same after a disturbed run.
pub fn picture(stage: &Stage<'_>) -> Value {
    if stage.start.kubelet().is_none() {
        return Value::Null;
    }
    json!({
        "units": units(stage),
        "window": stage.node.state_dir().join("window.json").exists(),
        "logs of no window": stray_logs(stage),
    })
}

//! Files that name a link: configurations of CNI, and of network managers. With another name of the link they fit no more.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::checked;
use crate::model::IfName;

/// Folders with networks of CNI, below `/`.
const CNI: [&str; 2] = ["etc/cni/net.d", "etc/cni/multus/net.d"];
/// Folders and files of network managers.
const MANAGERS: [&str; 5] = [
    "etc/systemd/network",
    "etc/NetworkManager/system-connections",
    "etc/sysconfig/network-scripts",
    "etc/network/interfaces",
    "etc/network/interfaces.d",
];

/// The first file below this root that names the link.
pub(crate) fn by(root: &Path, link: &IfName) -> Option<String> {
    let name = link.as_str()?;
    let of_cni = |text: &str| {
        let parsed = serde_json::from_str::<Value>(text);
        parsed.is_ok_and(|value| has_master(&value, name))
    };
    let cni = first(root, &CNI, of_cni);
    let found = cni.or_else(|| first(root, &MANAGERS, |text| has_word(text, name)))?;
    let found = found.strip_prefix(root).unwrap_or(&found);
    Some(format!("/{}", found.display()))
}

fn first(root: &Path, places: &[&str], names: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut files = Vec::new();
    for place in places.iter().map(|place| root.join(place)) {
        match fs::read_dir(&place) {
            Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => files.push(place),
        }
    }
    files.sort();
    let is_it = |file: &PathBuf| checked::text(file).is_ok_and(|text| names(&text));
    files.into_iter().find(is_it)
}

/// Whether a plugin makes interfaces on the link (`master`), or moves it into pods (`device`).
fn has_master(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_name = matches!(key.as_str(), "master" | "device") && value == name;
            is_name || has_master(value, name)
        }),
        Value::Array(list) => list.iter().any(|value| has_master(value, name)),
        _ => false,
    }
}

/// Whether a line that is no comment has this word.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '@');
    let mut lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', ';']));
    lines.any(|line| line.split(|c| !is_part(c)).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_a_link_as_master_or_as_a_word() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "etc/cni/net.d/10-net.conflist",
            r#"{"name": "ens2", "plugins": [{"type": "macvlan", "master": "ens1"}]}"#,
        );
        write(
            "etc/network/interfaces",
            "# iface ens2\nauto ens3\niface ens3.5 inet dhcp\n",
        );
        write("etc/systemd/network/10-a.network", "[Match]\nName=ens4\n");
        for (name, file) in [
            ("ens1", Some("/etc/cni/net.d/10-net.conflist")),
            ("ens2", None),
            ("ens3", Some("/etc/network/interfaces")),
            ("ens3.5", Some("/etc/network/interfaces")),
            ("ens4", Some("/etc/systemd/network/10-a.network")),
            ("ens", None),
        ] {
            let found = by(root.path(), &name.parse().unwrap());
            assert_eq!(found.as_deref(), file, "{name}");
        }
    }
}

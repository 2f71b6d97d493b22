//! What /proc shows about the namespace of the calling thread.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

const SYS: &str = "/proc/sys/net";
const FOLDERS: [&str; 4] = ["ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"];

/// Every setting of every link, by link.
pub(super) fn settings() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for folder in FOLDERS {
        for link in entries(&Path::new(SYS).join(folder)) {
            let (path, name) = link;
            let settings = found.entry(name).or_default();
            for (file, key) in entries(&path) {
                let text = fs::read_to_string(&file).unwrap_or_else(|e| format!("unreadable: {e}"));
                settings.insert(format!("{folder}/{key}"), text.trim().to_owned());
            }
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<(std::path::PathBuf, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pair = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (entry.path(), name)
    };
    entries.map(pair).collect()
}

/// The routes of IPv6 with their flags, which no tool shows, and the anycast addresses.
pub(super) fn lists() -> Value {
    let lines = |name: &str, columns: &[usize]| -> Vec<String> {
        let text = fs::read_to_string(Path::new("/proc/thread-self/net").join(name));
        let text = text.unwrap_or_default();
        let part = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let words = columns.iter().filter_map(|&at| words.get(at));
            words.copied().collect::<Vec<_>>().join(" ")
        };
        text.lines().map(part).collect()
    };
    // Without the columns of counters: references and uses. Their order is that which ip(8) shows.
    let mut routes = lines("ipv6_route", &[0, 1, 2, 3, 4, 5, 8, 9]);
    routes.sort();
    // A list per link, which is only looked up.
    let mut anycast = lines("anycast6", &[1, 2]);
    anycast.sort();
    json!({
        "routes of IPv6 with flags": routes,
        "anycast": anycast,
    })
}

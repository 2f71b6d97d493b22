//! ifupdown of Debian: `/etc/network/interfaces` (interfaces(5)).
//!
//! After a driver reload it brings up a device that is `allow-hotplug`, when udev reports it. It recreates no VLAN and no
//! bond: udev reports only what exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fast_glob::glob_match;

use crate::checked;
use crate::model::Link;

/// It lists here what is up.
pub(super) const STATE: &str = "/run/network/ifstate";
const FILE: &str = "/etc/network/interfaces";
/// `ifup`, and `ifdown` for a device that vanishes.
pub(super) const UNITS: &str = "ifup@*.service";
/// Included files may include others; more levels than this mean a loop.
const LEVELS: usize = 8;

/// The devices that it brings up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Interfaces {
    /// Names and patterns of `allow-hotplug` lines.
    hotplug: BTreeSet<String>,
    /// Names and patterns of `iface` stanzas with a method that sets addresses.
    configured: BTreeSet<String>,
}

/// Its configuration, where it runs.
pub(super) fn read() -> Option<Interfaces> {
    let runs = Path::new(STATE).exists() && Path::new("/run/udev/control").exists();
    runs.then(|| Interfaces::from(Path::new(FILE)))
}

impl Interfaces {
    fn from(file: &Path) -> Self {
        let mut interfaces = Self::default();
        interfaces.include(file, 0);
        interfaces
    }

    /// Whether it configures a device that appears.
    pub(super) fn are_brought_up(&self, link: &Link) -> bool {
        let Some(name) = link.name.as_str() else {
            return false;
        };
        let has_addresses = |stanza: &str| {
            let mut names = self.configured.iter();
            names.any(|pattern| is_for(pattern, stanza))
        };
        let mut patterns = self.hotplug.iter();
        !link.can_be_made()
            && patterns.any(|pattern| match pattern.split_once('=') {
                Some((pattern, stanza)) => is_for(pattern, name) && has_addresses(stanza),
                None => is_for(pattern, name) && has_addresses(name),
            })
    }

    fn include(&mut self, file: &Path, level: usize) {
        let Ok(text) = checked::text(file) else {
            return;
        };
        for line in text.replace("\\\n", " ").lines() {
            let mut words = line.split_whitespace();
            let word = words.next().unwrap_or_default();
            match word {
                "allow-hotplug" => self.hotplug.extend(words.map(str::to_owned)),
                "iface" => {
                    let [name, _family, method] = [(); 3].map(|()| words.next());
                    if method.is_some_and(|method| !matches!(method, "manual" | "loopback")) {
                        self.configured.extend(name.map(str::to_owned));
                    }
                }
                "source" | "source-directory" if level < LEVELS => {
                    for pattern in words {
                        for included in included(file, pattern, word == "source-directory") {
                            self.include(&included, level + 1);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a name, or a pattern such as `/eth*`, is for a link.
fn is_for(pattern: &str, name: &str) -> bool {
    let glob = pattern.strip_prefix('/');
    glob.map_or(pattern == name, |glob| glob_match(glob, name))
}

/// The files that a `source` or `source-directory` line includes, in the order of their names. Patterns are understood in
/// the last part of a path.
fn included(from: &Path, pattern: &str, is_directory: bool) -> Vec<PathBuf> {
    let path = from.parent().unwrap_or(Path::new("/")).join(pattern);
    let (folder, glob) = if is_directory || path.is_dir() {
        (path.as_path(), None)
    } else {
        let folder = path.parent().unwrap_or(Path::new("/"));
        (folder, path.file_name().and_then(|name| name.to_str()))
    };
    let is_plain = |name: &str| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| glob.map_or_else(|| is_plain(name), |glob| glob_match(glob, name)))
        .collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LinkKind;

    fn nic(name: &str) -> Link {
        Link::plain(name.parse().unwrap(), LinkKind::Physical)
    }

    fn read(text: &str) -> Interfaces {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("interfaces");
        fs::write(&file, text).unwrap();
        Interfaces::from(&file)
    }

    #[test]
    fn a_hotplug_device_with_addresses_is_brought_up_and_nothing_else() {
        let all = read(
            "# comment\nauto lo eth1\niface lo inet loopback\nallow-hotplug eth0 \\\n eth2 eth3\n\
             iface eth0 inet static\n  address 192.0.2.2/24\niface eth1 inet dhcp\niface eth2 inet manual\n",
        );
        assert!(all.are_brought_up(&nic("eth0")));
        for name in ["lo", "eth1", "eth2", "eth3"] {
            assert!(!all.are_brought_up(&nic(name)), "{name}");
        }
    }

    #[test]
    fn patterns_match_devices_and_choose_stanzas() {
        let all = read(
            "allow-hotplug /en*=lan /wl*=none eth0\niface lan inet dhcp\niface /eth* inet6 auto\n",
        );
        assert!(all.are_brought_up(&nic("enp1s0")));
        assert!(all.are_brought_up(&nic("eth0")));
        assert!(!all.are_brought_up(&nic("eth1")));
        assert!(!all.are_brought_up(&nic("wlan0")));
    }

    #[test]
    fn files_are_included_by_pattern_and_by_directory() {
        let temp = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(temp.path().join(name), text).unwrap();
        for folder in ["a.d", "b.d"] {
            fs::create_dir(temp.path().join(folder)).unwrap();
        }
        put(
            "interfaces",
            "source a.d/*.cfg\nsource-directory b.d\nsource interfaces\n",
        );
        put("a.d/1.cfg", "allow-hotplug eth0\n");
        put("a.d/2.off", "allow-hotplug eth1\n");
        put("b.d/both", "iface eth0 inet dhcp\niface eth1 inet dhcp\n");
        put("b.d/backup.bak", "allow-hotplug eth1\n");
        let all = Interfaces::from(&temp.path().join("interfaces"));
        assert!(all.are_brought_up(&nic("eth0")));
        assert!(!all.are_brought_up(&nic("eth1")));
    }
}

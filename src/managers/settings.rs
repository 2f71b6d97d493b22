//! Which programs set what on a NIC when it appears: udevd by a `.link` file (systemd.link(5)), tuned by its profile, and
//! `NetworkManager` by a connection profile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::checked;
use crate::model::manager::SettingOwner;
use crate::model::net::link::nic::NicGroup;

/// Groups of settings.
pub(crate) type Groups = BTreeSet<NicGroup>;

/// What udevd sets on a device by its `.link` file and what is added to it.
pub(crate) fn of_link_files(files: Vec<PathBuf>) -> Option<(SettingOwner, Groups)> {
    let groups: Groups = files
        .iter()
        .filter_map(|file| checked::text(file).ok())
        .flat_map(|text| in_link_file(&text))
        .collect();
    let path = files.into_iter().next()?;
    (!groups.is_empty()).then_some((SettingOwner::LinkFile { path }, groups))
}

fn in_link_file(text: &str) -> Groups {
    let lines = assignments(text).filter(|(section, ..)| *section == "Link");
    lines.filter_map(|(_, key, _)| of_link_key(key)).collect()
}

fn of_link_key(key: &str) -> Option<NicGroup> {
    Some(match key {
        "RxBufferSize" | "RxMiniBufferSize" | "RxJumboBufferSize" | "TxBufferSize" => {
            NicGroup::Rings
        }
        "RxChannels" | "TxChannels" | "OtherChannels" | "CombinedChannels" => NicGroup::Channels,
        "RxFlowControl" | "TxFlowControl" | "AutoNegotiationFlowControl" => NicGroup::Pause,
        "BitsPerSecond" | "Duplex" | "AutoNegotiation" | "Advertise" => NicGroup::Link,
        "WakeOnLan" => NicGroup::Wol,
        _ if key.contains("Coalesce") => NicGroup::Coalesce,
        _ if key.ends_with("Offload")
            || key.ends_with("Checksum")
            || key.ends_with("HardwareAcceleration") =>
        {
            NicGroup::Features
        }
        "NTupleFilter" | "ReceivePacketSteeringCPUMask" => NicGroup::Features,
        _ => return None,
    })
}

/// What tuned sets on NICs by its active profile, while it runs.
pub(crate) fn of_tuned() -> Option<(SettingOwner, Groups)> {
    const PID: &str = "/run/tuned/tuned.pid";
    const ACTIVE: &str = "/etc/tuned/active_profile";
    let pid = checked::text(PID).ok()?;
    let process = Path::new("/proc").join(pid.trim());
    if pid.trim().is_empty() || !process.exists() {
        return None;
    }
    let profile = checked::text(ACTIVE).ok()?.trim().to_owned();
    let mut groups = Groups::new();
    for name in profile.split_whitespace() {
        add_profile(name, 0, &mut groups);
    }
    (!groups.is_empty()).then_some((SettingOwner::Tuned { profile }, groups))
}

fn add_profile(name: &str, level: usize, groups: &mut Groups) {
    /// Where it looks for profiles, the first one counts.
    const FOLDERS: [&str; 4] = [
        "/etc/tuned/profiles",
        "/etc/tuned",
        "/usr/lib/tuned/profiles",
        "/usr/lib/tuned",
    ];
    /// Profiles include others; more levels than this mean a loop.
    const LEVELS: usize = 8;
    if level == LEVELS || name.contains('/') {
        return;
    }
    let file = |folder: &&str| Path::new(folder).join(name).join("tuned.conf");
    let mut texts = FOLDERS
        .iter()
        .map(file)
        .filter_map(|file| checked::text(file).ok());
    let Some(text) = texts.next() else { return };
    let (own, included) = in_tuned_profile(&text);
    groups.extend(own);
    for name in included {
        add_profile(&name, level + 1, groups);
    }
}

/// The groups that a profile sets, and the profiles that it includes.
fn in_tuned_profile(text: &str) -> (Groups, Vec<String>) {
    let all = || assignments(text);
    let is_net = |section: &str| {
        let kind = all().find(|(of, key, _)| *of == section && *key == "type");
        kind.map_or(section, |(.., value)| value) == "net"
    };
    let groups = all().filter(|(section, ..)| is_net(section));
    let groups = groups.filter_map(|(_, key, _)| match key {
        "features" => Some(NicGroup::Features),
        "coalesce" => Some(NicGroup::Coalesce),
        "pause" => Some(NicGroup::Pause),
        "ring" => Some(NicGroup::Rings),
        "channels" => Some(NicGroup::Channels),
        "wake_on_lan" => Some(NicGroup::Wol),
        _ => None,
    });
    let included = all().filter(|(section, key, _)| (*section, *key) == ("main", "include"));
    let included = included.flat_map(|(.., value)| value.split([',', ';']));
    let included = included.map(|name| name.trim().to_owned());
    (groups.collect(), included.collect())
}

/// What the keys of a profile of `NetworkManager` set: `ring-rx` of the section `ethtool`, and others.
pub(super) fn in_profile<'a>(section: &str, keys: impl Iterator<Item = &'a String>) -> Groups {
    let group = |key: &String| {
        let word = key.split('-').next().unwrap_or_default();
        Some(match (section, word) {
            ("ethtool", "ring") => NicGroup::Rings,
            ("ethtool", "coalesce") => NicGroup::Coalesce,
            ("ethtool", "feature") => NicGroup::Features,
            ("ethtool", "pause") => NicGroup::Pause,
            ("ethtool", "channels") => NicGroup::Channels,
            ("ethtool", "eee") => NicGroup::Eee,
            ("ethtool", "fec") => NicGroup::Fec,
            ("802-3-ethernet", "speed" | "duplex" | "auto") => NicGroup::Link,
            ("802-3-ethernet", "wake") => NicGroup::Wol,
            _ => return None,
        })
    };
    keys.filter_map(group).collect()
}

/// The section, key and value of each line of a file with sections.
fn assignments(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut section = "";
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            return None;
        }
        let is_comment = line.starts_with(['#', ';']);
        let (key, value) = line.split_once('=').filter(|_| !is_comment)?;
        Some((section, key.trim(), value.trim())).filter(|(.., value)| !value.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_file_sets_what_its_section_link_has() {
        let text = "[Match]\nOriginalName=eth0\n[Link]\n# RxChannels=4\nRxBufferSize=512\nGenericReceiveOffload=no\n\
            WakeOnLan=magic\nMTUBytes=9000\nTxCoalesceSec=\n";
        let set = [NicGroup::Rings, NicGroup::Features, NicGroup::Wol];
        assert_eq!(in_link_file(text), Groups::from(set));
        assert_eq!(in_link_file("[Link]\nNamePolicy=path\n"), Groups::new());
    }

    #[test]
    fn a_profile_of_tuned_sets_what_its_sections_for_nics_have() {
        let text = "[main]\nsummary=x\ninclude=throughput-performance, other\n[net]\nring=rx 512\n[fast]\ntype=net\n\
            coalesce=rx-usecs 3\n[disk]\nfeatures=no\n";
        let (groups, included) = in_tuned_profile(text);
        assert_eq!(groups, Groups::from([NicGroup::Rings, NicGroup::Coalesce]));
        assert_eq!(included, ["throughput-performance", "other"]);
    }

    #[test]
    fn a_connection_profile_sets_what_its_keys_begin_with() {
        let keys = ["ring-rx", "feature-gro", "coalesce-rx-usecs"].map(str::to_owned);
        let set = [NicGroup::Rings, NicGroup::Features, NicGroup::Coalesce];
        assert_eq!(in_profile("ethtool", keys.iter()), Groups::from(set));
        assert_eq!(in_profile("ipv4", keys.iter()), Groups::new());
    }
}

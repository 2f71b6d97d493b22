//! systemd-networkd: its files (systemd.netdev(5), systemd.network(5)), and the state that it keeps of each link.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fast_glob::glob_match;

use crate::checked;
use crate::model::{Link, LinkKind};

/// It keeps this file while it runs.
pub(super) const STATE: &str = "/run/systemd/netif/state";
pub(super) const SERVICE: &str = "org.freedesktop.network1";

/// Its directories; a file hides those of the same name in later ones.
const FOLDERS: [&str; 5] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
];

/// Its configuration.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// The names of the links that it makes.
    made: Vec<String>,
    /// Its `.network` files, in their order.
    networks: Vec<Assignments>,
}

/// Section, key and value of each assignment.
type Assignments = Vec<(String, String, String)>;

impl Networks {
    /// Reads its files.
    pub(super) fn read() -> Self {
        Self::from(&FOLDERS.map(Path::new))
    }

    fn from(folders: &[&Path]) -> Self {
        let made = files(folders, "netdev")
            .iter()
            .filter_map(|entries| value(entries, "NetDev", "Name").map(str::to_owned))
            .collect();
        Self {
            made,
            networks: files(folders, "network"),
        }
    }

    /// Whether it makes a link, or configures a device.
    pub(super) fn have(&self, link: &Link) -> bool {
        if link.can_be_made() {
            return self.made.iter().any(|name| link.name.is(name));
        }
        let first = self
            .networks
            .iter()
            .find(|entries| is_matched(entries, link));
        first.is_some_and(|entries| value(entries, "Link", "Unmanaged").is_none_or(is_no))
    }
}

/// Whether it has configured a link, failed to, or leaves it to others.
pub(super) fn has_finished(ifindex: u32) -> bool {
    state_of(ifindex).is_some_and(|state| is_final(&state))
}

/// Whether it is configuring a link.
pub(super) fn is_at_work(ifindex: u32) -> bool {
    let state = state_of(ifindex);
    state.is_some_and(|state| value_of(&state, "ADMIN_STATE") == Some("configuring"))
}

fn state_of(ifindex: u32) -> Option<String> {
    checked::text(format!("/run/systemd/netif/links/{ifindex}")).ok()
}

fn value_of<'a>(state: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = state.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Without carrier it drops what it configured, and configures the link again when that is back.
fn is_final(state: &str) -> bool {
    // Before systemd 242 there is only the operational state.
    let carrier = value_of(state, "CARRIER_STATE").or_else(|| value_of(state, "OPER_STATE"));
    match value_of(state, "ADMIN_STATE") {
        Some("configured") => {
            !carrier.is_some_and(|carrier| matches!(carrier, "no-carrier" | "dormant" | "off"))
        }
        Some("failed" | "unmanaged" | "linger") => true,
        _ => false,
    }
}

/// The files with an extension, each with its drop-ins, in the order of their names.
fn files(folders: &[&Path], extension: &str) -> Vec<Assignments> {
    let dot = format!(".{extension}");
    first_of_each(folders, "", &dot)
        .iter()
        .filter_map(|(name, path)| {
            // A mask is a link to /dev/null.
            let mut text = checked::text(path).ok().filter(|text| !text.is_empty())?;
            for drop_in in first_of_each(folders, &format!("{name}.d"), ".conf").values() {
                text.push('\n');
                text.push_str(&checked::text(drop_in).unwrap_or_default());
            }
            Some(entries(&text))
        })
        .collect()
}

/// The files with an ending in a subdirectory of the folders, by name; the first folder wins.
fn first_of_each(folders: &[&Path], below: &str, ending: &str) -> BTreeMap<String, PathBuf> {
    let mut all = BTreeMap::new();
    for folder in folders {
        let entries = fs::read_dir(folder.join(below)).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(ending) {
                all.entry(name).or_insert_with(|| entry.path());
            }
        }
    }
    all
}

/// The assignments of a file (systemd.syntax(7)).
fn entries(text: &str) -> Assignments {
    let joined = text.replace("\\\n", " ");
    let (mut section, mut entries) = (String::new(), Vec::new());
    for line in joined.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        let header = line.strip_prefix('[');
        if let Some(name) = header.and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            let [key, value] = [key, value].map(|text| text.trim().to_owned());
            entries.push((section.clone(), key, value));
        }
    }
    entries
}

/// All values of a key; an empty one resets those before it.
fn values<'a>(entries: &'a Assignments, section: &str, key: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (_, _, value) in entries
        .iter()
        .filter(|(in_section, of_key, _)| in_section == section && of_key == key)
    {
        if value.is_empty() {
            values.clear();
        } else {
            values.push(value.as_str());
        }
    }
    values
}

/// The value that counts where only one can.
fn value<'a>(entries: &'a Assignments, section: &str, key: &str) -> Option<&'a str> {
    values(entries, section, key).last().copied()
}

fn is_no(value: &str) -> bool {
    let no = ["no", "n", "false", "f", "off", "0"];
    no.iter().any(|no| value.eq_ignore_ascii_case(no))
}

/// Whether a `.network` file is for a link. Conditions that need more than the link, such as `Host=`, are taken as met: a
/// link without an owner then costs a wait, no more.
fn is_matched(entries: &Assignments, link: &Link) -> bool {
    let hardware = link.hardware.as_ref();
    let driver = hardware.and_then(|hardware| hardware.driver.clone());
    let permanent = hardware.and_then(|hardware| hardware.permanent_mac);
    let mac = link.mac.map(|mac| mac.to_string());
    let permanent = permanent.map(|mac| mac.to_string());
    let kind = match &link.kind {
        LinkKind::Physical => "ether",
        other => other.name(),
    };
    let facts = [
        ("Name", link.name.as_str()),
        ("OriginalName", link.name.as_str()),
        ("Type", Some(kind)),
        ("Driver", driver.as_deref()),
        ("MACAddress", mac.as_deref()),
        ("PermanentMACAddress", permanent.as_deref()),
    ];
    facts.iter().all(|(key, fact)| {
        let wanted = values(entries, "Match", key);
        let is_mac = key.ends_with("MACAddress");
        wanted.is_empty() || fact.is_some_and(|fact| is_in(&wanted, fact, is_mac))
    })
}

/// Whether a word is in lists of globs; a list that begins with `!` has those that do not match.
fn is_in(lists: &[&str], fact: &str, is_mac: bool) -> bool {
    let joined = lists.join(" ");
    let (is_wanted, list) = match joined.strip_prefix('!') {
        Some(list) => (false, list),
        None => (true, joined.as_str()),
    };
    let is_found = list.split_whitespace().any(|glob| {
        if is_mac {
            glob.replace('-', ":").eq_ignore_ascii_case(fact)
        } else {
            glob_match(glob, fact)
        }
    });
    is_found == is_wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::{Vlan, VlanProtocol};
    use crate::model::{Hardware, Mac};

    fn nic(name: &str) -> Link {
        let mut link = Link::plain(name.parse().unwrap(), LinkKind::Physical);
        link.mac = Some(Mac([0x52, 0x54, 0, 0, 0, 0x0a]));
        link.hardware = Some(Hardware {
            permanent_mac: link.mac,
            bus: None,
            driver: Some("e1000e".to_owned()),
            ..Hardware::default()
        });
        link
    }

    fn vlan(name: &str) -> Link {
        let kind = LinkKind::Vlan(Vlan {
            id: 3.try_into().unwrap(),
            protocol: VlanProtocol::default(),
            vlan_flags: 1,
            ingress_qos: Vec::new(),
            egress_qos: Vec::new(),
        });
        Link::plain(name.parse().unwrap(), kind)
    }

    fn matches(text: &str) -> bool {
        is_matched(&entries(text), &nic("eth0"))
    }

    #[test]
    fn a_network_file_matches_as_systemd_network_says() {
        assert!(matches("[Match]\nName=eth*\n"));
        assert!(matches("[Match]\nName=lan0 \\\n eth0\n"));
        assert!(!matches("[Match]\nName=lan0\n"));
        assert!(!matches("[Match]\nName=!eth* lan*\n"));
        assert!(matches("[Match]\nName=lan0\nName=\nName=eth0\n"));
        assert!(!matches("[Match]\nName=eth0\nDriver=i40e\n"));
        assert!(matches("[Match]\nType=ether\nDriver=e1000*\n"));
        assert!(matches("[Match]\nPermanentMACAddress=52-54-00-00-00-0A\n"));
        assert!(!matches("[Match]\nMACAddress=52:54:00:00:00:0b\n"));
        assert!(matches("# everything\n[Network]\nDHCP=yes\n"));
    }

    #[test]
    fn the_first_network_file_decides_and_an_unmanaged_device_has_no_owner() {
        let of = |texts: &[&str]| Networks {
            made: Vec::new(),
            networks: texts.iter().map(|text| entries(text)).collect(),
        };
        let [managed, unmanaged] = [
            "[Match]\nName=eth0\n[Network]\nDHCP=yes\n",
            "[Match]\nName=eth0\n[Link]\nUnmanaged=yes\n",
        ];
        assert!(of(&[managed, unmanaged]).have(&nic("eth0")));
        assert!(!of(&[unmanaged, managed]).have(&nic("eth0")));
        assert!(!of(&[managed]).have(&vlan("eth0")));
    }

    #[test]
    fn files_hide_others_and_have_drop_ins() {
        let temp = tempfile::tempdir().unwrap();
        let [etc, usr] = ["etc", "usr"].map(|name| temp.path().join(name));
        for folder in [&etc, &usr] {
            fs::create_dir_all(folder.join("20-c.netdev.d")).unwrap();
        }
        let put = |path: PathBuf, text: &str| fs::write(path, text).unwrap();
        put(
            etc.join("10-a.netdev"),
            "[NetDev]\nName=eth0.3\nKind=vlan\n",
        );
        put(usr.join("10-a.netdev"), "[NetDev]\nName=hidden\n");
        put(etc.join("15-b.netdev"), "");
        put(usr.join("15-b.netdev"), "[NetDev]\nName=masked\n");
        put(usr.join("20-c.netdev"), "[NetDev]\nName=before\n");
        put(usr.join("20-c.netdev.d/1.conf"), "[NetDev]\nName=bond4\n");
        put(usr.join("30-d.network"), "[Match]\nName=eth0\n");
        let all = Networks::from(&[&etc, &usr]);
        assert_eq!(all.made, ["eth0.3", "bond4"]);
        assert!(all.have(&vlan("eth0.3")) && all.have(&nic("eth0")));
        assert!(!all.have(&vlan("hidden")) && !all.have(&nic("eth1")));
    }

    #[test]
    fn a_link_is_finished_once_it_is_configured_or_will_not_be() {
        assert!(!is_final(""));
        assert!(!is_final("ADMIN_STATE=configuring\nOPER_STATE=carrier\n"));
        assert!(is_final("ADMIN_STATE=configured\n"));
        assert!(is_final("ADMIN_STATE=unmanaged\n"));
    }

    #[test]
    fn a_link_without_carrier_is_configured_again_later() {
        let state = |carrier: &str| is_final(&format!("ADMIN_STATE=configured\n{carrier}\n"));
        assert!(!state("OPER_STATE=no-carrier\nCARRIER_STATE=no-carrier"));
        assert!(!state("OPER_STATE=no-carrier"));
        assert!(state("OPER_STATE=enslaved\nCARRIER_STATE=enslaved"));
        assert!(state("OPER_STATE=routable\nCARRIER_STATE=carrier"));
    }
}

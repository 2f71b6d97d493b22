//! What a reload of the drivers of the host's NICs would meet: modules that use them, firmware that is not installed, parameters and
//! names that it does not keep, filters that are full.

mod modinfo;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::checked;
use crate::kernel::udev;
use crate::managers::configured;
use crate::model::net::link::nic::NicGroup;
use crate::model::problem::DriverCause;
use crate::model::text::module_name;
use crate::model::{Hardware, Link, LinkGraph, LinkKind, Mac, NetState, Problem};
use crate::plan::drivers::filters::{self, MacLoad};
use crate::plan::drivers::modules::Modules;
use crate::plan::drivers::parameters::{self, ModuleOptions};

/// Loaded modules.
const MODULES: &str = "proc/modules";
/// Folders of modprobe.d(5): a file in the first one replaces those of its name.
const MODPROBE: [&str; 5] = [
    "etc/modprobe.d",
    "run/modprobe.d",
    "usr/local/lib/modprobe.d",
    "usr/lib/modprobe.d",
    "lib/modprobe.d",
];
/// Drivers of which some versions have a port in the name of the device (`phys_port_name`), and others have not.
const RENAMING: [&str; 4] = ["bnxt_en", "i40e", "ice", "mlx5_core"];

/// What a reload of the drivers of these devices would meet.
pub(crate) fn at_risk(host: &NetState) -> Vec<Problem> {
    let sources = DriverSources {
        root: Path::new("/"),
        firmware: &modinfo::firmware,
    };
    sources.at_risk(host)
}

/// The modules that are loaded, if they can be listed.
pub(crate) fn modules() -> Option<Modules> {
    let text = checked::text(Path::new("/").join(MODULES)).ok()?;
    Some(Modules::parse(&text))
}

/// The files of a machine, and how it lists the firmware of the installed module of a name.
struct DriverSources<'a> {
    root: &'a Path,
    firmware: &'a dyn Fn(&str) -> Vec<String>,
}

impl DriverSources<'_> {
    fn at_risk(&self, host: &NetState) -> Vec<Problem> {
        let devices = || host.links.iter().filter_map(device);
        let Some(text) = devices().next().and_then(|_| self.text(MODULES)) else {
            return Vec::new();
        };
        let modules = Modules::parse(&text);
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for (link, _, driver) in devices() {
            let module = module_name(driver);
            // One that is built in cannot be loaded again.
            if modules.is_loaded(&module) && seen.insert(module.clone()) {
                problems.extend(held(&modules, &module));
                problems.extend(self.without_firmware(&module));
                problems.extend(self.parameters(&module, link));
            }
        }
        for (link, hardware, driver) in devices() {
            let load = self.load(host, link, hardware);
            let nic = link.nic.as_deref();
            problems.extend(filters::full(driver, load, nic).map(|cause| severe(cause, link)));
            problems.extend(self.unpinned(link, driver));
        }
        problems
    }

    /// The firmware of a module that is not installed, if no file of its firmware is.
    fn without_firmware(&self, module: &str) -> Option<Problem> {
        let files = (self.firmware)(module);
        if files.is_empty() || files.iter().any(|file| self.has_firmware(file)) {
            return None;
        }
        let has_safe_mode = module == "ice";
        let cause = DriverCause::FirmwareMissing {
            files,
            has_safe_mode,
        };
        Some(if has_safe_mode {
            cause.warning(module)
        } else {
            cause.info(module)
        })
    }

    /// Whether the kernel finds a file of firmware (`fw_path` of `drivers/base/firmware_loader/main.c`).
    fn has_firmware(&self, file: &str) -> bool {
        let first = self
            .text("sys/module/firmware_class/parameters/path")
            .unwrap_or_default();
        let release = self.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let (first, release) = (first.trim().trim_start_matches('/'), release.trim());
        let below = ["updates/", ""].map(|folder| {
            let own = format!("lib/firmware/{folder}{release}");
            [own, format!("lib/firmware/{folder}")]
        });
        let folders = below.as_flattened().iter().map(String::as_str);
        let mut folders = folders.chain(Some(first).filter(|first| !first.is_empty()));
        folders.any(|folder| {
            let folder = self.root.join(folder);
            let forms = ["", ".xz", ".zst"].map(|form| folder.join(format!("{file}{form}")));
            forms.iter().any(|file| file.exists())
        })
    }

    /// The parameters to which a reload gives another value.
    fn parameters(&self, module: &str, link: &Link) -> Vec<Problem> {
        let values = link
            .nic
            .as_ref()
            .and_then(|nic| nic.settings.get(&NicGroup::Module));
        let Some(values) = values else {
            return Vec::new();
        };
        let cmdline = self.text("proc/cmdline").unwrap_or_default();
        let options = ModuleOptions::new(&self.modprobe(), &cmdline);
        let values = values
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_string()));
        let changed = values.filter(|(name, value)| options.changes(module, name, value));
        changed
            .map(|(name, running)| {
                let option = parameters::option(module, name, &running);
                let cause = DriverCause::OtherParameter { running, option };
                cause.warning(format!("module {module} {name}"))
            })
            .collect()
    }

    /// The texts of modprobe.d(5), in the order of their names.
    fn modprobe(&self) -> Vec<String> {
        let mut files = BTreeMap::new();
        for file in MODPROBE
            .iter()
            .flat_map(|folder| self.files(folder, "conf"))
        {
            let name = file.file_name().map(ToOwned::to_owned);
            files.entry(name).or_insert(file);
        }
        let texts = files.into_values();
        texts.filter_map(|file| checked::text(file).ok()).collect()
    }

    /// What a device filters by: links on it add their filters to its own.
    fn load(&self, host: &NetState, link: &Link, hardware: &Hardware) -> MacLoad {
        let graph = LinkGraph::new(&host.links);
        let above = graph.all_above([&link.name]);
        let above = || above.iter().filter_map(|name| host.link(name));
        let is_macvlan =
            |upper: &&Link| matches!(upper.kind, LinkKind::Macvlan(_) | LinkKind::Macvtap(_));
        let own = above().filter(is_macvlan).filter_map(|upper| upper.mac);
        let added = above()
            .filter(|upper| upper.has_filter())
            .flat_map(|upper| &upper.fdb);
        let added = added
            .filter(|entry| !entry.master)
            .map(|entry| entry.lladdr);
        let mut macs: BTreeSet<Mac> = own.chain(added).collect();
        macs.retain(|mac| Some(*mac) != link.mac);
        let vlans = above().filter(|upper| matches!(upper.kind, LinkKind::Vlan(_)));
        let groups = self.text("proc/net/dev_mcast").unwrap_or_default();
        let name = link.name.as_str();
        let is_its = |line: &&str| name.is_some() && line.split_whitespace().nth(1) == name;
        let card = |own: &Hardware| {
            let bus = own.bus.as_deref().and_then(|bus| bus.rsplit_once('.'));
            bus.map(|(card, _)| card.to_owned())
        };
        let devices = host.links.iter().filter_map(device);
        let ports = devices.filter(|(_, other, _)| card(other) == card(hardware));
        MacLoad {
            unicast: number(macs.len()),
            multicast: number(groups.lines().filter(is_its).count()),
            vlans: number(vlans.count()),
            ports: number(ports.count()),
            is_untrusted: is_untrusted(host, hardware),
        }
    }

    /// A device that configurations name, and whose name the next driver may change.
    fn unpinned(&self, link: &Link, driver: &str) -> Option<Problem> {
        let files = udev::link_files_below(self.root, link.index);
        if !RENAMING.contains(&driver) || files.is_empty() {
            return None;
        }
        let below = |file: &PathBuf| self.root.join(file.strip_prefix("/").unwrap_or(file));
        let mut texts = files
            .iter()
            .filter_map(|file| checked::text(below(file)).ok());
        let name = link.name.as_str()?;
        let is_in_rules = || {
            let folders = ["etc/udev/rules.d", "run/udev/rules.d"];
            let mut rules = folders
                .iter()
                .flat_map(|folder| self.files(folder, "rules"));
            rules.any(|file| {
                checked::text(file).is_ok_and(|text| text.contains(&format!("\"{name}\"")))
            })
        };
        let is_pinned = texts.any(|text| text.lines().any(|line| line.starts_with("Name=")));
        let config =
            configured::by(self.root, &link.name).filter(|_| !is_pinned && !is_in_rules())?;
        Some(DriverCause::NameNotPinned { config }.info(&link.name))
    }

    fn text(&self, path: &str) -> Option<String> {
        checked::text(self.root.join(path)).ok()
    }

    /// The files of a folder with this ending.
    fn files(&self, folder: &str, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten();
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files
            .filter(|file| file.extension().is_some_and(|of| of == ending))
            .collect()
    }
}

/// A device that a driver makes, with its hardware and the driver.
fn device(link: &Link) -> Option<(&Link, &Hardware, &str)> {
    let hardware = link
        .hardware
        .as_ref()
        .filter(|own| link.is_device() && !own.is_representor())?;
    Some((link, hardware, hardware.driver.as_deref()?))
}

/// The modules that keep a driver from being unloaded.
fn held(modules: &Modules, module: &str) -> Option<Problem> {
    let holders = modules.above(module);
    let has_holders = !holders.is_empty();
    let cause = DriverCause::Held {
        module: module.to_owned(),
        is_in_command: false,
        holders,
    };
    has_holders.then(|| cause.info(module))
}

/// Lost packets are a warning; a processor that drops frames is worth knowing.
fn severe(cause: DriverCause, link: &Link) -> Problem {
    use crate::model::problem::FullFilters::Promiscuous;
    match cause {
        DriverCause::FiltersFull {
            beyond: Promiscuous,
            ..
        } => cause.info(&link.name),
        _ => cause.warning(&link.name),
    }
}

/// Whether it is a virtual function that its device does not trust.
fn is_untrusted(host: &NetState, hardware: &Hardware) -> bool {
    let Some(function) = &hardware.function else {
        return false;
    };
    let is_of = |link: &&Link| {
        let own = link.hardware.as_ref();
        own.is_some_and(|own| own.bus.as_ref() == Some(&function.of))
    };
    let sriov = host.links.iter().find(is_of).and_then(Link::sriov);
    let own = sriov.and_then(|sriov| sriov.function(function.index));
    own.is_some_and(|own| own.trust == Some(false))
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

//! Processors of the interrupts of a device, by the names of its vectors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::message::Values;
use crate::kernel::Errno;
use crate::model::IfName;
use crate::model::net::link::nic::{NicKey, NicValue};

const IRQS: &str = "/proc/irq";
/// In the name of a vector, stands for that of its device: a driver may give it another one.
const DEVICE: &str = "*";

/// The files of interrupts and devices.
pub(super) struct Files<'a> {
    /// `/proc/irq`.
    pub irqs: &'a Path,
    /// The device's folder in `/sys/bus/pci/devices`.
    pub device: PathBuf,
    /// `/sys/devices/system/cpu/online`.
    pub online: &'a Path,
}

impl Files<'_> {
    /// Those of a PCI device; `None` if its address is none.
    pub fn of(bus: &str) -> Option<Self> {
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
        if !bus.bytes().all(is_address) || bus.contains("..") || bus.is_empty() {
            return None;
        }
        Some(Self {
            irqs: Path::new(IRQS),
            device: Path::new("/sys/bus/pci/devices").join(bus),
            online: Path::new("/sys/devices/system/cpu/online"),
        })
    }

    /// The numbers of the device's vectors, with their names.
    fn vectors(&self, dev: &IfName) -> Vec<(u32, NicKey)> {
        let numbers: BTreeSet<u32> = match fs::read_dir(self.device.join("msi_irqs")) {
            Ok(folder) => folder
                .flatten()
                .filter_map(|one| one.file_name().to_str()?.parse().ok())
                .collect(),
            // One without messages, and with an interrupt that it may share.
            Err(_) => text(&self.device.join("irq"))
                .and_then(|number| number.parse().ok())
                .filter(|number| *number != 0)
                .into_iter()
                .collect(),
        };
        let named = numbers.into_iter();
        named
            .filter_map(|number| Some((number, self.name(number, dev)?)))
            .collect()
    }

    /// The kernel makes a folder of each handler's name.
    fn name(&self, number: u32, dev: &IfName) -> Option<NicKey> {
        let folder = fs::read_dir(self.irqs.join(number.to_string())).ok()?;
        let mut names = folder.flatten().filter(|one| one.path().is_dir());
        let name = names.next()?.file_name().into_string().ok()?;
        let is_only = names.next().is_none();
        let name = match str::from_utf8(dev.as_bytes()) {
            Ok(dev) => without(&name, dev),
            Err(_) => name,
        };
        NicKey::try_from(name).ok().filter(|_| is_only)
    }

    fn mask(&self, number: u32, file: &str) -> Option<BTreeSet<u32>> {
        mask(&text(&self.irqs.join(number.to_string()).join(file))?)
    }
}

/// The affinity of each vector for which neither the kernel's default nor the driver's hint has it.
pub(super) fn read(files: &Files<'_>, dev: &IfName) -> Values {
    let default = text(&files.irqs.join("default_smp_affinity")).and_then(|text| mask(&text));
    let online = text(files.online).and_then(|text| list(&text));
    let (Some(default), Some(online)) = (default, online) else {
        return Values::new();
    };
    let near = text(&files.device.join("local_cpus")).and_then(|text| mask(&text));
    let usual: BTreeSet<u32> = default.intersection(&online).copied().collect();
    // The kernel prefers the processors of the device's node.
    let usual_near: BTreeSet<u32> = near
        .iter()
        .flat_map(|near| usual.intersection(near))
        .copied()
        .collect();
    let vectors = files.vectors(dev).into_iter();
    let set = vectors.filter_map(|(number, name)| {
        let now = files.mask(number, "smp_affinity")?;
        let is_usual = now == usual || now == usual_near || now == default;
        if is_usual || files.mask(number, "affinity_hint").as_ref() == Some(&now) {
            return None;
        }
        let list = text(
            &files
                .irqs
                .join(number.to_string())
                .join("smp_affinity_list"),
        )?;
        Some((name, NicValue::Text(list)))
    });
    set.collect()
}

/// Writes the affinity of the vector of this name.
pub(super) fn write(
    files: &Files<'_>,
    dev: &IfName,
    name: &NicKey,
    list: &str,
) -> Result<(), Errno> {
    let vectors = files.vectors(dev);
    let mut numbers = vectors.iter().filter(|(_, one)| one == name);
    let (number, _) = numbers.next().ok_or(Errno::ENOENT)?;
    let file = files.irqs.join(number.to_string());
    let result = fs::write(file.join("smp_affinity_list"), list);
    result.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
}

/// The name of a vector with `*` for that of its device: `eth0-TxRx-0`, `ice-eth0-TxRx-0` and `eth0` have it as a whole word.
fn without(name: &str, dev: &str) -> String {
    let is_end = |rest: Option<char>| rest.is_none_or(|c| !c.is_ascii_alphanumeric());
    let found = name.match_indices(dev).find(|(at, _)| {
        let (before, after) = (&name[..*at], &name[at + dev.len()..]);
        is_end(before.chars().next_back()) && is_end(after.chars().next())
    });
    match found {
        Some((at, _)) => [&name[..at], DEVICE, &name[at + dev.len()..]].concat(),
        None => name.to_owned(),
    }
}

/// Processors as a mask: groups of 32 bits in hexadecimal, the lowest last.
fn mask(text: &str) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for (group, digits) in (0..).zip(text.rsplit(',')) {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        all.extend(
            (0..32)
                .filter(|at| bits >> at & 1 == 1)
                .map(|at| group * 32 + at),
        );
    }
    Some(all)
}

/// Processors as a list of ranges.
fn list(text: &str) -> Option<BTreeSet<u32>> {
    /// The kernel has no more.
    const MOST: u32 = 1 << 16;
    let mut all = BTreeSet::new();
    for range in text.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        all.extend(from..=to.min(MOST));
    }
    Some(all)
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

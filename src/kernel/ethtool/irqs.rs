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
pub(super) struct IrqFiles<'a> {
    /// `/proc/irq`.
    pub irqs: &'a Path,
    /// The device's folder in `/sys/bus/pci/devices`.
    pub device: PathBuf,
    /// `/sys/devices/system/cpu/online`.
    pub online: &'a Path,
}

impl IrqFiles<'_> {
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
        let name = dev
            .as_str()
            .map_or_else(|| name.clone(), |dev| without(&name, dev));
        NicKey::try_from(name).ok().filter(|_| is_only)
    }

    fn mask(&self, number: u32, file: &str) -> Option<BTreeSet<u32>> {
        mask(&text(&self.irqs.join(number.to_string()).join(file))?)
    }
}

/// The affinity of each vector for which neither the kernel's default nor the driver's hint has it.
pub(super) fn read(files: &IrqFiles<'_>, dev: &IfName) -> Values {
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

/// Each vector, with the processors that it can have.
pub(super) fn limits(files: &IrqFiles<'_>, dev: &IfName) -> Values {
    let online = text(files.online).map(NicValue::Text);
    let vectors = files.vectors(dev).into_iter();
    vectors
        .filter_map(|(_, name)| Some((name, online.clone()?)))
        .collect()
}

/// Writes the affinity of the vector of this name.
pub(super) fn write(
    files: &IrqFiles<'_>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> NicKey {
        NicKey::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_vector_is_known_without_the_name_of_its_device() {
        for (name, expected) in [
            ("eth0-TxRx-0", "*-TxRx-0"),
            ("ice-eth0-TxRx-0", "ice-*-TxRx-0"),
            ("eth0", "*"),
            ("eth01-rx-0", "eth01-rx-0"),
            ("mlx5_comp0@pci:0000:81:00.0", "mlx5_comp0@pci:0000:81:00.0"),
        ] {
            assert_eq!(without(name, "eth0"), expected);
        }
    }

    #[test]
    fn masks_and_lists_of_processors_are_sets() {
        assert_eq!(mask("00000001,80000002"), Some(BTreeSet::from([1, 31, 32])));
        assert_eq!(list("0-2,5"), Some(BTreeSet::from([0, 1, 2, 5])));
        for strange in ["", "x", "1,,2"] {
            assert_eq!((mask(strange), list(strange)), (None, None), "{strange}");
        }
    }

    #[test]
    fn only_an_affinity_that_somebody_set_is_read_and_it_is_written_to_the_vector_of_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let put = |file: &str, content: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        };
        put("irq/default_smp_affinity", "ff\n");
        put("online", "0-3\n");
        put("device/local_cpus", "3\n");
        for (number, name, affinity, list, hint) in [
            (40, "eth0", "f", "0-3", "0"),
            (41, "eth0-TxRx-0", "3", "0-1", "0"),
            (42, "eth0-TxRx-1", "4", "2", "4"),
            (43, "eth0-TxRx-2", "8", "3", "1"),
        ] {
            put(&format!("device/msi_irqs/{number}"), "msix");
            put(&format!("irq/{number}/{name}/x"), "");
            put(&format!("irq/{number}/smp_affinity"), affinity);
            put(&format!("irq/{number}/smp_affinity_list"), list);
            put(&format!("irq/{number}/affinity_hint"), hint);
        }
        let (irqs, online) = (root.join("irq"), root.join("online"));
        let files = IrqFiles {
            irqs: &irqs,
            device: root.join("device"),
            online: &online,
        };
        let dev = "eth0".parse().unwrap();
        let set = (key("*-TxRx-2"), NicValue::Text("3".to_owned()));
        assert_eq!(read(&files, &dev), Values::from([set]));
        let all = ["*", "*-TxRx-0", "*-TxRx-1", "*-TxRx-2"];
        let all = all.map(|name| (key(name), NicValue::Text("0-3".to_owned())));
        assert_eq!(limits(&files, &dev), Values::from(all));
        write(&files, &dev, &key("*-TxRx-0"), "1").unwrap();
        assert_eq!(
            fs::read_to_string(irqs.join("41/smp_affinity_list")).unwrap(),
            "1"
        );
        assert_eq!(write(&files, &dev, &key("*-rx-0"), "1"), Err(Errno::ENOENT));
        for strange in ["", "..", "../x", "virtio0"] {
            assert!(IrqFiles::of(strange).is_none(), "{strange}");
        }
    }
}

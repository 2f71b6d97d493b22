//! What is set on transmit queues in sysfs: limits of their bytes in flight and of their rate, and which processors and receive
//! queues use them.

use std::io::Write;
use std::path::Path;

use super::message::{Values, key};
use crate::kernel::Errno;
use crate::kernel::conf::files::Files;
use crate::model::net::link::nic::{NicKey, NicValue};
use crate::model::net::link::sysfs::SysfsValue;

/// The files of a queue with their initial values: `DQL_MAX_LIMIT` is that of the largest limit (`linux/dynamic_queue_limits.h`).
const FILES: [(&str, u64); 3] = [
    ("byte_queue_limits/limit_min", 0),
    ("byte_queue_limits/limit_max", DQL_MAX_LIMIT),
    ("tx_maxrate", 0),
];
/// Masks, initially empty. Some drivers set them when the device goes up.
const MASKS: [&str; 2] = ["xps_cpus", "xps_rxqs"];
const DQL_MAX_LIMIT: u64 = (u32::MAX / 2 - u32::MAX / 16) as u64;

/// What of a device is not initial, by names such as `tx-0/tx_maxrate`.
pub(super) fn read(device: &Files) -> Values {
    let mut values = Values::new();
    for queue in 0_u32.. {
        let Ok(files) = device.below(Path::new(&format!("queues/tx-{queue}"))) else {
            break;
        };
        for (file, initial) in FILES {
            let number = files.read::<64, u64>(file, |text| text.parse().ok());
            if let Some(number) = number.filter(|number| *number != initial) {
                let name = file.rsplit('/').next().unwrap_or(file);
                let name = key(&format!("tx-{queue}/{name}"));
                values.extend(name.map(|name| (name, NicValue::Number(number))));
            }
        }
        for file in MASKS {
            /// The kernel makes no value longer: a page.
            const LONGEST: usize = 4096;
            let mask =
                files.read::<LONGEST, _>(file, |text| SysfsValue::try_from(text.to_owned()).ok());
            if let Some(mask) = mask.filter(|mask| !mask.is_default()) {
                let name = key(&format!("tx-{queue}/{file}"));
                let mask = NicValue::Text(mask.as_str().to_owned());
                values.extend(name.map(|name| (name, mask)));
            }
        }
    }
    values
}

/// How many queues a device has, in each direction.
pub(super) fn numbers(device: &Files) -> Values {
    let count = |direction| {
        let is_there = |queue: &u64| {
            let folder = format!("queues/{direction}-{queue}");
            device.below(Path::new(&folder)).is_ok()
        };
        let count = (0..u64::from(u32::MAX)).take_while(is_there).count();
        Some((key(direction)?, NicValue::Number(count.try_into().ok()?)))
    };
    ["rx", "tx"].into_iter().filter_map(count).collect()
}

pub(super) fn write(device: &Files, name: &NicKey, value: &NicValue) -> Result<(), Errno> {
    let (queue, name) = name.as_str().split_once('/').ok_or(Errno::EINVAL)?;
    let number_of_queue = queue.strip_prefix("tx-").ok_or(Errno::EINVAL)?;
    let _: u32 = number_of_queue.parse().map_err(|_| Errno::EINVAL)?;
    let (file, text) = match value {
        NicValue::Number(number) => {
            let mut files = FILES.iter().map(|(file, _)| *file);
            let file = files.find(|file| file.rsplit('/').next() == Some(name));
            (file, number.to_string())
        }
        NicValue::Text(mask) => {
            let mask = SysfsValue::try_from(mask.clone()).map_err(|_| Errno::EINVAL)?;
            let file = MASKS.into_iter().find(|file| *file == name);
            (file, mask.as_str().to_owned())
        }
        _ => (None, String::new()),
    };
    let file = file.ok_or(Errno::EINVAL)?;
    let mut file = device.open_to_write(&format!("queues/{queue}/{file}"))?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_set_is_read_and_written_by_the_names_of_queues() {
        let folder = tempfile::tempdir().unwrap();
        let put = |queue: u32, file: &str, text: &str| {
            let file = folder.path().join(format!("queues/tx-{queue}/{file}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("{text}\n")).unwrap();
        };
        for queue in 0..3 {
            for (file, initial) in FILES {
                put(queue, file, &initial.to_string());
            }
            put(queue, "xps_cpus", "00,00000000");
            put(queue, "xps_rxqs", "0");
        }
        let files = Files::of(folder.path()).unwrap();
        assert_eq!(read(&files), Values::new());
        let number = |direction, count| (key(direction).unwrap(), NicValue::Number(count));
        assert_eq!(
            numbers(&files),
            Values::from([number("rx", 0), number("tx", 3)])
        );
        let set = [
            ("tx-0/limit_min", NicValue::Number(3000)),
            ("tx-0/xps_cpus", NicValue::Text("02,00000001".to_owned())),
            ("tx-1/limit_max", NicValue::Number(1_000_000_000)),
            ("tx-2/tx_maxrate", NicValue::Number(100)),
            ("tx-2/xps_rxqs", NicValue::Text("4".to_owned())),
        ];
        let set = set.map(|(name, value)| (key(name).unwrap(), value));
        for (name, value) in &set {
            write(&files, name, value).unwrap();
        }
        assert_eq!(read(&files), Values::from(set));
        for strange in [
            "tx-0",
            "tx-x/tx_maxrate",
            "tx-0/../../x",
            "rx-0/tx_maxrate",
            "tx-0/limit",
            "tx-0/xps_cpus",
        ] {
            let strange = key(strange).unwrap();
            let one = NicValue::Number(1);
            assert_eq!(
                write(&files, &strange, &one),
                Err(Errno::EINVAL),
                "{strange}"
            );
        }
        let no_mask = NicValue::Text("/1".to_owned());
        let name = key("tx-0/xps_cpus").unwrap();
        assert_eq!(write(&files, &name, &no_mask), Err(Errno::EINVAL));
    }
}

//! Limits of transmit queues in sysfs: of their bytes in flight, and of their rate.

use std::io::Write;
use std::path::Path;

use super::message::{Values, key};
use crate::kernel::Errno;
use crate::kernel::conf::files::Files;
use crate::model::net::link::nic::{NicKey, NicValue};

/// The files of a queue with their initial values: `DQL_MAX_LIMIT` is that of the largest limit (`linux/dynamic_queue_limits.h`).
const FILES: [(&str, u64); 3] = [
    ("byte_queue_limits/limit_min", 0),
    ("byte_queue_limits/limit_max", DQL_MAX_LIMIT),
    ("tx_maxrate", 0),
];
const DQL_MAX_LIMIT: u64 = (u32::MAX / 2 - u32::MAX / 16) as u64;

/// The limits of a device that are not the initial ones, by names such as `tx-0/tx_maxrate`.
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
    }
    values
}

pub(super) fn write(device: &Files, name: &NicKey, number: u64) -> Result<(), Errno> {
    let (queue, name) = name.as_str().split_once('/').ok_or(Errno::EINVAL)?;
    let number_of_queue = queue.strip_prefix("tx-").ok_or(Errno::EINVAL)?;
    let _: u32 = number_of_queue.parse().map_err(|_| Errno::EINVAL)?;
    let mut files = FILES.iter().map(|(file, _)| *file);
    let file = files
        .find(|file| file.ends_with(name))
        .ok_or(Errno::EINVAL)?;
    let mut file = device.open_to_write(&format!("queues/{queue}/{file}"))?;
    let written = file.write_all(number.to_string().as_bytes());
    written.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn limits_that_were_set_are_read_and_written_by_the_names_of_queues() {
        let folder = tempfile::tempdir().unwrap();
        let put = |queue: u32, file: &str, number: u64| {
            let file = folder.path().join(format!("queues/tx-{queue}/{file}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("{number}\n")).unwrap();
        };
        for queue in 0..3 {
            for (file, initial) in FILES {
                put(queue, file, initial);
            }
        }
        let files = Files::of(folder.path()).unwrap();
        assert_eq!(read(&files), Values::new());
        let limits = [
            ("tx-0/limit_min", 3000),
            ("tx-1/limit_max", 1_000_000_000),
            ("tx-2/tx_maxrate", 100),
        ];
        let limits = limits.map(|(name, number)| (key(name).unwrap(), number));
        for (name, number) in &limits {
            write(&files, name, *number).unwrap();
        }
        let expected = limits.map(|(name, number)| (name, NicValue::Number(number)));
        assert_eq!(read(&files), Values::from(expected));
        for strange in [
            "tx-0",
            "tx-x/tx_maxrate",
            "tx-0/../../x",
            "rx-0/tx_maxrate",
            "tx-0/limit",
        ] {
            let strange = key(strange).unwrap();
            assert_eq!(write(&files, &strange, 1), Err(Errno::EINVAL), "{strange}");
        }
    }
}

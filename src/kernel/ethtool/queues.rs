//! Limits of transmit queues in sysfs: of their bytes in flight, and of their rate.

use std::io::Write;
use std::path::Path;

use super::message::{Values, key};
use crate::kernel::Errno;
use crate::kernel::conf::sysfs::Sysfs;
use crate::model::IfName;
use crate::model::net::link::nic::{NicKey, NicValue};

/// The files of a queue with their initial values: `DQL_MAX_LIMIT` is that of the largest limit (`linux/dynamic_queue_limits.h`).
const FILES: [(&str, u64); 3] = [
    ("byte_queue_limits/limit_min", 0),
    ("byte_queue_limits/limit_max", DQL_MAX_LIMIT),
    ("tx_maxrate", 0),
];
const DQL_MAX_LIMIT: u64 = (u32::MAX / 2 - u32::MAX / 16) as u64;

/// The limits that are not the initial ones, by names such as `tx-0/tx_maxrate`.
pub(super) fn read(sysfs: &Sysfs, dev: &IfName) -> Values {
    let mut values = Values::new();
    let Ok(device) = sysfs.files(dev) else {
        return values;
    };
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

pub(super) fn write(dev: &IfName, name: &NicKey, number: u64) -> Result<(), Errno> {
    let (queue, name) = name.as_str().split_once('/').ok_or(Errno::EINVAL)?;
    let number_of_queue = queue.strip_prefix("tx-").ok_or(Errno::EINVAL)?;
    let _: u32 = number_of_queue.parse().map_err(|_| Errno::EINVAL)?;
    let mut files = FILES.iter().map(|(file, _)| *file);
    let file = files
        .find(|file| file.ends_with(name))
        .ok_or(Errno::EINVAL)?;
    let sysfs = Sysfs::here().map_err(|error| errno(&error))?;
    let device = sysfs.files(dev)?;
    let mut file = device.open_to_write(&format!("queues/{queue}/{file}"))?;
    let written = file.write_all(number.to_string().as_bytes());
    written.map_err(|error| errno(&error))
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

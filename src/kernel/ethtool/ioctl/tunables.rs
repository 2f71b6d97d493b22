//! Tunables of a device and of its PHY (`struct ethtool_tunable`).

use crate::kernel::Errno;
use crate::kernel::ethtool::ioctl::{Device, words};
use crate::kernel::ethtool::message::{Values, key};
use crate::model::net::link::nic::{NicKey, NicValue};

const ETHTOOL_GTUNABLE: u32 = 0x48;
const ETHTOOL_PHY_GTUNABLE: u32 = 0x4e;
/// `struct ethtool_tunable` without data.
const HEADER: usize = 16;

/// One tunable: its name in ethtool(8), the command that reads it, its id, and its length.
struct Tunable(&'static str, u32, u32, usize);

const TUNABLES: [Tunable; 7] = [
    Tunable("rx-copybreak", ETHTOOL_GTUNABLE, 1, 4),
    Tunable("tx-copybreak", ETHTOOL_GTUNABLE, 2, 4),
    Tunable("pfc-prevention-tout", ETHTOOL_GTUNABLE, 3, 2),
    Tunable("tx-buf-size", ETHTOOL_GTUNABLE, 4, 4),
    Tunable("downshift", ETHTOOL_PHY_GTUNABLE, 1, 1),
    Tunable("fast-link-down", ETHTOOL_PHY_GTUNABLE, 2, 1),
    Tunable("energy-detect-power-down", ETHTOOL_PHY_GTUNABLE, 3, 2),
];

impl Tunable {
    /// The command after that of reading writes.
    fn request(&self, writes: bool) -> Vec<u8> {
        let Self(_, command, id, length) = *self;
        // `ETHTOOL_TUNABLE_U8`, `_U16`, `_U32`.
        let (kind, size) = match length {
            1 => (1, 1),
            2 => (2, 2),
            _ => (3, 4),
        };
        words(&[command + u32::from(writes), id, kind, size])
    }

    fn read(&self, device: &Device<'_>) -> Result<u64, Errno> {
        let mut request = self.request(false);
        request.resize(HEADER + self.3, 0);
        let answer = device.call(&request)?;
        let value = answer.get(HEADER..).unwrap_or_default();
        Ok(match *value {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => return Err(Errno::EBADMSG),
        })
    }
}

/// Those that the device has.
pub(in crate::kernel::ethtool) fn read(device: &Device<'_>) -> Result<Values, Errno> {
    let mut values = Values::new();
    for tunable in &TUNABLES {
        match tunable.read(device) {
            Ok(number) => {
                let value = NicValue::Number(number);
                values.extend(key(tunable.0).map(|key| (key, value)));
            }
            Err(Errno::EOPNOTSUPP | Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(values)
}

pub(in crate::kernel::ethtool) fn write(
    device: &Device<'_>,
    name: &NicKey,
    number: u64,
) -> Result<(), Errno> {
    let tunable = TUNABLES.iter().find(|one| one.0 == name.as_str());
    let tunable = tunable.ok_or(Errno::EINVAL)?;
    let mut request = tunable.request(true);
    let bytes = match tunable.3 {
        1 => u8::try_from(number).map(|byte| vec![byte]),
        2 => u16::try_from(number).map(|number| number.to_ne_bytes().to_vec()),
        _ => u32::try_from(number).map(|number| number.to_ne_bytes().to_vec()),
    };
    request.extend(bytes.map_err(|_| Errno::EINVAL)?);
    device.call(&request).map(drop)
}

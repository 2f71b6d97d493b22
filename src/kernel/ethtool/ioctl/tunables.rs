//! Tunables of a device and of its PHY (`struct ethtool_tunable`).

use crate::kernel::Errno;
use crate::kernel::ethtool::ioctl::{IoctlDevice, words};
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

    fn read(&self, device: &IoctlDevice<'_>) -> Result<u64, Errno> {
        let mut request = self.request(false);
        request.resize(HEADER + self.3, 0);
        number_in(&device.call(&request)?).ok_or(Errno::EBADMSG)
    }

    fn change(&self, number: u64) -> Option<Vec<u8>> {
        let bytes = match self.3 {
            1 => vec![u8::try_from(number).ok()?],
            2 => u16::try_from(number).ok()?.to_ne_bytes().to_vec(),
            _ => u32::try_from(number).ok()?.to_ne_bytes().to_vec(),
        };
        Some([self.request(true), bytes].concat())
    }
}

fn number_in(answer: &[u8]) -> Option<u64> {
    Some(match *answer.get(HEADER..)? {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => return None,
    })
}

/// Those that the device has.
pub(in crate::kernel::ethtool) fn read(device: &IoctlDevice<'_>) -> Result<Values, Errno> {
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
    device: &IoctlDevice<'_>,
    name: &NicKey,
    number: u64,
) -> Result<(), Errno> {
    let tunable = TUNABLES.iter().find(|one| one.0 == name.as_str());
    let tunable = tunable.ok_or(Errno::EINVAL)?;
    let request = tunable.change(number).ok_or(Errno::EINVAL)?;
    device.call(&request).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::codec::nested::word;

    #[test]
    fn a_tunable_is_written_with_its_id_kind_and_length() {
        for (tunable, expected) in [
            (&TUNABLES[0], [0x49, 1, 3, 4]),
            (&TUNABLES[2], [0x49, 3, 2, 2]),
            (&TUNABLES[4], [0x4f, 1, 1, 1]),
        ] {
            let request = tunable.change(200).unwrap();
            let head = [0, 4, 8, 12].map(|at| word(&request, at).unwrap());
            assert_eq!(head, expected, "{}", tunable.0);
            assert_eq!(number_in(&request), Some(200));
        }
        assert_eq!(TUNABLES[4].change(256), None);
        assert_eq!(number_in(&[0; HEADER]), None);
    }
}

//! Which queue gets a packet (`struct ethtool_rxfh`).

use crate::kernel::Errno;
use crate::kernel::codec::nested::{set_word, word};
use crate::kernel::ethtool::ioctl::flows::Classifier;
use crate::kernel::ethtool::ioctl::{IoctlDevice, words};
use crate::kernel::ethtool::message::{Values, key};
use crate::model::net::limits;
use crate::model::net::link::nic::{NicKey, NicValue};
use crate::model::text::{from_hex, to_hex};

const ETHTOOL_GRSSH: u32 = 0x46;
const ETHTOOL_SRSSH: u32 = 0x47;
const ETHTOOL_GRXRINGS: u32 = 0x2d;
/// Places in the structure.
const TABLE_LENGTH: usize = 8;
const KEY_LENGTH: usize = 12;
const FUNCTION: usize = 16;
const LENGTH: usize = 24;
/// `ETH_RXFH_INDIR_NO_CHANGE`.
const SAME_TABLE: u32 = u32::MAX;
/// `ETH_RSS_HASH_*` in the order of their bits.
const FUNCTIONS: [&str; 3] = ["toeplitz", "xor", "crc32"];

/// The structure with table and key.
struct Spread(Vec<u8>);

impl Spread {
    fn read(device: &IoctlDevice<'_>) -> Result<Self, Errno> {
        /// Of a key: there are some of 52 bytes.
        const LONGEST: usize = 4096;
        let mut request = words(&[ETHTOOL_GRSSH]);
        request.resize(LENGTH, 0);
        let sizes = Self(device.call(&request)?);
        let (table, key) = (sizes.entries(), sizes.word(KEY_LENGTH) as usize);
        if table > limits::RSS_TABLE || key > LONGEST {
            return Err(Errno::E2BIG);
        }
        let mut request = sizes.0;
        // Only the main table.
        set_word(&mut request, 4, 0);
        request.resize(LENGTH + 4 * table + key, 0);
        device.call(&request).map(Self)
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.0, at).unwrap_or_default()
    }

    fn entries(&self) -> usize {
        self.word(TABLE_LENGTH) as usize
    }

    fn table(&self) -> Vec<u64> {
        let end = LENGTH.saturating_add(self.entries().saturating_mul(4));
        let entries = self.0.get(LENGTH..end).unwrap_or_default().chunks_exact(4);
        let numbers = entries.filter_map(|entry| word(entry, 0));
        numbers.map(u64::from).collect()
    }

    fn key(&self) -> &[u8] {
        let from = LENGTH.saturating_add(self.entries().saturating_mul(4));
        let end = from.saturating_add(self.word(KEY_LENGTH) as usize);
        self.0.get(from..end).unwrap_or_default()
    }

    fn values(&self, rings: u64) -> Values {
        let table = self.table();
        let is_own = is_drivers(&table, rings);
        let hash_key = Some(self.key()).filter(|bytes| bytes.iter().any(|byte| *byte != 0));
        let all = [
            ("function", self.function().map(NicValue::Text)),
            ("key", hash_key.map(|bytes| NicValue::Text(to_hex(bytes)))),
            ("table", (!is_own).then_some(NicValue::Numbers(table))),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, value)| Some((key(name)?, value?)))
            .collect()
    }

    fn function(&self) -> Option<String> {
        let bits = self.0.get(FUNCTION).copied().filter(|bits| *bits != 0)?;
        let named = (0..).zip(FUNCTIONS).find(|(at, _)| bits == 1 << at);
        Some(named.map_or_else(|| format!("{bits:#x}"), |(_, name)| name.to_owned()))
    }
}

/// Function, key and table. A table that is the driver's own spread is left out: written, it would be the user's from then on.
pub(in crate::kernel::ethtool) fn read(device: &IoctlDevice<'_>) -> Result<Values, Errno> {
    let spread = Spread::read(device)?;
    let rings = Classifier::query(device, ETHTOOL_GRXRINGS, 0).map(|answer| answer.data());
    Ok(spread.values(rings.unwrap_or_default()))
}

/// How many contexts beside the main one were made. The kernel numbers them from 1 on; most devices have none.
pub(in crate::kernel::ethtool) fn contexts(device: &IoctlDevice<'_>) -> usize {
    const MOST: u32 = 16;
    let is_there = |context: u32| {
        let mut request = words(&[ETHTOOL_GRSSH, context]);
        request.resize(LENGTH, 0);
        device.call(&request).map(drop)
    };
    let answers = (1..=MOST).map(is_there);
    answers
        .take_while(|answer| *answer != Err(Errno::EOPNOTSUPP))
        .flatten()
        .count()
}

/// What a structure of the kernel says, for a device with so many queues.
#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::kernel::ethtool) fn in_structure(bytes: &[u8], rings: u64) -> Values {
    Spread(bytes.to_vec()).values(rings)
}

/// Whether a driver spreads packets over its queues in this way by itself: in turn (`ethtool_rxfh_indir_default`), or in blocks
/// (igb, igc). Without a number of queues it is that of the queues in the table.
pub(in crate::kernel::ethtool) fn is_drivers(table: &[u64], rings: u64) -> bool {
    let largest = table.iter().max().copied().unwrap_or_default();
    let rings = if rings == 0 {
        largest.saturating_add(1)
    } else {
        rings
    };
    let length = table.len() as u64;
    let is_in_turn = || (0..).zip(table).all(|(at, queue)| *queue == at % rings);
    let in_blocks = |at: u64| at.checked_mul(rings).map(|at| at / length);
    let is_in_blocks = || {
        (0..)
            .zip(table)
            .all(|(at, queue)| Some(*queue) == in_blocks(at))
    };
    is_in_turn() || is_in_blocks()
}

/// Writes what is given, and nothing else: another table of the same length, function or key.
pub(in crate::kernel::ethtool) fn write(
    device: &IoctlDevice<'_>,
    values: &[(NicKey, NicValue)],
) -> Result<(), Errno> {
    let now = Spread::read(device)?;
    let mut request = now.0.get(..LENGTH).unwrap_or_default().to_vec();
    set_word(&mut request, 0, ETHTOOL_SRSSH);
    set_word(&mut request, TABLE_LENGTH, SAME_TABLE);
    set_word(&mut request, KEY_LENGTH, 0);
    if let Some(function) = request.get_mut(FUNCTION) {
        *function = 0;
    }
    let (mut table, mut hash_key) = (Vec::new(), Vec::new());
    for (key, value) in values {
        match (key.as_str(), value) {
            ("function", NicValue::Text(name)) => {
                let at = FUNCTIONS.iter().position(|one| one == name);
                let bits = at.ok_or(Errno::EOPNOTSUPP).map(|at| 1_u8 << at)?;
                *request.get_mut(FUNCTION).ok_or(Errno::EINVAL)? = bits;
            }
            ("key", NicValue::Text(text)) => hash_key = from_hex(text).ok_or(Errno::EINVAL)?,
            ("table", NicValue::Numbers(queues)) => table.clone_from(queues),
            _ => return Err(Errno::EINVAL),
        }
    }
    if !hash_key.is_empty() {
        set_word(&mut request, KEY_LENGTH, length_of(&hash_key)?);
    }
    if !table.is_empty() {
        set_word(&mut request, TABLE_LENGTH, length_of(&table)?);
    }
    for queue in table {
        let queue = u32::try_from(queue).map_err(|_| Errno::EINVAL)?;
        request.extend(queue.to_ne_bytes());
    }
    request.extend(hash_key);
    device.call(&request).map(drop)
}

fn length_of<T>(list: &[T]) -> Result<u32, Errno> {
    u32::try_from(list.len()).map_err(|_| Errno::EINVAL)
}

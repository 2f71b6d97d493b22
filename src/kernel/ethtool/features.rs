//! Offloads (`ethtool -K`): what is requested of those that the device can change.

use std::collections::BTreeSet;

use super::bits::{self, Bits};
use super::ioctl::{IoctlDevice, words};
use super::message::Values;
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, set_word, word};
use crate::kernel::plain::genl::NESTED;
use crate::model::net::link::nic::{NicKey, NicValue};

/// `ETHTOOL_MSG_FEATURES_GET`; that of setting is the next.
pub(super) const GET: u8 = 11;
/// `ETHTOOL_A_FEATURES_*`.
const HARDWARE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const NO_CHANGE: u16 = 5;
/// The same by ioctl(2): `ETHTOOL_GFEATURES`, `ETHTOOL_SFEATURES`, `ETH_SS_FEATURES`.
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const STRINGS: u32 = 4;
/// `struct ethtool_get_features_block` and `struct ethtool_set_features_block` in words.
const READ_BLOCK: usize = 4;
const WRITE_BLOCK: usize = 2;

/// Features by their names in the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// What is requested of each that can be changed.
    pub wanted: Values,
    /// Those whose present state is not the requested one.
    pub unmet: BTreeSet<NicKey>,
}

impl Features {
    /// `None` for an answer that is none.
    pub fn of(answer: &Nested) -> Option<Self> {
        let set = |number| -> Option<BTreeSet<NicKey>> {
            Some(Bits::parse(answer.get(number)?)?.set().collect())
        };
        let (wanted, active) = (set(WANTED)?, set(ACTIVE)?);
        let fixed = set(NO_CHANGE).unwrap_or_default();
        let changeable = set(HARDWARE)?.into_iter();
        let changeable = changeable.filter(|name| !fixed.contains(name));
        Some(Self::collect(changeable.map(|name| {
            let states = (wanted.contains(&name), active.contains(&name));
            (name, states)
        })))
    }

    /// By ioctl(2), on a kernel without the message.
    pub fn read(device: &IoctlDevice<'_>) -> Result<Self, Errno> {
        let names = device.strings(STRINGS)?;
        let blocks = names.len().div_ceil(32);
        let mut request = words(&[ETHTOOL_GFEATURES, count(blocks)]);
        request.resize(8 + blocks * READ_BLOCK * 4, 0);
        let answer = device.call(&request)?;
        let bit = |at: usize, which: usize| {
            let block = word(&answer, 8 + (at / 32 * READ_BLOCK + which) * 4);
            block.is_some_and(|block| block >> (at % 32) & 1 == 1)
        };
        let changeable = (0..names.len()).filter(|at| bit(*at, 0) && !bit(*at, 3));
        Ok(Self::collect(changeable.filter_map(|at| {
            let name = bits::key(names.get(at)?)?;
            Some((name, (bit(at, 1), bit(at, 2))))
        })))
    }

    fn collect(features: impl Iterator<Item = (NicKey, (bool, bool))>) -> Self {
        let mut all = Self::default();
        for (name, (wanted, active)) in features {
            if wanted != active {
                all.unmet.insert(name.clone());
            }
            all.wanted.insert(name, NicValue::Flag(wanted));
        }
        all
    }
}

/// Adds what is requested to a request.
pub(super) fn add_to(request: &mut Nested, values: &[(NicKey, NicValue)]) -> Option<()> {
    let flags: Option<Vec<_>> = values.iter().map(flag).collect();
    request.push(WANTED | NESTED, bits::change(flags?));
    Some(())
}

/// Requests features by ioctl(2).
pub(super) fn write(device: &IoctlDevice<'_>, values: &[(NicKey, NicValue)]) -> Result<(), Errno> {
    let names = device.strings(STRINGS)?;
    let blocks = names.len().div_ceil(32);
    let mut request = words(&[ETHTOOL_SFEATURES, count(blocks)]);
    request.resize(8 + blocks * WRITE_BLOCK * 4, 0);
    for value in values {
        let (name, is_on) = flag(value).ok_or(Errno::EINVAL)?;
        let mut all = names.iter();
        let is_it = |one: &Vec<u8>| bits::key(one).is_some_and(|key| key.as_str() == name);
        let at = all.position(is_it).ok_or(Errno::EOPNOTSUPP)?;
        let block = 8 + at / 32 * WRITE_BLOCK * 4;
        for (place, is_set) in [(block, true), (block + 4, is_on)] {
            let bits = word(&request, place).unwrap_or_default();
            set_word(&mut request, place, bits | u32::from(is_set) << (at % 32));
        }
    }
    device.call(&request).map(drop)
}

fn flag((key, value): &(NicKey, NicValue)) -> Option<(&str, bool)> {
    match value {
        NicValue::Flag(flag) => Some((key.as_str(), *flag)),
        _ => None,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

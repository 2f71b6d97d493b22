//! Sets of named bits in messages (`Documentation/networking/ethtool-netlink.rst`).

use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::plain::genl::NESTED;
use crate::model::net::link::nic::NicKey;

/// `ETHTOOL_A_BITSET_*`.
const NOMASK: u16 = 1;
const SIZE: u16 = 2;
const BITS: u16 = 3;
const VALUE: u16 = 4;
/// `ETHTOOL_A_BITSET_BITS_BIT`.
const BIT: u16 = 1;
/// `ETHTOOL_A_BITSET_BIT_*`.
const NAME: u16 = 2;
const IS_SET: u16 = 3;

/// The bits of a set and whether each is set. Without a mask it has only those that are set.
pub(super) struct Bits {
    pub named: Vec<(NicKey, bool)>,
    /// How many have a name that is no text: drivers choose them.
    pub nameless: usize,
}

impl Bits {
    pub fn parse(bitset: &[u8]) -> Option<Self> {
        let bitset = Nested::parse(bitset)?;
        let all_set = bitset.get(NOMASK).is_some();
        let bits = Nested::parse(bitset.get(BITS).unwrap_or_default())?;
        let mut parsed = Self {
            named: Vec::new(),
            nameless: 0,
        };
        for bit in bits.all(BIT) {
            let bit = Nested::parse(bit)?;
            match key(bit.get(NAME).unwrap_or_default()) {
                Some(name) => {
                    let is_set = all_set || bit.get(IS_SET).is_some();
                    parsed.named.push((name, is_set));
                }
                None => parsed.nameless += 1,
            }
        }
        Some(parsed)
    }

    /// The names of those that are set.
    pub fn set(self) -> impl Iterator<Item = NicKey> {
        let named = self.named.into_iter();
        named.filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

/// A name as drivers and the kernel write it, up to its first zero.
pub(super) fn key(name: &[u8]) -> Option<NicKey> {
    let end = name.iter().position(|byte| *byte == 0);
    let name = name.get(..end.unwrap_or(name.len()))?;
    let name = str::from_utf8(name).ok()?.to_owned();
    NicKey::try_from(name).ok()
}

/// The number of a set without names, of up to 32 bits.
pub(super) fn number(bitset: &[u8]) -> Option<u32> {
    word(Nested::parse(bitset)?.get(VALUE)?, 0)
}

/// A set of which exactly these bits are set. Linux 5.10 refuses one that is larger than its own, even if no bit beyond that is set.
pub(super) fn of_number(number: u32) -> Vec<u8> {
    let size = (u32::BITS - number.leading_zeros()).max(1);
    let mut bitset = Nested::default();
    bitset.push(NOMASK, Vec::new());
    bitset.push(SIZE, size.to_ne_bytes().to_vec());
    bitset.push(VALUE, number.to_ne_bytes().to_vec());
    bitset.bytes()
}

/// A set of which exactly the bits of these names are set.
pub(super) fn exactly<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bitset = Nested::default();
    bitset.push(NOMASK, Vec::new());
    bitset.push(
        BITS | NESTED,
        named(names.into_iter().map(|name| (name, true))),
    );
    bitset.bytes()
}

/// A change of these bits.
pub(super) fn change<'a>(bits: impl IntoIterator<Item = (&'a str, bool)>) -> Vec<u8> {
    let mut bitset = Nested::default();
    bitset.push(BITS | NESTED, named(bits));
    bitset.bytes()
}

fn named<'a>(bits: impl IntoIterator<Item = (&'a str, bool)>) -> Vec<u8> {
    let mut list = Nested::default();
    for (name, is_set) in bits {
        let mut bit = Nested::default();
        bit.push(NAME, [name.as_bytes(), &[0]].concat());
        if is_set {
            bit.push(IS_SET, Vec::new());
        }
        list.push(BIT | NESTED, bit.bytes());
    }
    list.bytes()
}

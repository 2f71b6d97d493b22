//! Speeds, duplex and autonegotiation.
//!
//! Which speeds are offered is a setting. Speed and duplex are only with autonegotiation off; otherwise they are what came of it.

use super::bits::{self, Bits};
use super::ioctl::{IoctlDevice, words};
use super::message::{Values, key};
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, set_word, word};
use crate::kernel::plain::genl::NESTED;
use crate::model::net::link::nic::{NicKey, NicValue};

/// `ETHTOOL_MSG_LINKMODES_GET`; that of setting is the next.
pub(super) const GET: u8 = 4;
/// `ETHTOOL_A_LINKMODES_*`.
const AUTONEG: u16 = 2;
const OURS: u16 = 3;
const SPEED: u16 = 5;
const DUPLEX: u16 = 6;
/// The name of a bit beside those of modes.
const CAN_NEGOTIATE: &str = "Autoneg";

/// What a device says of its link.
struct Modes {
    negotiates: Option<bool>,
    can_negotiate: bool,
    /// Whether it says which modes it has.
    is_listed: bool,
    advertised: Option<NicValue>,
    speed: Option<u32>,
    duplex: Option<u8>,
}

/// The settings in an answer. A virtual device without modes keeps any speed and duplex that it is given.
pub(super) fn of(answer: &Nested, is_virtual: bool) -> Values {
    let bits = answer.get(OURS).and_then(Bits::parse);
    let named = bits.map(|bits| bits.named).unwrap_or_default();
    let advertised = modes(&named).filter(|(_, is_set)| *is_set);
    let advertised = advertised.map(|(name, _)| name.to_owned()).collect();
    let byte = |number| answer.get(number).and_then(|value| value.first().copied());
    settings(
        Modes {
            negotiates: byte(AUTONEG).map(|byte| byte != 0),
            can_negotiate: named.iter().any(|(name, _)| name.as_str() == CAN_NEGOTIATE),
            is_listed: !named.is_empty(),
            advertised: Some(NicValue::Texts(advertised)),
            speed: answer.get(SPEED).and_then(|value| word(value, 0)),
            duplex: byte(DUPLEX),
        },
        is_virtual,
    )
}

/// The bits that are modes: others are ports, and what the link partners agree about pauses and errors.
fn modes(named: &[(NicKey, bool)]) -> impl Iterator<Item = (&str, bool)> {
    let named = named.iter().map(|(name, is_set)| (name.as_str(), *is_set));
    named.filter(|(name, _)| name.contains('/'))
}

fn settings(modes: Modes, is_virtual: bool) -> Values {
    /// `SPEED_UNKNOWN` and `DUPLEX_UNKNOWN`.
    const NO_SPEED: u32 = u32::MAX;
    const NO_DUPLEX: u8 = 0xff;
    let negotiates = modes.negotiates.unwrap_or_default();
    let is_set = !negotiates && (modes.can_negotiate || (is_virtual && !modes.is_listed));
    let speed = modes.speed.filter(|speed| is_set && *speed != NO_SPEED);
    let duplex = modes.duplex.filter(|duplex| is_set && *duplex != NO_DUPLEX);
    let duplex = duplex.map(|duplex| if duplex == 0 { "half" } else { "full" });
    let autoneg = modes.negotiates.filter(|_| modes.can_negotiate);
    let all = [
        ("autoneg", autoneg.map(NicValue::Flag)),
        ("advertise", modes.advertised.filter(|_| negotiates)),
        ("speed", speed.map(|speed| NicValue::Number(speed.into()))),
        ("duplex", duplex.map(|word| NicValue::Text(word.to_owned()))),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((key(name)?, value?)))
        .collect()
}

/// Adds settings to a request; `now` is the answer to the one that reads them: modes that are not wanted must be named, too.
pub(super) fn add_to(
    request: &mut Nested,
    values: &[(NicKey, NicValue)],
    now: &Nested,
) -> Option<()> {
    for (key, value) in values {
        match (key.as_str(), value) {
            ("autoneg", NicValue::Flag(flag)) => request.push(AUTONEG, vec![u8::from(*flag)]),
            ("speed", NicValue::Number(speed)) => {
                let speed = u32::try_from(*speed).ok()?;
                request.push(SPEED, speed.to_ne_bytes().to_vec());
            }
            ("duplex", NicValue::Text(word)) => {
                request.push(DUPLEX, vec![u8::from(word == "full")]);
            }
            ("advertise", NicValue::Texts(wanted)) => {
                let named = Bits::parse(now.get(OURS)?)?.named;
                let others = modes(&named).map(|(name, _)| name);
                let others = others.filter(|name| !wanted.iter().any(|one| one == name));
                let wanted = wanted.iter().map(|name| (name.as_str(), true));
                let all = wanted.chain(others.map(|name| (name, false)));
                request.push(OURS | NESTED, bits::change(all));
            }
            _ => return None,
        }
    }
    Some(())
}

/// The same by ioctl(2) (Linux 4.6), with modes as bits without names.
pub(super) struct LinkSettings(Vec<u8>);

const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_SLINKSETTINGS: u32 = 0x4d;

impl LinkSettings {
    /// Places in `struct ethtool_link_settings`.
    const LENGTH: usize = 48;
    const SPEED: usize = 4;
    const DUPLEX: usize = 8;
    const AUTONEG: usize = 11;
    const WORDS: usize = 15;
    /// `ETHTOOL_LINK_MODE_Autoneg_BIT`.
    const CAN_NEGOTIATE: u8 = 1 << 6;
    /// Bits of ports, of pauses and of error correction, in the first two words.
    const OTHER: [u32; 2] = [0x0011_6fc0, 0x000e_0000];

    pub fn read(device: &IoctlDevice<'_>) -> Result<Self, Errno> {
        let mut request = words(&[ETHTOOL_GLINKSETTINGS]);
        request.resize(Self::LENGTH, 0);
        // The kernel says first how many words its sets of modes have.
        let answer = device.call(&request)?;
        let count = answer.get(Self::WORDS).map(|count| count.cast_signed());
        let count = count.and_then(i8::checked_neg).filter(|count| *count > 0);
        let count = count.ok_or(Errno::EOPNOTSUPP)?.cast_unsigned();
        request.resize(Self::LENGTH + 3 * 4 * usize::from(count), 0);
        if let Some(words) = request.get_mut(Self::WORDS) {
            *words = count;
        }
        device.call(&request).map(Self)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// The set of supported modes (0) or of advertised ones (1).
    fn set(&self, which: usize) -> Option<&[u8]> {
        let length = usize::from(self.byte(Self::WORDS)?) * 4;
        let from = Self::LENGTH + which * length;
        self.0.get(from..from + length)
    }

    fn advertised(&self) -> Option<NicValue> {
        let words = self.set(1)?.chunks_exact(4).filter_map(|set| word(set, 0));
        let other = Self::OTHER.into_iter().chain(std::iter::repeat(0));
        let words: Vec<_> = words
            .zip(other)
            .map(|(word, other)| format!("{:08x}", word & !other))
            .collect();
        Some(NicValue::Text(words.join(",")))
    }

    pub fn settings(&self, is_virtual: bool) -> Values {
        let supported = self.set(0).unwrap_or_default();
        let first = supported.get(..4).and_then(|set| word(set, 0));
        let first = first.unwrap_or_default();
        settings(
            Modes {
                negotiates: self.byte(Self::AUTONEG).map(|byte| byte != 0),
                can_negotiate: first & u32::from(Self::CAN_NEGOTIATE) != 0,
                is_listed: supported.iter().any(|byte| *byte != 0),
                advertised: self.advertised(),
                speed: word(&self.0, Self::SPEED),
                duplex: self.byte(Self::DUPLEX),
            },
            is_virtual,
        )
    }

    pub fn write(
        mut self,
        device: &IoctlDevice<'_>,
        values: &[(NicKey, NicValue)],
    ) -> Result<(), Errno> {
        set_word(&mut self.0, 0, ETHTOOL_SLINKSETTINGS);
        for (key, value) in values {
            self.put(key.as_str(), value).ok_or(Errno::EINVAL)?;
        }
        device.call(&self.0).map(drop)
    }

    fn put(&mut self, key: &str, value: &NicValue) -> Option<()> {
        match (key, value) {
            ("autoneg", NicValue::Flag(flag)) => *self.0.get_mut(Self::AUTONEG)? = (*flag).into(),
            ("duplex", NicValue::Text(word)) => {
                *self.0.get_mut(Self::DUPLEX)? = u8::from(word == "full");
            }
            ("speed", NicValue::Number(speed)) => {
                set_word(&mut self.0, Self::SPEED, u32::try_from(*speed).ok()?);
            }
            ("advertise", NicValue::Text(words)) => {
                let length = usize::from(self.byte(Self::WORDS)?) * 4;
                let other = Self::OTHER.into_iter().chain(std::iter::repeat(0));
                for (at, (text, other)) in words.split(',').zip(other).enumerate() {
                    let place = Self::LENGTH + length + at * 4;
                    let wanted = u32::from_str_radix(text, 16).ok()? & !other;
                    let now = word(&self.0, place).filter(|_| at * 4 < length)?;
                    set_word(&mut self.0, place, wanted | now & other);
                }
            }
            _ => return None,
        }
        Some(())
    }
}

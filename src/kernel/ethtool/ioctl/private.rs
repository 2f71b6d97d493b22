//! Private flags by ioctl(2), on a kernel without the message.

use crate::kernel::Errno;
use crate::kernel::ethtool::bits;
use crate::kernel::ethtool::ioctl::{IoctlDevice, words};
use crate::kernel::ethtool::message::Reported;
use crate::model::net::link::nic::{NicKey, NicValue};

const ETHTOOL_GPFLAGS: u32 = 0x27;
const ETHTOOL_SPFLAGS: u32 = 0x28;
/// `ETH_SS_PRIV_FLAGS`.
const STRINGS: u32 = 2;

pub(in crate::kernel::ethtool) fn read(device: &IoctlDevice<'_>) -> Result<Reported, Errno> {
    let names = device.strings(STRINGS)?;
    if names.is_empty() {
        return Err(Errno::EOPNOTSUPP);
    }
    let flags = device.number(ETHTOOL_GPFLAGS)?;
    let mut reported = Reported::default();
    for (at, name) in (0..u32::BITS).zip(&names) {
        match bits::key(name) {
            Some(key) => {
                let value = NicValue::Flag(flags >> at & 1 == 1);
                reported.values.insert(key, value);
            }
            None => reported.nameless += 1,
        }
    }
    Ok(reported)
}

pub(in crate::kernel::ethtool) fn write(
    device: &IoctlDevice<'_>,
    key: &NicKey,
    is_on: bool,
) -> Result<(), Errno> {
    let names = device.strings(STRINGS)?;
    let mut names = (0..u32::BITS).zip(&names);
    let at = names.find(|(_, name)| bits::key(name).as_ref() == Some(key));
    let (at, _) = at.ok_or(Errno::EOPNOTSUPP)?;
    let flags = device.number(ETHTOOL_GPFLAGS)? & !(1 << at);
    let flags = flags | u32::from(is_on) << at;
    device.call(&words(&[ETHTOOL_SPFLAGS, flags])).map(drop)
}

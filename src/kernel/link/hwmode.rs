//! The mode of the bridge that a device has for its virtual functions and queues (`bridge link set dev eth0 hwmode`): the one setting
//! of a device that rtnetlink has. Some drivers report it only while there are virtual functions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use netlink_packet_core::{NLA_F_NESTED, NLM_F_ACK};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::net::if_::if_nametoindex;

use super::ports;
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::text::IFLA_AF_SPEC;
use crate::kernel::error::SetError;
use crate::kernel::plain::PlainSocket;
use crate::kernel::plain::genl::ask;
use crate::model::IfName;
use crate::model::net::link::nic::{NicKey, NicValue};

/// `AF_BRIDGE` (`linux/socket.h`).
const AF_BRIDGE: u8 = 7;
/// `struct ifinfomsg` in bytes, and where it has the ifindex.
const HEADER: usize = 16;
const INDEX: usize = 4;
/// `IFLA_BRIDGE_FLAGS` and `IFLA_BRIDGE_MODE` in `IFLA_AF_SPEC` (`linux/if_bridge.h`), and `BRIDGE_FLAGS_SELF`.
const FLAGS: u16 = 0;
const MODE: u16 = 1;
const SELF: u16 = 2;
/// `BRIDGE_MODE_*`.
const MODES: [&str; 2] = ["veb", "vepa"];
const KEY: &str = "mode";

/// The modes of all devices of the calling thread's namespace, by their ifindex.
pub(in crate::kernel) struct HardwareBridges(BTreeMap<u32, NicValue>);

impl HardwareBridges {
    /// Reads them; a kernel that does not answer has none.
    pub fn open_here() -> Self {
        let dump = PlainSocket::open(NETLINK_ROUTE).ok().and_then(|socket| {
            let dump = socket.dump(libc::RTM_GETLINK, &header(0));
            dump.ok()
        });
        let dump = dump.unwrap_or_default();
        Self(dump.iter().filter_map(|object| mode(object)).collect())
    }

    pub fn of(&self, index: u32) -> BTreeMap<NicKey, NicValue> {
        let mode = self.0.get(&index).cloned();
        let key = NicKey::try_from(KEY.to_owned()).ok();
        key.zip(mode).into_iter().collect()
    }
}

fn header(index: u32) -> Vec<u8> {
    let mut header = vec![0; HEADER];
    header[0] = AF_BRIDGE;
    header[INDEX..INDEX + 4].copy_from_slice(&index.to_ne_bytes());
    header
}

/// The ifindex of a device, and the mode that its driver reports.
fn mode(object: &[u8]) -> Option<(u32, NicValue)> {
    let attributes = Nested::parse(object.get(HEADER..)?)?;
    let spec = attributes.get(IFLA_AF_SPEC).and_then(Nested::parse)?;
    let mode = spec.get(MODE).filter(|_| ports::is_of_driver(&spec))?;
    let mode = u16::from_ne_bytes(mode.try_into().ok()?);
    let name = MODES.get(usize::from(mode))?;
    Some((word(object, INDEX)?, NicValue::Text((*name).to_owned())))
}

/// `bridge link set dev ... hwmode`.
pub(in crate::kernel) fn write(dev: &IfName, mode: &str) -> Result<(), SetError> {
    let index = if_nametoindex(OsStr::from_bytes(dev.as_bytes()))?;
    let request = request(index, mode).ok_or(Errno::EINVAL)?;
    let socket = PlainSocket::open(NETLINK_ROUTE);
    let socket =
        socket.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    let answer = ask(&socket, libc::RTM_SETLINK, NLM_F_ACK, &[request])?.pop();
    answer.unwrap_or(Err(Errno::EIO.into())).map(drop)
}

fn request(index: u32, mode: &str) -> Option<Vec<u8>> {
    let mode = MODES.iter().position(|name| *name == mode)?;
    let mut spec = Nested::default();
    spec.push(FLAGS, SELF.to_ne_bytes().to_vec());
    spec.push(MODE, u16::try_from(mode).ok()?.to_ne_bytes().to_vec());
    let mut attributes = Nested::default();
    attributes.push(IFLA_AF_SPEC | NLA_F_NESTED, spec.bytes());
    Some([header(index), attributes.bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_set() {
        for name in MODES {
            let read = mode(&request(7, name).unwrap());
            assert_eq!(read, Some((7, NicValue::Text(name.to_owned()))));
        }
        assert_eq!(request(7, "undef"), None);
    }

    /// A bridge sends no flags, and i40e without virtual functions no mode.
    #[test]
    fn a_message_without_a_mode_of_the_driver_has_none() {
        let about = |spec: &[(u16, [u8; 2])]| {
            let mut inside = Nested::default();
            for (number, value) in spec {
                inside.push(*number, value.to_vec());
            }
            let mut attributes = Nested::default();
            attributes.push(IFLA_AF_SPEC, inside.bytes());
            [header(7), attributes.bytes()].concat()
        };
        for spec in [
            &[][..],
            &[(FLAGS, [2, 0])],
            &[(MODE, [1, 0])],
            &[(FLAGS, [2, 0]), (MODE, [9, 0])],
        ] {
            assert_eq!(mode(&about(spec)), None, "{spec:?}");
        }
        let whole = about(&[(FLAGS, [2, 0]), (MODE, [1, 0])]);
        assert!(mode(&whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(mode(&whole[..end]), None);
        }
    }
}

//! `SIOCETHTOOL`: requests and answers as bytes, of which the first four are the command.

pub(super) mod flows;
pub(super) mod per_queue;
pub(super) mod private;
pub(super) mod rss;
pub(super) mod tunables;

use std::os::fd::OwnedFd;

use crate::kernel::codec::nested::{set_word, word};
use crate::kernel::{Errno, ifreq};
use crate::model::IfName;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// `ETH_GSTRING_LEN`.
const STRING: usize = 32;

/// A device of the calling thread's namespace.
pub(in crate::kernel::ethtool) struct IoctlDevice<'a> {
    socket: OwnedFd,
    pub name: &'a IfName,
}

/// A pointer to a request, padded to the size of the union in `struct ifreq`.
#[repr(C)]
struct Data {
    pointer: *mut u8,
    rest: [u8; 16],
}

impl<'a> IoctlDevice<'a> {
    pub fn open(name: &'a IfName) -> Result<Self, Errno> {
        Ok(Self {
            socket: ifreq::open()?,
            name,
        })
    }

    /// Sends a request; returns the answer. The kernel writes a structure of fixed size, or as many elements as the request has
    /// room for.
    pub fn call(&self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        /// Longer than any of these structures.
        const LONGEST: usize = 4096;
        let mut answer = request.to_vec();
        answer.resize(request.len() + LONGEST, 0);
        self.carry_out(&mut answer)?;
        answer.truncate(request.len());
        Ok(answer)
    }

    /// A request without any data but this number.
    pub fn number(&self, command: u32) -> Result<u32, Errno> {
        let answer = self.call(&words(&[command, 0]))?;
        word(&answer, 4).ok_or(Errno::EBADMSG)
    }

    /// The strings of a set (`ETH_SS_*`).
    pub fn strings(&self, set: u32) -> Result<Vec<Vec<u8>>, Errno> {
        /// There are fewer. The kernel writes as many as there are, whatever the request says.
        const MOST: usize = 4096;
        // The mask of sets has 64 bits, after a reserved word.
        let mut request = words(&[ETHTOOL_GSSET_INFO, 0, 0, 0, 0]);
        request
            .get_mut(8..16)
            .ok_or(Errno::EINVAL)?
            .copy_from_slice(&(1_u64 << (set & 63)).to_ne_bytes());
        let answer = self.call(&request)?;
        let count = word(&answer, 16).ok_or(Errno::EBADMSG)? as usize;
        if count == 0 || count > MOST {
            return Ok(Vec::new());
        }
        let mut strings = words(&[ETHTOOL_GSTRINGS, set, 0]);
        strings.resize(12 + 2 * MOST * STRING, 0);
        self.carry_out(&mut strings)?;
        let strings = strings.get(12..12 + count * STRING).unwrap_or_default();
        Ok(strings.chunks_exact(STRING).map(<[u8]>::to_vec).collect())
    }

    #[allow(unsafe_code)]
    fn carry_out(&self, request: &mut [u8]) -> Result<(), Errno> {
        let data = Data {
            pointer: request.as_mut_ptr(),
            rest: [0; 16],
        };
        // SAFETY: `ifr_data`, padded to the size of the union; it points to bytes that are alive and exclusively borrowed for the
        // call, and more than what the kernel writes for the command in its first word.
        unsafe { ifreq::ioctl(&self.socket, SIOCETHTOOL, self.name, data) }.map(drop)
    }
}

/// A structure of numbers of 32 bits.
pub(in crate::kernel::ethtool) fn words(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; numbers.len() * 4];
    for (at, number) in numbers.iter().enumerate() {
        set_word(&mut bytes, at * 4, *number);
    }
    bytes
}

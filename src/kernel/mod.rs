//! The only module that calls the kernel's network interfaces: rtnetlink, ethtool, namespaces, `/proc/sys/net`.
//!
//! Verbs have the names of ip(8), and errors keep their errno. Only scratch threads enter a namespace; every other thread
//! stays in the one in which it started, but for `enter_host`, after which this process becomes another program.

pub mod ability;
pub mod address;
mod admission;
pub(crate) mod attached;
mod bridging;
mod codec;
pub mod conf;
pub(crate) mod devices;
pub(crate) mod devlink;
pub mod dump;
mod error;
pub(crate) mod ethtool;
pub mod events;
pub(crate) mod foreign;
pub mod ifreq;
pub(crate) mod kmsg;
pub mod link;
pub mod netns;
mod plain;
pub(crate) mod reported;
pub mod route;
pub mod socket;
pub mod sriov;
pub mod state;
pub mod trace;
mod trace_words;
pub mod traffic;
pub(crate) mod udev;
pub mod wire;

pub use crate::kernel::codec::message::Request;
pub use crate::kernel::netns::host::enter_host;
pub use error::Error;
pub use netns::Netns;
pub use nix::errno::Errno;
pub use socket::Socket;

/// The errno of an error, or its message.
pub(crate) fn words(error: &std::io::Error) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.map_or_else(|| error.to_string(), |errno| errno.to_string())
}

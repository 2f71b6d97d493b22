//! The only module that calls the kernel's network interfaces: rtnetlink, ethtool, namespaces, `/proc/sys/net`.
//!
//! Verbs have the names of ip(8), and errors keep their errno. Only scratch threads enter a namespace; every other thread
//! stays in the one in which it started, but for `enter_host`, after which this process becomes another program.

pub mod ability;
pub mod address;
mod bond;
mod codec;
mod connected;
mod devconf;
pub mod dump;
mod error;
pub(crate) mod ethtool;
pub mod events;
mod files;
pub mod frame;
mod host;
pub mod icmp;
pub mod ifreq;
pub mod link;
mod message;
pub mod multicast;
pub mod neighbour;
mod nested;
pub mod netns;
pub mod nexthop;
pub mod nsid;
mod ntable;
pub mod packet;
pub mod route;
pub mod rule;
pub mod socket;
pub mod state;
pub mod sysctl;
pub mod sysfs;
mod text;
pub mod trace;
mod trace_words;
pub mod traffic;
pub(crate) mod udev;

pub use error::Error;
pub use host::enter_host;
pub use netns::Netns;
pub use nix::errno::Errno;
pub use socket::{Request, Socket};

/// The errno of an error, or its message.
pub(crate) fn words(error: &std::io::Error) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.map_or_else(|| error.to_string(), |errno| errno.to_string())
}

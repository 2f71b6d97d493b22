//! The only module that talks to the kernel: rtnetlink, ethtool, namespaces, `/proc/sys/net`.
//!
//! Verbs are named like `ip(8)`'s and keep the errno to the end. A namespace is a socket opened inside it by a
//! scratch thread; no other thread ever leaves the namespace it was started in.

pub mod ability;
pub mod address;
mod bond;
mod devconf;
pub mod dump;
mod ethtool;
pub mod events;
pub mod link;
pub mod neighbour;
pub mod netns;
pub mod nsid;
mod ntable;
pub mod packet;
pub mod route;
pub mod rule;
pub mod socket;
pub mod sysctl;
pub mod trace;

pub use netns::Netns;
pub use nix::errno::Errno;
pub use socket::{Error, Request, Socket};

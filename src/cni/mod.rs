//! Parses CNI documents: libcni's cache, plugin configurations, results.
//!
//! Documents in, [`Partial`](crate::model::Partial) out. This module reads no file and does not query the kernel.

mod cache;
mod config;
mod result;
mod tuning;

pub use cache::{CacheEntry, SOURCE, parse};
pub use result::of_origin;

use sha2::{Digest, Sha256};

use crate::model::{IfName, Mac};

/// A locally administered address derived from pod and interface, so that a second run uses the same one.
fn spare_mac(container: &str, ifname: &IfName) -> Mac {
    let digest = Sha256::digest([container.as_bytes(), b" ", ifname.as_bytes()].concat());
    let mut mac = [0; 6];
    mac.copy_from_slice(&digest[..6]);
    mac[0] = mac[0] & 0xfe | 0x02;
    Mac(mac)
}

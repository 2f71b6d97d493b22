//! What names a link by its ifindex: it names nothing once the link was recreated with another one.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::Bytes;
use crate::model::net::link::socket::Program;

/// An object that the kernel keeps with the ifindex of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexUser {
    /// A rule of nftables: `iif`, `oif`, `sdif`, `fib … oif`, also by the elements of a set or map.
    NftRule {
        /// The family of its table, such as `inet`.
        family: String,
        /// Its table.
        table: Bytes,
        /// Its chain.
        chain: Bytes,
        /// Its number in the table.
        handle: u64,
    },
    /// The selector of a policy or state of `IPsec` (`ip xfrm policy … dev`).
    XfrmSelector,
    /// Of a forwarding entry (`bridge fdb … via`).
    FdbDestination,
    /// `ip addrlabel … dev`.
    AddressLabel,
    /// `ip mptcp endpoint … dev`.
    MptcpEndpoint,
    /// A socket with `SO_BINDTODEVICE`, or on a link-local address.
    Socket {
        /// Its protocol and port, such as `udp port 53`.
        name: String,
        /// The programs that have it, as far as they are known.
        programs: Vec<Program>,
    },
}

impl IndexUser {
    /// Whether it is a socket of a program.
    pub(crate) fn is_socket(&self) -> bool {
        matches!(self, Self::Socket { .. })
    }
}

/// What names links of a namespace by their ifindex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct IndexUses {
    /// Its users by ifindex.
    pub users: BTreeMap<u32, Vec<IndexUser>>,
    /// What the kernel did not list, with its errno.
    #[serde(skip)]
    pub unread: Vec<String>,
}

impl IndexUses {
    /// So many ifindexes are kept, and so many users of each: a ruleset may have any number.
    const MOST: usize = 16 << 10;

    /// Adds one; 0 names no link.
    pub(crate) fn add(&mut self, index: u32, user: IndexUser) {
        if index == 0 || self.users.len() >= Self::MOST {
            return;
        }
        let users = self.users.entry(index).or_default();
        if users.len() < Self::MOST && users.last() != Some(&user) {
            users.push(user);
        }
    }
}

//! Rules of nftables that name links by their ifindex (`linux/netfilter/nf_tables.h`): the kernel stores the number for `iif "eth0"`, and
//! the name for `iifname "eth0"`.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_core::{NLA_HEADER_SIZE, NlasIterator};
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::chains::{self, NETDEV, text};
use crate::kernel::Errno;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::plain::PlainSocket;
use crate::model::Bytes;
use crate::model::net::link::index::{IndexUser, IndexUses};

/// `NFNL_SUBSYS_NFTABLES` in the high byte, `NFT_MSG_GETRULE`, `NFT_MSG_GETSETELEM` in the low one.
const RULES: u16 = 0x0a07;
const ELEMENTS: u16 = 0x0a0d;
/// `NFTA_LIST_ELEM`, and `NFTA_DATA_VALUE` of a value.
const ELEMENT: u16 = 1;
const VALUE: u16 = 1;
/// `struct nfgenmsg`.
const HEADER: usize = 4;
/// So many sets are read.
const MOST: usize = 1024;

/// Adds the rules of the calling thread's namespace.
pub(super) fn read(known: &mut IndexUses) {
    // The query would load the module.
    if !chains::is_loaded("nf_tables") {
        return;
    }
    if let Err(errno) = read_all(known) {
        known.unread.push(format!("nft rules: {errno}"));
    }
}

fn read_all(known: &mut IndexUses) -> Result<(), Errno> {
    let socket = PlainSocket::open(NETLINK_NETFILTER).map_err(|_| Errno::EPROTONOSUPPORT)?;
    let mut lookups: BTreeMap<SetKey, Vec<(ElementPart, IndexUser)>> = BTreeMap::new();
    socket.each_of_dump(RULES, &[0; HEADER], |message| {
        let Some((family, rule)) = rule(message) else {
            return;
        };
        let named = RuleReader::by(rule.expressions);
        if named.is_empty() {
            return;
        }
        let user = rule.user(family);
        for index in named.indexes {
            known.add(index, user.clone());
        }
        for (set, part) in named.lookups {
            let key = (family, rule.table.to_vec(), set.to_vec());
            lookups.entry(key).or_default().push((part, user.clone()));
        }
    })?;
    for (set, users) in lookups.into_iter().take(MOST) {
        let parts: BTreeSet<ElementPart> = users.iter().map(|(part, _)| *part).collect();
        let mut found = BTreeSet::new();
        socket.each_of_dump(ELEMENTS, &request(&set), |message| {
            let all = message.get(HEADER..).unwrap_or_default();
            let all = attributes(all).filter(|(number, _)| *number == 3);
            for (_, element) in all.flat_map(|(_, list)| attributes(list)) {
                let of_part = |part: &ElementPart| Some((*part, part.index(element)?));
                found.extend(parts.iter().filter_map(of_part));
            }
        })?;
        for (part, user) in users {
            let own = found.iter().filter(|(of, _)| *of == part);
            own.for_each(|(_, index)| known.add(*index, user.clone()));
        }
    }
    Ok(())
}

/// The family, the table and the name of a set.
type SetKey = (u8, Vec<u8>, Vec<u8>);

/// The request for the elements of a set: `NFTA_SET_ELEM_LIST_TABLE`, `NFTA_SET_ELEM_LIST_SET`.
fn request((family, table, set): &SetKey) -> Vec<u8> {
    let mut names = Nested::default();
    names.push(1, [table, &[0][..]].concat());
    names.push(2, [set, &[0][..]].concat());
    [&[*family, 0, 0, 0], names.bytes().as_slice()].concat()
}

/// The part of a set's elements that is an ifindex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ElementPart {
    /// At this place of the key, in the order of the network where the set has intervals.
    Key { place: usize, is_swapped: bool },
    /// What a map has for a key.
    Data,
}

impl ElementPart {
    /// The ifindex in an element. One that a packet has added expires, and needs no cure.
    fn index(self, element: &[u8]) -> Option<u32> {
        /// `NFTA_SET_ELEM_KEY`, `_DATA`, `_FLAGS` with `NFT_SET_ELEM_INTERVAL_END`, `_EXPIRATION`.
        const KEY: u16 = 1;
        const DATA: u16 = 2;
        const FLAGS: u16 = 3;
        const EXPIRATION: u16 = 5;
        let is_end = find(element, FLAGS)
            .and_then(number)
            .is_some_and(|one| one & 1 != 0);
        if is_end || find(element, EXPIRATION).is_some() {
            return None;
        }
        let (number, place, is_swapped) = match self {
            Self::Key { place, is_swapped } => (KEY, place, is_swapped),
            Self::Data => (DATA, 0, false),
        };
        let index = word(find(find(element, number)?, VALUE)?, place)?;
        Some(if is_swapped {
            u32::from_be(index)
        } else {
            index
        })
    }
}

/// A rule as the kernel reports it.
struct NftRule<'m> {
    table: &'m [u8],
    chain: &'m [u8],
    handle: u64,
    expressions: &'m [u8],
}

fn rule(message: &[u8]) -> Option<(u8, NftRule<'_>)> {
    let all = message.get(HEADER..)?;
    let handle = find(all, 3)?.try_into().ok()?;
    let rule = NftRule {
        table: text(find(all, 1)?),
        chain: text(find(all, 2)?),
        handle: u64::from_be_bytes(handle),
        expressions: find(all, 4)?,
    };
    Some((*message.first()?, rule))
}

impl NftRule<'_> {
    fn user(&self, family: u8) -> IndexUser {
        let family = match family {
            1 => "inet",
            2 => "ip",
            3 => "arp",
            NETDEV => "netdev",
            7 => "bridge",
            10 => "ip6",
            _ => "unknown",
        };
        IndexUser::NftRule {
            family: family.to_owned(),
            table: Bytes::from(self.table.to_vec()),
            chain: Bytes::from(self.chain.to_vec()),
            handle: self.handle,
        }
    }
}

/// What a register has, where that is an ifindex or may be one.
#[derive(Debug, Clone, Copy)]
enum Register<'m> {
    /// The ifindex of a link of the packet, as it is or in the order of the network.
    OfPacket {
        is_swapped: bool,
    },
    Value(u32),
    /// What this map has.
    OfMap(&'m [u8]),
}

const OF_PACKET: Register<'_> = Register::OfPacket { is_swapped: false };

/// What the expressions of a rule name.
#[derive(Debug, Default)]
struct RuleReader<'m> {
    indexes: BTreeSet<u32>,
    lookups: Vec<(&'m [u8], ElementPart)>,
    /// By number, in words of 32 bits.
    registers: BTreeMap<u32, Register<'m>>,
}

impl<'m> RuleReader<'m> {
    fn by(expressions: &'m [u8]) -> Self {
        let mut named = Self::default();
        for (_, expression) in attributes(expressions).filter(|(number, _)| *number == ELEMENT) {
            // `NFTA_EXPR_NAME`, `NFTA_EXPR_DATA`.
            let name = find(expression, 1).map(text).unwrap_or_default();
            named.take(name, find(expression, 2).unwrap_or_default());
        }
        named
    }

    fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.lookups.is_empty()
    }

    /// An expression loads registers, or consumes them; nft(8) loads anew what it needs again.
    fn take(&mut self, name: &[u8], data: &'m [u8]) {
        let register = |number| find(data, number).and_then(self::register);
        match name {
            b"meta" | b"fib" => {
                if let Some(to) = register(1) {
                    self.load(to, loads_link(name, data).then_some(OF_PACKET));
                } else {
                    self.registers.clear();
                }
            }
            b"immediate" => {
                let value = find(data, 2).and_then(|data| word(find(data, VALUE)?, 0));
                if let Some(to) = register(1) {
                    self.load(to, value.map(Register::Value));
                }
            }
            b"cmp" => {
                let value = || word(find(find(data, 3)?, VALUE)?, 0);
                let left = register(1).and_then(|from| self.registers.get(&from));
                // Else it is the end of a range.
                if let Some(Register::OfPacket { is_swapped: false }) = left {
                    self.indexes.extend(value());
                }
                self.registers.clear();
            }
            b"byteorder" => {
                let from = register(1).and_then(|from| self.registers.remove(&from));
                let is_swapped = matches!(from, Some(Register::OfPacket { .. }));
                if let (Some(to), true) = (register(2), is_swapped) {
                    self.load(to, Some(Register::OfPacket { is_swapped }));
                }
            }
            b"lookup" => self.look_up(data),
            // `NFTA_FWD_SREG_DEV`, `NFTA_DUP_SREG_DEV`.
            b"fwd" => self.send(register(1)),
            b"dup" => self.send(register(2)),
            // Other parts of a key.
            b"payload" | b"ct" | b"exthdr" | b"rt" | b"socket" | b"xfrm" | b"tunnel" => {}
            _ => self.registers.clear(),
        }
    }

    fn load(&mut self, to: u32, what: Option<Register<'m>>) {
        match what {
            Some(what) => drop(self.registers.insert(to, what)),
            None => drop(self.registers.remove(&to)),
        }
    }

    /// `NFTA_LOOKUP_SET`, `_SREG`, `_DREG`: the key begins in the register.
    fn look_up(&mut self, data: &'m [u8]) {
        let (set, from) = (find(data, 1), find(data, 2).and_then(register));
        let loaded = std::mem::take(&mut self.registers);
        let (Some(set), Some(from)) = (set.map(text), from) else {
            return;
        };
        for (number, what) in loaded {
            if let (Some(words), Register::OfPacket { is_swapped }) =
                (number.checked_sub(from), what)
            {
                let place = 4 * words as usize;
                self.lookups
                    .push((set, ElementPart::Key { place, is_swapped }));
            }
        }
        if let Some(to) = find(data, 3).and_then(register) {
            self.load(to, Some(Register::OfMap(set)));
        }
    }

    /// Packets are sent through the link in this register.
    fn send(&mut self, from: Option<u32>) {
        match from.and_then(|from| self.registers.get(&from)) {
            Some(Register::Value(index)) => drop(self.indexes.insert(*index)),
            Some(Register::OfMap(set)) => self.lookups.push((set, ElementPart::Data)),
            Some(Register::OfPacket { .. }) | None => {}
        }
        self.registers.clear();
    }
}

/// Whether it loads the ifindex of a link.
fn loads_link(name: &[u8], data: &[u8]) -> bool {
    let of = |attribute| find(data, attribute).and_then(number);
    match name {
        // `NFTA_META_KEY`: `NFT_META_IIF`, `NFT_META_OIF`, `NFT_META_SDIF`.
        b"meta" => matches!(of(2), Some(4 | 5 | 33)),
        // `NFTA_FIB_RESULT`: `NFT_FIB_RESULT_OIF`; `NFTA_FIB_FLAGS` without `NFTA_FIB_F_PRESENT`.
        _ => of(2) == Some(1) && of(3).is_none_or(|flags| flags & 1 << 5 == 0),
    }
}

/// The number of a register in words of 32 bits (`nft_parse_register` in `net/netfilter/nf_tables_api.c`).
fn register(value: &[u8]) -> Option<u32> {
    number(value).map(|register| match register {
        0..=4 => register * 4,
        _ => register - 4,
    })
}

/// A number in the order of the network.
fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

fn find(list: &[u8], number: u16) -> Option<&[u8]> {
    let mut all = attributes(list);
    all.find_map(|(of, value)| (of == number).then_some(value))
}

/// The attributes of a list, without a copy: there may be millions.
fn attributes(list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let all = NlasIterator::new(list).map_while(Result::ok);
    all.filter_map(|one| {
        let (number, end) = (one.kind(), usize::from(one.length()));
        Some((number, one.into_inner().get(NLA_HEADER_SIZE..end)?))
    })
}

#[cfg(test)]
mod tests;

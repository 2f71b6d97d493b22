//! The ways of a namespace's packets, beside addresses that change meanwhile.

use std::net::IpAddr;

use crate::kernel::dump;
use crate::kernel::route::lookup;
use crate::kernel::{Error, Socket};
use crate::model::net::address::{DADFAILED, TENTATIVE};
use crate::model::net::way::{Packet, PacketWay, WayExit};
use crate::model::{Address, NetState};

/// How often addresses are read again that may have been taken away before their ways were looked up.
const AGAIN: usize = 16;

/// Looks up the ways of packets. An address that was taken away since the addresses were read has none, and is no part of the state.
pub fn look_up(socket: &mut Socket, state: &mut NetState, packets: &[Packet]) -> Result<(), Error> {
    state.ways = lookup::ways(socket, &state.links, packets.to_vec())?;
    for _ in 0..AGAIN {
        let missed = missed(state);
        if missed.is_empty() {
            break;
        }
        let names = dump::by_index(&state.links);
        let now = dump::addresses(socket, &names, &mut Vec::new())?;
        let is_there = |to: IpAddr| now.iter().any(|one| one.local == to);
        let is_kept = |one: &Address| !missed.contains(&one.local) || is_there(one.local);
        state.addresses.retain(is_kept);
        state.ways = lookup::ways(socket, &state.links, packets.to_vec())?;
    }
    Ok(())
}

/// The usable addresses whose packets the namespace does not get itself.
fn missed(state: &NetState) -> Vec<IpAddr> {
    let has = |to: IpAddr| {
        let usable = |one: &Address| one.flags & (TENTATIVE | DADFAILED) == 0;
        let mut addresses = state.addresses.iter();
        addresses.any(|one| one.local == to && usable(one))
    };
    let is_missed = |way: &&PacketWay| {
        let is_local = matches!(way.exit, WayExit::Local { .. });
        !is_local && way.packet == Packet::plain(way.packet.to) && has(way.packet.to)
    };
    let missed = state.ways.iter().filter(is_missed);
    missed.map(|way| way.packet.to).collect()
}

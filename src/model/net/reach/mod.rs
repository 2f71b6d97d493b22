//! The packets of which a snapshot records where the kernel sends them: they show what a namespace reaches.

pub(crate) mod destinations;
mod packets;

pub(crate) use self::packets::packets;
use crate::model::NetState;
use crate::model::net::way::Packet;

impl NetState {
    /// The packets of which it has the ways.
    pub(crate) fn known_packets(&self) -> impl Iterator<Item = Packet> {
        self.ways.iter().map(|way| way.packet.clone())
    }

    /// With the ways of its own packets alone, and not of those that another state has.
    pub(crate) fn with_own_ways(mut self) -> Self {
        let packets = packets(&self);
        self.ways.retain(|way| packets.contains(&way.packet));
        self
    }
}

//! The packets of which a snapshot records where the kernel sends them: they show what a namespace reaches.

pub(crate) mod destinations;
mod packets;

pub(crate) use self::packets::packets;
use crate::model::net::way::{Packet, PacketWay, WayExit};
use crate::model::{AnswerRecord, NetState, NodeState};

/// The ways of packets to neighbours that have answered, of a namespace with this recorded state: straight out of a link. Packets of which
/// another link or a gateway is the recorded way are left out.
pub(crate) fn answered<'a>(
    answers: &'a [AnswerRecord],
    recorded: &'a NetState,
) -> impl Iterator<Item = PacketWay> + 'a {
    let known = answers.iter().filter(|one| one.has_answered());
    let direct = known.filter(|one| {
        let route = destinations::route_to(recorded, one.address);
        route.is_none_or(|route| route.hops() == [(None, Some(&one.dev))])
    });
    direct.map(|one| {
        let exit = WayExit::Link {
            dev: one.dev.clone(),
            via: None,
            table: None,
        };
        let packet = Packet::to_neighbour(one.address, &one.dev);
        PacketWay { packet, exit }
    })
}

impl NodeState {
    /// The packets by which it is known what the host reaches.
    pub(crate) fn known_packets(&self) -> Vec<Packet> {
        let answers = self.answers.of_host();
        let answered = answered(&answers, &self.state).map(|way| way.packet);
        self.state.known_packets().chain(answered).collect()
    }
}

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

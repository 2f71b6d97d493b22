//! The packets of which a snapshot records where the kernel sends them: they show what a namespace reaches.

pub(crate) mod destinations;
mod packets;

pub(crate) use self::packets::packets;
use crate::model::net::way::{Packet, PacketWay, WayExit};
use crate::model::{Address, AnswerRecord, NetState, NodeState};

/// The ways of packets to neighbours that have answered, of a namespace with this recorded state: straight out of a link. Packets of which
/// another link, a gateway or none is the recorded way are left out: in a subnet whose route is in a table of its own, a rule sends some there.
fn answered<'a>(
    answers: &'a [AnswerRecord],
    recorded: &'a NetState,
) -> impl Iterator<Item = PacketWay> + 'a {
    let known = answers.iter().filter(|one| one.has_answered());
    let direct = known.filter(|one| {
        let route = destinations::route_to(recorded, one.address);
        let is_direct = |way: &PacketWay| way.exit.hop() == Some((&one.dev, None));
        match route {
            Some(route) => route.hops() == [(None, Some(&one.dev))],
            None => others_on_link(recorded, one).all(is_direct),
        }
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

/// The ways, besides those that a namespace's record has, that its packets are to have now: to what has answered, and from its own
/// addresses.
pub(crate) fn expected(
    answers: &[AnswerRecord],
    recorded: &NetState,
    now: &NetState,
) -> Vec<PacketWay> {
    let answered = answered(answers, recorded);
    answered
        .chain(packets::from_sources(recorded, now))
        .collect()
}

/// The recorded ways of packets that the destination alone decides, in the subnets that this neighbour is in.
fn others_on_link<'a>(
    recorded: &'a NetState,
    neighbour: &'a AnswerRecord,
) -> impl Iterator<Item = &'a PacketWay> {
    let subnets = recorded.addresses.iter().filter_map(Address::subnet);
    let subnets: Vec<_> = subnets
        .filter(|net| net.contains(&neighbour.address))
        .collect();
    recorded.ways.iter().filter(move |way| {
        let to = way.packet.to;
        let is_in = subnets.iter().any(|net| net.contains(&to));
        let is_local = matches!(way.exit, WayExit::Local { .. });
        is_in
            && way.packet == Packet::plain(to)
            && !is_local
            && destinations::route_to(recorded, to).is_none()
    })
}

/// The packets by which it is known what a namespace with this record and this state reaches.
pub(crate) fn known_packets(
    answers: &[AnswerRecord],
    recorded: &NetState,
    now: &NetState,
) -> Vec<Packet> {
    let others = expected(answers, recorded, now);
    let others = others.into_iter().map(|way| way.packet);
    recorded.known_packets().chain(others).collect()
}

impl NodeState {
    /// The packets by which it is known what the host, with this state now, reaches.
    pub(crate) fn known_packets(&self, now: &NetState) -> Vec<Packet> {
        known_packets(&self.answers.of_host(), &self.state, now)
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

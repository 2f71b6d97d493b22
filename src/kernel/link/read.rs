//! Reading links: from the kernel's messages to the model.

use netlink_packet_core::{NlasIterator, Parseable, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoKind, InfoPortData, LinkAttribute, LinkFlags,
    LinkInfo, LinkLayerType, LinkMessage, LinkMode, LinkXdp, State, XdpAttached,
};

use super::{data, kind};
use crate::kernel::codec::text;
use crate::kernel::codec::text::LinkText;
use crate::kernel::conf::devconf;
use crate::kernel::link::bond;
use crate::kernel::{Errno, Error, Socket};
use crate::model::fidelity::{BOND_PORT, BRIDGE_PORT};
use crate::model::net::link::{Flags, OffloadLimit, Queues, VlanId};
use crate::model::net::raw::RawAttribute;
use crate::model::{IfName, Link, LinkKind, Mac};

/// A link of one namespace's dump, which refers to other links by ifindex.
#[derive(Debug)]
pub(in crate::kernel) struct RawLink {
    pub link: Link,
    pub parent: Option<u32>,
    /// The attributes of its data with the ifindexes of its lower devices, of which the first is the parent.
    pub lower: Vec<RawAttribute>,
    pub parent_netns: Option<i32>,
    pub master: Option<u32>,
    pub primary: Option<u32>,
    pub backup: Option<u32>,
    /// Whether a bridge runs a spanning tree.
    pub has_stp: bool,
    pub has_hardware: bool,
    /// Which port of its device it is.
    pub port: Option<String>,
    /// What the model cannot hold. A link of a known kind is of an [`Other`](LinkKind::Other) one then.
    pub flaws: Vec<String>,
}

/// The name of a link.
pub(in crate::kernel) fn name(message: &LinkMessage) -> Option<IfName> {
    let mut texts = message.attributes.iter().filter_map(LinkText::of);
    texts.find_map(|text| match text {
        LinkText::Name(name) => IfName::try_from(name).ok(),
        _ => None,
    })
}

/// The link of a namespace that has the message's index or name.
pub(super) fn get(socket: &mut Socket, message: LinkMessage) -> Result<LinkMessage, Error> {
    match socket.get(RouteNetlinkMessage::GetLink(message))? {
        RouteNetlinkMessage::NewLink(link) => Ok(link),
        other => Err(Error::Decode(format!(
            "the answer to RTM_GETLINK is no link: {other:?}"
        ))),
    }
}

/// Whether the link of that index has carrier, and the kernel has not declared it operational yet. A work queue does that, up
/// to a second later, and later on a busy machine (`net/core/link_watch.c`). A link that is gone is not.
pub fn is_coming_up(socket: &mut Socket, index: u32) -> Result<bool, Error> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    match get(socket, message) {
        Err(Error::Kernel(Errno::ENODEV)) => Ok(false),
        link => Ok(is_undeclared(&link?)),
    }
}

/// Without carrier these are the states of a link; with it, only until the kernel has declared another one.
fn is_undeclared(link: &LinkMessage) -> bool {
    link.header.flags.contains(LinkFlags::LowerUp)
        && link.attributes.iter().any(|attribute| {
            matches!(
                attribute,
                LinkAttribute::OperState(State::Down | State::LowerLayerDown)
            )
        })
}

/// Reads one link of a dump; `None` when it has no name.
pub(in crate::kernel) fn parse(message: LinkMessage) -> Option<RawLink> {
    let name = name(&message)?;
    let LinkMessage {
        header, attributes, ..
    } = message;
    let is_ether = header.link_layer_type == LinkLayerType::Ether;
    let kind = if header.flags.contains(LinkFlags::Loopback) {
        LinkKind::Loopback
    } else {
        LinkKind::Physical
    };
    let mut link = Link::plain(name, kind);
    link.index = header.index;
    link.flags = flags(header.flags);
    let mut raw = RawLink {
        link,
        parent: None,
        lower: Vec::new(),
        parent_netns: None,
        master: None,
        primary: None,
        backup: None,
        has_stp: false,
        has_hardware: false,
        port: None,
        flaws: Vec::new(),
    };
    for attribute in attributes {
        raw.take(attribute);
    }
    raw.has_hardware = is_ether && raw.link.kind == LinkKind::Physical;
    Some(raw)
}

/// Reads a link of which netlink-packet-route refuses some attributes: they are flaws, and all others count.
pub(in crate::kernel) fn parse_in_part(message: &[u8]) -> Option<RawLink> {
    let (header, attributes) = message
        .get(text::MESSAGE_HEADER..)?
        .split_at_checked(text::LINK_HEADER)?;
    let mut message = LinkMessage::parse(header).ok()?;
    let mut flaws = Vec::new();
    for attribute in NlasIterator::new(attributes).map_while(Result::ok) {
        let family = message.header.interface_family;
        match LinkAttribute::parse_with_param(&attribute, family) {
            Ok(attribute) => message.attributes.push(attribute),
            Err(why) => {
                flaws.push(format!("attribute {}: {why}", attribute.kind()));
                if attribute.kind() == IFLA_LINKINFO {
                    let kind = LinkInfo::Kind(kind_alone(attribute.value()));
                    message.attributes.push(LinkAttribute::LinkInfo(vec![kind]));
                }
            }
        }
    }
    let mut raw = parse(message)?;
    raw.flaws.extend(flaws);
    Some(raw)
}

const IFLA_LINKINFO: u16 = 18;
/// The kind of a link whose data cannot be decoded.
fn kind_alone(infos: &[u8]) -> InfoKind {
    let mut infos = NlasIterator::new(infos).map_while(Result::ok);
    let kind = infos.find(|info| info.kind() == text::IFLA_INFO_KIND);
    let kind = kind.and_then(|kind| InfoKind::parse(&kind).ok());
    kind.unwrap_or_else(|| InfoKind::Other("unknown".to_owned()))
}

impl RawLink {
    fn take(&mut self, attribute: LinkAttribute) {
        let link = &mut self.link;
        match LinkText::of(&attribute) {
            Some(LinkText::Alias(alias)) => link.alias = Some(alias),
            Some(LinkText::Altnames(names)) => link.altnames = names,
            Some(LinkText::Name(_)) | None => {}
        }
        match attribute {
            LinkAttribute::Address(bytes) => link.mac = Mac::from_slice(&bytes),
            LinkAttribute::Broadcast(bytes) => {
                link.broadcast =
                    Mac::from_slice(&bytes).filter(|mac| mac.0 != [0xff; 6] && mac.0 != [0; 6]);
            }
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::TxQueueLen(length) => link.txqueuelen = length,
            LinkAttribute::Group(group) => link.group = group,
            // noop: the link is down and has no qdisc yet.
            LinkAttribute::Qdisc(kind) => link.qdisc = Some(kind).filter(|kind| kind != "noop"),
            LinkAttribute::NumTxQueues(tx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).tx = tx;
            }
            LinkAttribute::NumRxQueues(rx) => {
                link.queues.get_or_insert(Queues { tx: 1, rx: 1 }).rx = rx;
            }
            LinkAttribute::Link(index) => self.parent = Some(index).filter(|index| *index != 0),
            LinkAttribute::LinkNetNsId(id) => self.parent_netns = Some(id),
            LinkAttribute::Controller(index) => self.master = Some(index),
            LinkAttribute::LinkInfo(infos) => self.take_infos(infos),
            LinkAttribute::Other(raw) if text::is(&raw, text::IFLA_AF_SPEC) => {
                self.take_settings(&text::stored(&raw));
            }
            LinkAttribute::Xdp(parts) if has_program(&parts) => {
                let number = parts.iter().find_map(program_number);
                link.traffic.push_program("XDP program".to_owned(), number);
            }
            LinkAttribute::PhysPortName(name) => self.port = Some(name),
            LinkAttribute::ProtoDown(value) => link.protodown = value != 0,
            LinkAttribute::Mode(mode) => link.dormant = mode == LinkMode::Dormant,
            LinkAttribute::GsoMaxSize(value) => self.limit(OffloadLimit::GsoMaxSize, value),
            LinkAttribute::GsoMaxSegs(value) => self.limit(OffloadLimit::GsoMaxSegs, value),
            LinkAttribute::GroMaxSize(value) => self.limit(OffloadLimit::GroMaxSize, value),
            LinkAttribute::GsoIpv4MaxSize(value) => {
                self.limit(OffloadLimit::GsoIpv4MaxSize, value);
            }
            LinkAttribute::GroIpv4MaxSize(value) => {
                self.limit(OffloadLimit::GroIpv4MaxSize, value);
            }
            _ => {}
        }
    }

    fn limit(&mut self, limit: OffloadLimit, value: u32) {
        if value != limit.default_value() {
            self.link.offload.insert(limit, value);
        }
    }

    fn take_settings(&mut self, raw: &RawAttribute) {
        if self.link.kind == LinkKind::Loopback {
            return;
        }
        match devconf::parse(&raw.value) {
            Ok((sysctls, token)) => (self.link.sysctls, self.link.token) = (sysctls, token),
            Err(why) => self.flaws.push(format!("attribute {}: {why}", raw.number)),
        }
    }

    fn take_bridge(&mut self, infos: &[InfoBridge]) {
        for info in infos {
            match info {
                InfoBridge::StpState(state) => self.has_stp = *state != BridgeStpState::Disabled,
                InfoBridge::VlanFiltering(is_on) => self.link.vlan_filtering = *is_on,
                InfoBridge::VlanDefaultPvid(id) => {
                    self.link.default_pvid = VlanId::try_from(*id).ok().filter(|_| *id != 0);
                }
                _ => {}
            }
        }
    }

    fn take_infos(&mut self, infos: Vec<LinkInfo>) {
        for info in infos {
            let kind = match info {
                LinkInfo::Kind(kind) => Ok(LinkKind::other(kind.to_string())),
                LinkInfo::Other(raw) if text::is(&raw, text::IFLA_INFO_DATA) => {
                    self.take_data(&text::stored(&raw).value);
                    continue;
                }
                LinkInfo::Data(InfoData::Bond(infos)) => {
                    let (parsed, primary) = bond::parse(&infos);
                    self.primary = primary;
                    Ok(LinkKind::Bond(parsed))
                }
                LinkInfo::Data(InfoData::Bridge(infos)) => {
                    self.take_bridge(&infos);
                    continue;
                }
                LinkInfo::Data(data) => match kind::parse(&data) {
                    Some(kind) => kind,
                    None => continue,
                },
                LinkInfo::PortData(InfoPortData::BridgePort(infos)) => {
                    self.link.port = data::port_settings(&infos, &BRIDGE_PORT);
                    self.backup = data::backup_port(&infos);
                    self.link.blocked = infos.iter().any(data::blocks);
                    continue;
                }
                LinkInfo::PortData(InfoPortData::BondPort(infos)) => {
                    self.link.port = data::port_settings(&infos, &BOND_PORT);
                    continue;
                }
                _ => continue,
            };
            match kind {
                Ok(kind) => self.link.kind = kind,
                Err(flaw) => self.flaws.push(flaw),
            }
        }
    }
}

fn flags(flags: LinkFlags) -> Flags {
    Flags {
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp | LinkFlags::Running),
        noarp: flags.contains(LinkFlags::Noarp),
        promisc: flags.contains(LinkFlags::Promisc),
        allmulti: flags.contains(LinkFlags::Allmulti),
        multicast: flags.contains(LinkFlags::Multicast),
        dynamic: flags.contains(LinkFlags::Dynamic),
        notrailers: flags.contains(LinkFlags::Notrailers),
    }
}

/// Whether an XDP program is attached to the link.
fn has_program(parts: &[LinkXdp]) -> bool {
    parts
        .iter()
        .any(|part| matches!(part, LinkXdp::Attached(how) if *how != XdpAttached::None))
}

/// The kernel's number for it, which it does not report if several are attached.
fn program_number(part: &LinkXdp) -> Option<u32> {
    match part {
        LinkXdp::ProgId(number)
        | LinkXdp::DrvProgId(number)
        | LinkXdp::SkbProgId(number)
        | LinkXdp::HwProgId(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Emitable};

    use super::*;

    const IFLA_MTU: u16 = 4;
    const IFLA_LINK: u16 = 5;
    const IFLA_INFO_DATA: u16 = text::IFLA_INFO_DATA;
    const IFLA_INFO_KIND: u16 = text::IFLA_INFO_KIND;
    const IFLA_MACVLAN_MODE: u16 = 1;

    fn attributes(all: &[(u16, &[u8])]) -> Vec<u8> {
        let all: Vec<_> = all
            .iter()
            .map(|(kind, value)| DefaultNla::new(*kind, value.to_vec()))
            .collect();
        let mut bytes = vec![0; all.as_slice().buffer_len()];
        all.as_slice().emit(&mut bytes);
        bytes
    }

    /// A message of the kernel about link 7, `büro` in Latin-1: a macvlan in bridge mode on link 3.
    fn message(mtu: &[u8], mode: &[u8]) -> Vec<u8> {
        let data = attributes(&[(IFLA_MACVLAN_MODE, mode)]);
        let info = attributes(&[(IFLA_INFO_KIND, b"macvlan\0"), (IFLA_INFO_DATA, &data)]);
        let body = attributes(&[
            (3, b"b\xfcro\0"),
            (IFLA_MTU, mtu),
            (IFLA_LINK, &3_u32.to_ne_bytes()),
            (20, b"B\xfcro\0"),
            (52, &attributes(&[(53, b"b\xfcro-lan\0"), (53, b"lan\0")])),
            (IFLA_LINKINFO, &info),
        ]);
        let header = [0, 0, 1, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let length = u32::try_from(text::MESSAGE_HEADER + header.len() + body.len()).unwrap();
        let mut message = length.to_ne_bytes().to_vec();
        message.extend([16, 0, 0, 0]);
        message.extend([0; 8]);
        message.extend(header);
        message.extend(body);
        text::with_raw_texts(&message).into_owned()
    }

    const MTU: &[u8] = &1400_u32.to_ne_bytes();
    const BRIDGE: &[u8] = &4_u32.to_ne_bytes();

    #[test]
    fn carrier_counts_before_the_kernel_has_declared_the_link_operational() {
        let up = LinkFlags::Up | LinkFlags::LowerUp;
        let cases = [
            (up, State::Down, true),
            (up, State::LowerLayerDown, true),
            // Until then 802.1X has not let it in.
            (up, State::Dormant, false),
            (up | LinkFlags::Running, State::Up, false),
            (LinkFlags::Up, State::Down, false),
        ];
        for (flags, state, expected) in cases {
            let mut link = LinkMessage::default();
            link.header.flags = flags;
            link.attributes.push(LinkAttribute::OperState(state));
            assert_eq!(is_undeclared(&link), expected, "{flags:?} {state:?}");
        }
    }

    #[test]
    fn what_cannot_be_decoded_costs_only_itself() {
        let (short, unknown) = ([1_u8], 99_u32.to_ne_bytes());
        let cases: [(&[u8], &[u8], u32, bool); 3] = [
            (&short, BRIDGE, 1500, true),
            (MTU, &short, 1400, false),
            (MTU, &unknown, 1400, false),
        ];
        for (mtu, mode, read_mtu, is_macvlan) in cases {
            let message = message(mtu, mode);
            let RawLink {
                link,
                parent,
                flaws,
                has_hardware,
                ..
            } = parse_in_part(&message).unwrap();
            assert_eq!((link.index, link.mtu, parent), (7, read_mtu, Some(3)));
            assert_eq!(link.name.as_bytes(), b"b\xfcro");
            assert_eq!(link.kind.name(), "macvlan");
            assert_eq!(link.kind.can_be_made(), is_macvlan, "{:?}", link.kind);
            assert_eq!(flaws.len(), 1, "{flaws:?}");
            assert!(!has_hardware);
        }
    }
}

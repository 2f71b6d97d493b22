//! Rules: between rtnetlink messages and the model (`ip rule`).

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::RouteRealm;
use netlink_packet_route::rule::{
    RuleAttribute, RuleFlags, RuleHeader, RuleMessage, RulePortRange, RuleUidRange,
};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};

use crate::kernel::Request;
use crate::kernel::codec::text;
use crate::model::{Bytes, Rule};

/// Reads one rule of a dump; `None` for families other than IP, an error for a rule that the model cannot hold.
pub(crate) fn parse(message: RuleMessage) -> Result<Option<Rule>, String> {
    let header = message.header;
    let ipv6 = match header.family {
        AddressFamily::Inet => false,
        AddressFamily::Inet6 => true,
        _ => return Ok(None),
    };
    let mut rule = Rule {
        ipv6,
        tos: header.tos,
        action: header.action.into(),
        table: header.table.into(),
        invert: header.flags.contains(RuleFlags::Invert),
        ..Rule::default()
    };
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Source(ip) => rule.from = Some((ip, header.src_len)),
            RuleAttribute::Destination(ip) => rule.to = Some((ip, header.dst_len)),
            RuleAttribute::Other(raw) => match text::read(&raw) {
                (text::FRA_IIFNAME, name) => rule.iif = Some(name),
                (text::FRA_OIFNAME, name) => rule.oif = Some(name),
                _ => rule.extra.push(text::stored(&raw)),
            },
            RuleAttribute::Goto(target) => rule.goto = Some(target),
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::FwMark(mark) => rule.fwmark = Some(mark),
            RuleAttribute::FwMask(mask) => rule.fwmask = Some(mask),
            RuleAttribute::Realm(realm) => rule.realms = Some((realm.source, realm.destination)),
            RuleAttribute::TunId(id) => rule.tun_id = Some(id),
            RuleAttribute::SuppressIfGroup(group) => {
                rule.suppress_group = Some(group).filter(|g| *g != u32::MAX);
            }
            RuleAttribute::SuppressPrefixLen(len) => {
                rule.suppress_prefix_len = Some(len).filter(|len| *len != u32::MAX);
            }
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::L3MDev(on) => rule.l3mdev = on,
            RuleAttribute::UidRange(range) => rule.uid_range = Some((range.start, range.end)),
            RuleAttribute::Protocol(protocol) => rule.protocol = Some(protocol.into()),
            RuleAttribute::IpProtocol(protocol) => {
                rule.ip_proto = Some(i32::from(protocol).to_le_bytes()[0]);
            }
            RuleAttribute::SourcePortRange(range) => rule.sport = Some((range.start, range.end)),
            RuleAttribute::DestinationPortRange(range) => {
                rule.dport = Some((range.start, range.end));
            }
            other => return Err(format!("rule {}: attribute {other:?}", rule.priority)),
        }
    }
    Ok(Some(rule))
}

/// `ip rule add`.
pub fn add(rule: &Rule) -> Request {
    let message = RouteNetlinkMessage::NewRule(message(rule));
    Request::new(message, NLM_F_CREATE | NLM_F_EXCL)
}

/// `ip rule del`: only of a rule that is added again at once, or that this run has added.
pub fn del(rule: &Rule) -> Request {
    Request::new(RouteNetlinkMessage::DelRule(message(rule)), 0)
}

fn header(rule: &Rule) -> RuleHeader {
    let mut flags = RuleFlags::empty();
    flags.set(RuleFlags::Invert, rule.invert);
    RuleHeader {
        family: if rule.ipv6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        },
        src_len: rule.from.map_or(0, |(_, len)| len),
        dst_len: rule.to.map_or(0, |(_, len)| len),
        tos: rule.tos,
        action: rule.action.into(),
        flags,
        ..RuleHeader::default()
    }
}

/// The name of an interface, as bytes.
fn interface(kind: u16, name: Option<&Bytes>) -> Option<RuleAttribute> {
    name.map(|name| RuleAttribute::Other(text::write(kind, name.as_slice())))
}

fn message(rule: &Rule) -> RuleMessage {
    let Rule {
        ipv6: _,
        priority,
        from,
        to,
        iif,
        oif,
        tos: _,
        invert: _,
        fwmark,
        fwmask,
        action: _,
        table,
        goto,
        suppress_prefix_len,
        suppress_group,
        ip_proto,
        sport,
        dport,
        uid_range,
        l3mdev,
        tun_id,
        realms,
        protocol,
        extra,
    } = rule;
    let range = |(start, end)| RulePortRange { start, end };
    let realm = |(source, destination)| RouteRealm {
        source,
        destination,
    };
    let mut message = RuleMessage::default();
    let attributes = [
        Some(RuleAttribute::Priority(*priority)),
        (*table != 0).then_some(RuleAttribute::Table(*table)),
        from.map(|(ip, _)| RuleAttribute::Source(ip)),
        to.map(|(ip, _)| RuleAttribute::Destination(ip)),
        interface(text::FRA_IIFNAME, iif.as_ref()),
        interface(text::FRA_OIFNAME, oif.as_ref()),
        goto.map(RuleAttribute::Goto),
        fwmark.map(RuleAttribute::FwMark),
        fwmask.map(RuleAttribute::FwMask),
        realms.map(|pair| RuleAttribute::Realm(realm(pair))),
        tun_id.map(RuleAttribute::TunId),
        suppress_group.map(RuleAttribute::SuppressIfGroup),
        suppress_prefix_len.map(RuleAttribute::SuppressPrefixLen),
        l3mdev.then_some(RuleAttribute::L3MDev(true)),
        uid_range.map(|(start, end)| RuleAttribute::UidRange(RuleUidRange { start, end })),
        protocol.map(|protocol| RuleAttribute::Protocol(protocol.into())),
        ip_proto.map(|protocol| RuleAttribute::IpProtocol(IpProtocol::from(i32::from(protocol)))),
        sport.map(|pair| RuleAttribute::SourcePortRange(range(pair))),
        dport.map(|pair| RuleAttribute::DestinationPortRange(range(pair))),
    ];
    message.header = header(rule);
    message.attributes = attributes.into_iter().flatten().collect();
    let extra = extra.iter().map(|raw| text::restored(raw, 0));
    message.attributes.extend(extra.map(RuleAttribute::Other));
    message
}

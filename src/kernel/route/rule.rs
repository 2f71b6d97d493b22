//! Rules: between rtnetlink messages and the model (`ip rule`).

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAttribute, RuleFlags, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::Request;
use crate::kernel::codec::text;
use crate::model::Rule;

/// Reads one rule of a dump; `None` for families other than IP, an error for a rule that the model cannot hold.
pub(crate) fn parse(message: &RuleMessage) -> Result<Option<Rule>, String> {
    let header = &message.header;
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
    for attribute in &message.attributes {
        let raw = text::stored(attribute);
        match rule.read(raw.number, &raw.value) {
            Some(true) => {}
            Some(false) => return Err(format!("rule {}: {attribute:?}", rule.priority)),
            None => rule.extra.push(raw),
        }
    }
    for (prefix, len) in [
        (&mut rule.from, header.src_len),
        (&mut rule.to, header.dst_len),
    ] {
        *prefix = prefix.map(|(ip, _)| (ip, len));
    }
    // What the kernel reports where nothing is set.
    for unset in [&mut rule.suppress_group, &mut rule.suppress_prefix_len] {
        *unset = unset.filter(|value| *value != u32::MAX);
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

fn message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header = header(rule);
    let attributes = rule.attributes().chain(rule.extra.iter().cloned());
    message.attributes = attributes
        .map(|raw| RuleAttribute::Other(text::restored(&raw, 0)))
        .collect();
    message
}

//! What a netlink message holds, in the words of ip(8).
//!
//! A message names other links by ifindex: `if7` is the link with index 7 of the socket's namespace, as ip(8) prints it.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkInfo, LinkMessage};
use netlink_packet_route::neighbour::NeighbourMessage;

use super::{address, route, traffic};
use crate::kernel::address::neighbour;
use crate::kernel::codec::text::LinkText;
use crate::kernel::route::rule;
use crate::model::{IfName, Mac};

/// The object of a message; `all` for a whole table.
pub(super) fn content(message: &RouteNetlinkMessage) -> String {
    use RouteNetlinkMessage as Message;
    let words = match message {
        Message::NewLink(link)
        | Message::DelLink(link)
        | Message::GetLink(link)
        | Message::SetLink(link)
        | Message::NewLinkProp(link)
        | Message::DelLinkProp(link) => link_words(link),
        Message::NewAddress(message) | Message::DelAddress(message) => {
            if_name(message.header.index)
                .and_then(|dev| address::parse(message, &dev))
                .map_or_else(String::new, |address| address.to_string())
        }
        Message::NewNeighbour(message)
        | Message::DelNeighbour(message)
        | Message::GetNeighbour(message) => neighbour_words(message),
        Message::NewRoute(message) | Message::DelRoute(message) => {
            object_words(route::parse(message, if_name))
        }
        Message::GetRoute(message) if !message.attributes.is_empty() => {
            object_words(route::parse(message, if_name))
        }
        Message::NewRule(message) | Message::DelRule(message) => object_words(rule::parse(message)),
        Message::NewNsId(message) | Message::GetNsId(message) => {
            format!("{:?}", message.attributes)
        }
        other => traffic::parse(other).map_or_else(String::new, |(index, object)| {
            format!("dev if{index} {object}")
        }),
    };
    if words.is_empty() {
        "all".to_owned()
    } else {
        words
    }
}

/// The name by which a message's words refer to the link with this index.
pub(super) fn if_name(index: u32) -> Option<IfName> {
    IfName::try_from(format!("if{index}")).ok()
}

/// An object of the model, or the reason why the message is none.
fn object_words(object: Result<Option<impl ToString>, String>) -> String {
    match object {
        Ok(Some(object)) => object.to_string(),
        Ok(None) => "of another family".to_owned(),
        Err(why) => why,
    }
}

fn link_words(message: &LinkMessage) -> String {
    let mut words = Vec::new();
    if message.header.index != 0 {
        words.push(format!("index {}", message.header.index));
    }
    words.extend(message.attributes.iter().filter_map(attribute_words));
    let (flags, mask) = (message.header.flags, message.header.change_mask);
    if !flags.is_empty() || !mask.is_empty() {
        let names: Vec<&str> = flags.iter_names().map(|(name, _)| name).collect();
        words.push(format!("flags <{}>", names.join(",")));
    }
    words.join(" ")
}

/// The attributes by which a person recognises a link and its change; a dump has many more.
fn attribute_words(attribute: &LinkAttribute) -> Option<String> {
    match LinkText::of(attribute) {
        Some(LinkText::Name(name)) => return Some(format!("name {name}")),
        Some(LinkText::Alias(alias)) => return Some(format!("alias {alias}")),
        Some(LinkText::Altnames(names)) => {
            let names = names.iter().map(|name| format!("altname {name}"));
            return Some(names.collect::<Vec<_>>().join(" "));
        }
        None => {}
    }
    Some(match attribute {
        LinkAttribute::NewIfIndex(index) => format!("new-index {index}"),
        LinkAttribute::Link(index) => format!("link if{index}"),
        LinkAttribute::LinkNetNsId(id) => format!("link-netnsid {id}"),
        LinkAttribute::Controller(index) => format!("master if{index}"),
        LinkAttribute::NetNsFd(fd) => format!("netns fd {fd}"),
        LinkAttribute::Address(bytes) => format!("address {}", Mac::from_slice(bytes)?),
        LinkAttribute::Mtu(mtu) => format!("mtu {mtu}"),
        LinkAttribute::TxQueueLen(length) => format!("txqueuelen {length}"),
        LinkAttribute::Group(group) => format!("group {group}"),
        LinkAttribute::OperState(state) => format!("state {state}"),
        LinkAttribute::AfSpecUnspec(specs) => format!("af-spec {specs:?}"),
        LinkAttribute::LinkInfo(infos) => {
            let infos = infos.iter().filter_map(|info| match info {
                LinkInfo::Kind(kind) => Some(format!("type {kind}")),
                LinkInfo::Data(data) => Some(format!("{data:?}")),
                _ => None,
            });
            infos.collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    })
}

fn neighbour_words(message: &NeighbourMessage) -> String {
    let Some(dst) = neighbour::destination(message) else {
        return String::new();
    };
    let header = &message.header;
    let lladdr =
        neighbour::lladdr(message).map_or_else(String::new, |mac| format!(" lladdr {mac}"));
    let flags = header
        .flags
        .iter_names()
        .map(|(name, _)| format!(" {name}"));
    let flags = flags.collect::<String>().to_lowercase();
    format!(
        "{dst} dev if{}{lladdr}{flags} nud {}",
        header.ifindex, header.state
    )
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteMessage;

    use super::*;
    use crate::kernel::Request;
    use crate::kernel::address::neighbour_probe;
    use crate::kernel::codec::message::Message;
    use crate::kernel::link;
    use crate::model::Address;

    fn words(request: &Request) -> String {
        match &request.message {
            Message::Route(message) => content(message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_is_in_the_words_of_ip() {
        let mtu = link::set(4, |link| link.mtu(9000));
        assert_eq!(words(&mtu), "index 4 mtu 9000");
        assert_eq!(words(&link::set_up(4, true)), "index 4 flags <Up>");
        let dev = IfName::try_from("eth0".to_owned()).unwrap();
        let address = address::add(4, &Address::plain(dev, "10.0.0.1".parse().unwrap(), 24));
        let text = words(&address);
        assert!(
            text.starts_with("10.0.0.1/24") && text.contains("dev if4"),
            "{text}"
        );
        let probe = neighbour_probe::reprobe(4, "10.0.0.2".parse().unwrap());
        assert_eq!(words(&probe), "10.0.0.2 dev if4 nud probe");
    }

    #[test]
    fn a_dump_is_for_all() {
        let dump = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        assert_eq!(content(&dump), "all");
    }

    #[test]
    fn an_alias_of_a_tenant_is_escaped() {
        let request = link::set_alias(4, &"a\u{1b}[31m".into());
        assert_eq!(words(&request), "index 4 alias a\\u{1b}[31m");
    }
}

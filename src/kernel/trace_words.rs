//! What a netlink message holds, in the words of ip(8).
//!
//! A message names other links by ifindex: `if7` is the link with index 7 of the socket's namespace, as ip(8) prints it.

use std::fmt::{Display, Write};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoData, InfoMacVlan, InfoVlan, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use super::{address, route, traffic};
use crate::kernel::address::neighbour;
use crate::kernel::codec::text::LinkText;
use crate::kernel::link::bond;
use crate::kernel::route::rule;
use crate::model::{IfName, Mac};

/// The objects of a message; `all` for a whole table.
pub(super) fn content(message: &RouteNetlinkMessage) -> String {
    use RouteNetlinkMessage as Message;
    let words = match message {
        Message::NewLink(link)
        | Message::DelLink(link)
        | Message::GetLink(link)
        | Message::SetLink(link)
        | Message::NewLinkProp(link)
        | Message::DelLinkProp(link) => of_link(link),
        Message::NewAddress(address) | Message::DelAddress(address) => of_address(address),
        Message::NewNeighbour(entry)
        | Message::DelNeighbour(entry)
        | Message::GetNeighbour(entry) => of_neighbour(entry),
        Message::NewRoute(route) | Message::DelRoute(route) => {
            of_model(route::parse(route, if_name))
        }
        Message::NewRule(rule) | Message::DelRule(rule) => of_model(rule::parse(rule.clone())),
        Message::NewQueueDiscipline(_)
        | Message::NewTrafficClass(_)
        | Message::NewTrafficFilter(_) => of_traffic(message),
        Message::NewNsId(nsid) | Message::GetNsId(nsid) => of_nsid(nsid),
        Message::NewNeighbourTable(table) => Words::of("family", table.header.family),
        _ => Words::default(),
    };
    if words.0.is_empty() {
        "all".to_owned()
    } else {
        words.0
    }
}

/// Words with spaces between.
#[derive(Default)]
struct Words(String);

impl Words {
    fn of(word: &str, value: impl Display) -> Self {
        let mut words = Self::default();
        words.add(word, value);
        words
    }

    fn add(&mut self, word: &str, value: impl Display) {
        let space = if self.0.is_empty() { "" } else { " " };
        // A String takes everything.
        let _ = write!(self.0, "{space}{word} {value}");
    }
}

fn of_traffic(message: &RouteNetlinkMessage) -> Words {
    let mut words = Words::default();
    if let Some((index, object)) = traffic::parse(message) {
        words.add("dev", dev(index));
        words.add("is", object);
    }
    words
}

fn dev(index: u32) -> String {
    format!("if{index}")
}

fn of_link(message: &LinkMessage) -> Words {
    let mut words = Words::default();
    if message.header.index != 0 {
        words.add("index", message.header.index);
    }
    for attribute in &message.attributes {
        add_attribute(&mut words, attribute);
    }
    let LinkMessage { header, .. } = message;
    if !header.flags.is_empty() || !header.change_mask.is_empty() {
        words.add("flags", flag_names(header.flags));
    }
    if !header.change_mask.is_empty() && header.change_mask != LinkFlags::all() {
        words.add("mask", flag_names(header.change_mask));
    }
    words
}

/// As in `<UP,LOWER_UP>`; the crate's names are `Up` and `LowerUp`.
fn flag_names(flags: LinkFlags) -> String {
    let names = flags.iter_names().map(|(name, _)| {
        let mut upper = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() && !upper.is_empty() {
                upper.push('_');
            }
            upper.extend(letter.to_uppercase());
        }
        upper
    });
    format!("<{}>", names.collect::<Vec<_>>().join(","))
}

/// The attributes that ip(8) has a word for; a dump has many more, of which netfix uses none.
fn add_attribute(words: &mut Words, attribute: &LinkAttribute) {
    match LinkText::of(attribute) {
        Some(LinkText::Name(name)) => words.add("name", name),
        Some(LinkText::Alias(alias)) => words.add("alias", alias),
        Some(LinkText::Altnames(names)) => {
            for name in &names {
                words.add("altname", name);
            }
        }
        None => {}
    }
    match attribute {
        LinkAttribute::NewIfIndex(index) => words.add("new-index", index),
        LinkAttribute::Link(index) => words.add("link", dev(*index)),
        LinkAttribute::LinkNetNsId(id) => words.add("link-netnsid", id),
        LinkAttribute::Controller(index) => words.add("master", dev(*index)),
        LinkAttribute::NetNsFd(fd) => words.add("netns", format_args!("fd {fd}")),
        LinkAttribute::Address(bytes) => {
            if let Some(mac) = Mac::from_slice(bytes) {
                words.add("address", mac);
            }
        }
        LinkAttribute::Mtu(mtu) => words.add("mtu", mtu),
        LinkAttribute::TxQueueLen(length) => words.add("txqueuelen", length),
        LinkAttribute::NumTxQueues(count) => words.add("numtxqueues", count),
        LinkAttribute::NumRxQueues(count) => words.add("numrxqueues", count),
        LinkAttribute::Group(group) => words.add("group", group),
        LinkAttribute::OperState(state) => words.add("state", state),
        LinkAttribute::AfSpecUnspec(specs) => add_addr_gen_mode(words, specs),
        LinkAttribute::LinkInfo(infos) => infos.iter().for_each(|info| add_info(words, info)),
        _ => {}
    }
}

fn add_addr_gen_mode(words: &mut Words, specs: &[AfSpecUnspec]) {
    for spec in specs {
        let AfSpecUnspec::Inet6(parts) = spec else {
            continue;
        };
        for part in parts {
            if let AfSpecInet6::AddrGenMode(mode) = part {
                words.add("addrgenmode", mode);
            }
        }
    }
}

fn add_info(words: &mut Words, info: &LinkInfo) {
    match info {
        LinkInfo::Kind(kind) => words.add("type", kind),
        LinkInfo::Data(InfoData::MacVlan(infos)) => infos.iter().for_each(|info| match info {
            InfoMacVlan::Mode(mode) => words.add("mode", mode),
            InfoMacVlan::Flags(flags) => words.add("flags", format_args!("{:#x}", flags.bits())),
            InfoMacVlan::BcQueueLen(length) => words.add("bcqueuelen", length),
            InfoMacVlan::MacAddrData(list) => {
                words.add("macaddr", format_args!("set {}", list.len()));
            }
            _ => {}
        }),
        LinkInfo::Data(InfoData::Vlan(infos)) => infos.iter().for_each(|info| match info {
            InfoVlan::Protocol(protocol) => words.add("protocol", protocol),
            InfoVlan::Id(id) => words.add("id", id),
            InfoVlan::Flags((flags, mask)) => {
                words.add(
                    "flags",
                    format_args!("{:#x}/{:#x}", flags.bits(), mask.bits()),
                );
            }
            _ => {}
        }),
        LinkInfo::Data(InfoData::Bond(infos)) => {
            let (bond, primary) = bond::parse(infos);
            words.add("mode", bond.mode_name());
            for (option, value) in &bond.options {
                words.add(&option.to_string(), value);
            }
            if let Some(index) = primary {
                words.add("primary", dev(index));
            }
        }
        _ => {}
    }
}

/// An object of the model, which prints itself as ip(8) does, or the reason why it cannot be one.
fn of_model(object: Result<Option<impl Display>, String>) -> Words {
    match object {
        Ok(Some(object)) => Words(object.to_string()),
        Ok(None) => Words("of another family".to_owned()),
        Err(why) => Words(why),
    }
}

pub(super) fn if_name(index: u32) -> Option<IfName> {
    IfName::try_from(dev(index)).ok()
}

fn of_address(message: &AddressMessage) -> Words {
    let dev = if_name(message.header.index);
    of_model(Ok(dev.and_then(|dev| address::parse(message.clone(), &dev))))
}

fn of_neighbour(message: &NeighbourMessage) -> Words {
    let mut words = Words::default();
    let Some(dst) = neighbour::destination(message) else {
        return words;
    };
    words.0 = dst.to_string();
    words.add("dev", dev(message.header.ifindex));
    for attribute in &message.attributes {
        if let NeighbourAttribute::LinkLayerAddress(bytes) = attribute
            && let Some(mac) = Mac::from_slice(bytes)
        {
            words.add("lladdr", mac);
        }
    }
    let flags = message.header.flags;
    for (flag, word) in [
        (NeighbourFlags::Proxy, " proxy"),
        (NeighbourFlags::Router, " router"),
        (NeighbourFlags::Use, " use"),
    ] {
        if flags.contains(flag) {
            words.0.push_str(word);
        }
    }
    words.add("nud", message.header.state);
    words
}

fn of_nsid(message: &NsidMessage) -> Words {
    let mut words = Words::default();
    for attribute in &message.attributes {
        match attribute {
            NsidAttribute::Id(id) => words.add("nsid", id),
            NsidAttribute::Fd(fd) => words.add("netns", format_args!("fd {fd}")),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Request;
    use crate::kernel::codec::message::Message;
    use netlink_packet_route::route::RouteMessage;

    use crate::kernel::link::{self, Placement};
    use crate::model::net::link::Macvlan;
    use crate::model::{Address, Link, LinkKind, Neighbour};

    fn name(text: &str) -> IfName {
        IfName::try_from(text.to_owned()).unwrap()
    }

    fn of(request: &Request) -> String {
        match &request.message {
            Message::Route(message) => content(message),
            Message::Nexthop(message) => panic!("about a nexthop: {message:?}"),
        }
    }

    #[test]
    fn a_macvlan_is_named_as_by_ip_link_add() {
        let kind = LinkKind::Macvlan(Macvlan::plain(crate::model::net::link::MacvlanMode::Bridge));
        let mut link = Link::plain(name("eth0"), kind);
        link.mac = Mac::from_slice(&[2, 0, 0, 0, 0, 1]);
        link.mtu = 1500;
        let place = Placement {
            name: Some(&link.name),
            index: Some(7),
            netns: Some(9),
            parent: Some(3),
        };
        let text = of(&link::add(&link, place).unwrap());
        for words in [
            "index 7",
            "name eth0",
            "link if3",
            "netns fd 9",
            "address 02:00:00:00:00:01",
            "mtu 1500",
            "type macvlan mode bridge",
        ] {
            assert!(text.contains(words), "no {words:?} in {text:?}");
        }
        assert!(!text.contains(['{', '(', '[']), "{text}");
    }

    #[test]
    fn changes_are_named_as_by_ip_link_set() {
        let mtu = link::set(4, |link| link.mtu(9000));
        assert_eq!(of(&mtu), "index 4 mtu 9000");
        let up = link::set_up(4, true);
        assert_eq!(of(&up), "index 4 flags <UP> mask <UP>");
    }

    #[test]
    fn addresses_and_neighbours_are_named_as_by_ip() {
        let address = Address::plain(name("eth0"), "10.0.0.1".parse().unwrap(), 24);
        let request = address::add(4, &address);
        let text = of(&request);
        assert!(text.starts_with("10.0.0.1/24"), "{text}");
        assert!(text.contains("dev if4"), "{text}");
        let neighbour = Neighbour {
            dev: name("eth0"),
            dst: "10.0.0.2".parse().unwrap(),
            lladdr: Mac::from_slice(&[2, 0, 0, 0, 0, 2]),
            proxy: false,
            router: false,
            noarp: false,
            extern_learn: false,
            managed: false,
            protocol: None,
        };
        assert_eq!(
            of(&neighbour::put(4, &neighbour)),
            "10.0.0.2 dev if4 lladdr 02:00:00:00:00:02 nud permanent"
        );
    }

    #[test]
    fn a_dump_is_for_all() {
        let dump = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        assert_eq!(content(&dump), "all");
    }

    #[test]
    fn an_alias_of_a_tenant_is_escaped() {
        let request = link::set_alias(4, &"a\u{1b}[31m".into());
        assert_eq!(of(&request), "index 4 alias a\\u{1b}[31m");
    }
}

//! Logs each netlink message in one line: target `netlink`, level trace. A message is formatted only where that level is on.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_packet_route::RouteNetlinkMessage;

use super::codec::Dump;
use super::{Errno, Error, Socket, trace_words};
use crate::kernel::codec::message::{
    MdbMessage, Message, NexthopMessage, RTM_DELNEXTHOP, RTM_NEWMDB, RTM_NEWNEXTHOP,
};
use crate::kernel::link::ports;
use crate::kernel::route::nexthop;
use crate::model::text::join;

/// The log's target for netlink messages.
pub const TARGET: &str = "netlink";

fn is_wanted() -> bool {
    log::log_enabled!(target: TARGET, log::Level::Trace)
}

/// A dump, and each object of the answer.
pub(super) fn dump(socket: &Socket, request: &Message, result: &Result<Option<Dump>, Error>) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie().ok().flatten();
    let answer = match result {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(&Error::Raced),
        Err(error) => Err(error),
    };
    sent(netns, request, NLM_F_DUMP, answer);
    for dump in result.iter().flatten() {
        for object in &dump.objects {
            received(netns, object);
        }
        for nexthop in &dump.nexthops {
            let (kind, content) = of_nexthop(nexthop);
            log::trace!(target: TARGET, "< {kind}{}: {content}", place(netns));
        }
        for groups in &dump.groups {
            let (kind, content) = of_groups(groups);
            log::trace!(target: TARGET, "< {kind}{}: {content}", place(netns));
        }
    }
}

/// Requests for one object each, with the answers.
pub(super) fn get(
    socket: &Socket,
    requests: &[Message],
    answers: &[Result<RouteNetlinkMessage, Errno>],
) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie().ok().flatten();
    for (request, answer) in requests.iter().zip(answers) {
        let refused = answer.as_ref().err().copied().map(Error::Kernel);
        sent(netns, request, 0, refused.as_ref().map_or(Ok(()), Err));
        if let Ok(object) = answer {
            received(netns, object);
        }
    }
}

/// A batch of changes, each with its result.
pub(super) fn run(
    socket: &Socket,
    messages: &[(&Message, u16)],
    results: &Result<Vec<Result<(), Errno>>, Error>,
) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie().ok().flatten();
    for (at, (message, flags)) in messages.iter().enumerate() {
        let refused = results
            .iter()
            .find_map(|results| results.get(at)?.err())
            .map(Error::Kernel);
        let answer = results
            .as_ref()
            .map(|_| ())
            .and_then(|()| refused.as_ref().map_or(Ok(()), Err));
        sent(netns, message, *flags, answer);
    }
}

/// An event of the calling thread's namespace.
pub(super) fn event(message: &RouteNetlinkMessage) {
    if is_wanted() {
        received(None, message);
    }
}

/// A message that was sent, with its `NLM_F_*` flags beside `NLM_F_REQUEST` and the kernel's answer.
fn sent(netns: Option<u64>, message: &Message, flags: u16, answer: Result<(), &Error>) {
    let (kind, content) = match message {
        Message::Route(message) => (kind(message), trace_words::content(message)),
        Message::Nexthop(message) => of_nexthop(message),
        Message::Mdb(message) => of_groups(message),
        Message::Action(_) => ("RTM_NEWACTION", "actions of a filter".to_owned()),
    };
    let flags = flag_names(NLM_F_REQUEST | flags, kind.starts_with("RTM_GET"));
    let answer = match answer {
        Ok(()) => "ok".to_owned(),
        Err(Error::Kernel(errno)) => format!("{errno:?}"),
        Err(error) => format!("? ({error})"),
    };
    let place = place(netns);
    log::trace!(target: TARGET, "> {kind} {flags}{place}: {content} -> {answer}");
}

/// Type and content of a message about a nexthop object.
fn of_nexthop(message: &NexthopMessage) -> (&'static str, String) {
    let kind = match message.kind {
        RTM_NEWNEXTHOP => "RTM_NEWNEXTHOP",
        RTM_DELNEXTHOP => "RTM_DELNEXTHOP",
        _ => "RTM_GETNEXTHOP",
    };
    let content = nexthop::parse(message, trace_words::if_name)
        .ok()
        .filter(|_| !message.attributes.is_empty())
        .map_or_else(|| "all".to_owned(), |nexthop| nexthop.to_string());
    (kind, content)
}

/// Type and content of a message about multicast groups.
fn of_groups(message: &MdbMessage) -> (&'static str, String) {
    let kind = match message.kind {
        RTM_NEWMDB => "RTM_NEWMDB",
        _ => "RTM_GETMDB",
    };
    let entries = ports::groups(message).into_iter();
    let entries = entries.filter_map(|(port, entry)| Some(format!("port {port} {}", entry.ok()?)));
    let bridge = trace_words::if_name(message.index);
    let bridge = bridge.map_or_else(|| message.index.to_string(), |name| name.to_string());
    let entries: Vec<String> = entries.collect();
    (kind, format!("bridge {bridge} {}", join(&entries, ", ")))
}

fn received(netns: Option<u64>, message: &RouteNetlinkMessage) {
    let (kind, place) = (kind(message), place(netns));
    log::trace!(target: TARGET, "< {kind}{place}: {}", trace_words::content(message));
}

/// The cookie of the socket's namespace.
fn place(netns: Option<u64>) -> String {
    netns.map_or_else(String::new, |cookie| format!(" netns {cookie}"))
}

/// A message's type, as rtnetlink(7) has it.
fn kind(message: &RouteNetlinkMessage) -> &'static str {
    use RouteNetlinkMessage as Kind;
    match message {
        Kind::NewLink(_) => "RTM_NEWLINK",
        Kind::DelLink(_) => "RTM_DELLINK",
        Kind::GetLink(_) => "RTM_GETLINK",
        Kind::SetLink(_) => "RTM_SETLINK",
        Kind::NewLinkProp(_) => "RTM_NEWLINKPROP",
        Kind::NewAddress(_) => "RTM_NEWADDR",
        Kind::DelAddress(_) => "RTM_DELADDR",
        Kind::GetAddress(_) => "RTM_GETADDR",
        Kind::NewNeighbour(_) => "RTM_NEWNEIGH",
        Kind::DelNeighbour(_) => "RTM_DELNEIGH",
        Kind::GetNeighbour(_) => "RTM_GETNEIGH",
        Kind::NewNeighbourTable(_) => "RTM_NEWNEIGHTBL",
        Kind::GetNeighbourTable(_) => "RTM_GETNEIGHTBL",
        Kind::NewRoute(_) => "RTM_NEWROUTE",
        Kind::DelRoute(_) => "RTM_DELROUTE",
        Kind::GetRoute(_) => "RTM_GETROUTE",
        Kind::NewRule(_) => "RTM_NEWRULE",
        Kind::DelRule(_) => "RTM_DELRULE",
        Kind::GetRule(_) => "RTM_GETRULE",
        Kind::NewNsId(_) => "RTM_NEWNSID",
        Kind::GetNsId(_) => "RTM_GETNSID",
        Kind::NewQueueDiscipline(_) => "RTM_NEWQDISC",
        Kind::GetQueueDiscipline(_) => "RTM_GETQDISC",
        Kind::NewTrafficClass(_) => "RTM_NEWTCLASS",
        Kind::GetTrafficClass(_) => "RTM_GETTCLASS",
        Kind::NewTrafficFilter(_) => "RTM_NEWTFILTER",
        Kind::GetTrafficFilter(_) => "RTM_GETTFILTER",
        // netfix sends no other, and subscribes to no other.
        _ => "RTM_?",
    }
}

/// The flags of a request without `NLM_F_` (netlink(7)). The upper ones have two meanings: `DUMP` is of `RTM_GET`*.
fn flag_names(flags: u16, is_get: bool) -> String {
    let upper: &[(u16, &str)] = if is_get {
        &[(0x300, "DUMP")]
    } else {
        &[
            (0x100, "REPLACE"),
            (0x200, "EXCL"),
            (0x400, "CREATE"),
            (0x800, "APPEND"),
        ]
    };
    let names: Vec<&str> = [(0x1, "REQUEST"), (0x4, "ACK"), (0x8, "ECHO")]
        .iter()
        .chain(upper)
        .filter(|(bits, _)| flags & bits == *bits)
        .map(|(_, name)| *name)
        .collect();
    names.join("|")
}

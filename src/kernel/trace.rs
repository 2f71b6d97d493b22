//! Logs each netlink message in one line: target `netlink`, level trace. A message is formatted only where that level is on.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_packet_route::RouteNetlinkMessage;

use super::codec::Dump;
use super::{Errno, Error, Socket, trace_words};

/// The log's target for netlink messages.
pub const TARGET: &str = "netlink";

fn is_wanted() -> bool {
    log::log_enabled!(target: TARGET, log::Level::Trace)
}

/// A dump, and each object of the answer.
pub(super) fn dump(
    socket: &Socket,
    request: &RouteNetlinkMessage,
    result: &Result<Option<Dump>, Error>,
) {
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
    for object in result.iter().flatten().flat_map(|dump| &dump.objects) {
        received(netns, object);
    }
}

/// A request for one object, and the answer.
pub(super) fn get(
    socket: &Socket,
    request: &RouteNetlinkMessage,
    result: &Result<RouteNetlinkMessage, Error>,
) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie().ok().flatten();
    sent(netns, request, 0, result.as_ref().map(|_| ()));
    if let Ok(object) = result {
        received(netns, object);
    }
}

/// A batch of changes, each with its result.
pub(super) fn run(
    socket: &Socket,
    messages: &[(&RouteNetlinkMessage, u16)],
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
fn sent(netns: Option<u64>, message: &RouteNetlinkMessage, flags: u16, answer: Result<(), &Error>) {
    let kind = kind(message);
    let flags = flag_names(NLM_F_REQUEST | flags, kind.starts_with("RTM_GET"));
    let answer = match answer {
        Ok(()) => "ok".to_owned(),
        Err(Error::Kernel(errno)) => format!("{errno:?}"),
        Err(error) => format!("? ({error})"),
    };
    let (place, content) = (place(netns), trace_words::content(message));
    log::trace!(target: TARGET, "> {kind} {flags}{place}: {content} -> {answer}");
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
    use RouteNetlinkMessage as Message;
    match message {
        Message::NewLink(_) => "RTM_NEWLINK",
        Message::DelLink(_) => "RTM_DELLINK",
        Message::GetLink(_) => "RTM_GETLINK",
        Message::SetLink(_) => "RTM_SETLINK",
        Message::NewLinkProp(_) => "RTM_NEWLINKPROP",
        Message::NewAddress(_) => "RTM_NEWADDR",
        Message::DelAddress(_) => "RTM_DELADDR",
        Message::GetAddress(_) => "RTM_GETADDR",
        Message::NewNeighbour(_) => "RTM_NEWNEIGH",
        Message::DelNeighbour(_) => "RTM_DELNEIGH",
        Message::GetNeighbour(_) => "RTM_GETNEIGH",
        Message::NewNeighbourTable(_) => "RTM_NEWNEIGHTBL",
        Message::GetNeighbourTable(_) => "RTM_GETNEIGHTBL",
        Message::NewRoute(_) => "RTM_NEWROUTE",
        Message::DelRoute(_) => "RTM_DELROUTE",
        Message::GetRoute(_) => "RTM_GETROUTE",
        Message::NewRule(_) => "RTM_NEWRULE",
        Message::DelRule(_) => "RTM_DELRULE",
        Message::GetRule(_) => "RTM_GETRULE",
        Message::NewQueueDiscipline(_) => "RTM_NEWQDISC",
        Message::GetQueueDiscipline(_) => "RTM_GETQDISC",
        Message::NewTrafficClass(_) => "RTM_NEWTCLASS",
        Message::GetTrafficClass(_) => "RTM_GETTCLASS",
        Message::NewTrafficFilter(_) => "RTM_NEWTFILTER",
        Message::GetTrafficFilter(_) => "RTM_GETTFILTER",
        Message::NewNsId(_) => "RTM_NEWNSID",
        Message::GetNsId(_) => "RTM_GETNSID",
        // netfix sends no other, and subscribes to no other.
        _ => "RTM_?",
    }
}

const COMMON: &[(u16, &str)] = &[(0x1, "REQUEST"), (0x4, "ACK"), (0x8, "ECHO")];
const OF_GET: &[(u16, &str)] = &[(0x300, "DUMP")];
const OF_NEW: &[(u16, &str)] = &[
    (0x100, "REPLACE"),
    (0x200, "EXCL"),
    (0x400, "CREATE"),
    (0x800, "APPEND"),
];

/// The flags of a request (netlink(7)); the upper ones have two meanings, one for `RTM_GET`* and one for `RTM_NEW`*.
fn flag_names(flags: u16, is_get: bool) -> String {
    let own = if is_get { OF_GET } else { OF_NEW };
    let mut left = flags;
    let mut names = Vec::new();
    for (bits, name) in COMMON.iter().chain(own) {
        if left & bits == *bits {
            names.push((*name).to_owned());
            left &= !bits;
        }
    }
    if left != 0 {
        names.push(format!("{left:#x}"));
    }
    names.join("|")
}

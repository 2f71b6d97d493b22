//! Every netlink message in one line, for whoever wants to see them (`-v`): target `netlink`, level trace. Nothing is put
//! into words where nobody does.

use std::fmt;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;

use super::socket::Dump;
use super::{Errno, Error, Socket};

/// The log's target for netlink messages.
pub const TARGET: &str = "netlink";

fn is_wanted() -> bool {
    log::log_enabled!(target: TARGET, log::Level::Trace)
}

/// A question for a whole table, and what has come.
pub(super) fn dump(socket: &Socket, request: &RouteNetlinkMessage, result: &Result<Option<Dump>, Error>) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie();
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

/// A question, and its one answer.
pub(super) fn get(
    socket: &Socket,
    request: &RouteNetlinkMessage,
    result: &Result<RouteNetlinkMessage, Error>,
) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie();
    sent(netns, request, 0, result.as_ref().map(|_| ()));
    if let Ok(object) = result {
        received(netns, object);
    }
}

/// Orders, with what became of each.
pub(super) fn run(
    socket: &Socket,
    messages: &[(&RouteNetlinkMessage, u16)],
    results: &Result<Vec<Result<(), Errno>>, Error>,
) {
    if !is_wanted() {
        return;
    }
    let netns = socket.netns_cookie();
    for (at, (message, flags)) in messages.iter().enumerate() {
        let refused = results.iter().find_map(|results| results.get(at)?.err()).map(Error::Kernel);
        let answer = results.as_ref().map(|_| ()).and_then(|()| refused.as_ref().map_or(Ok(()), Err));
        sent(netns, message, *flags, answer);
    }
}

/// What happened in the namespace of the calling thread.
pub(super) fn event(message: &NetlinkPayload<RouteNetlinkMessage>) {
    if let (true, NetlinkPayload::InnerMessage(message)) = (is_wanted(), message) {
        received(None, message);
    }
}

/// A message that was sent, with its `NLM_F_*` flags beside `NLM_F_REQUEST` and what the kernel made of it.
fn sent(netns: Option<u64>, message: &RouteNetlinkMessage, flags: u16, answer: Result<(), &Error>) {
    let (kind, content) = words(message);
    let flags = Flags { bits: NLM_F_REQUEST | flags, is_get: kind.starts_with("RTM_GET") };
    let place = Place(netns);
    match answer {
        Ok(()) => log::trace!(target: TARGET, "> {kind} {flags}{place}: {content} = 0"),
        Err(Error::Kernel(errno)) => {
            log::trace!(target: TARGET, "> {kind} {flags}{place}: {content} = {} ({errno})", *errno as i32);
        }
        Err(error) => log::trace!(target: TARGET, "> {kind} {flags}{place}: {content} = ? ({error})"),
    }
}

fn received(netns: Option<u64>, message: &RouteNetlinkMessage) {
    let (kind, content) = words(message);
    log::trace!(target: TARGET, "< {kind}{}: {content}", Place(netns));
}

/// What rtnetlink(7) calls shorter than the crate.
const SHORT: &[(&str, &str)] = &[
    ("ADDRESS", "ADDR"),
    ("NEIGHBOURTABLE", "NEIGHTBL"),
    ("NEIGHBOUR", "NEIGH"),
    ("QUEUEDISCIPLINE", "QDISC"),
    ("TRAFFICCLASS", "TCLASS"),
    ("TRAFFIC", ""),
];

/// A message's type, as rtnetlink(7) calls it, and what it holds.
fn words(message: &RouteNetlinkMessage) -> (String, String) {
    let text = format!("{message:?}");
    let (kind, content) = text.split_once('(').unwrap_or((&text, ""));
    let short = |kind: String, (long, short): &(&str, &str)| kind.replace(long, short);
    let kind = SHORT.iter().fold(kind.to_uppercase(), short);
    (format!("RTM_{kind}"), content.strip_suffix(')').unwrap_or(content).to_owned())
}

/// The socket's namespace, by its cookie.
struct Place(Option<u64>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |cookie| write!(f, " netns {cookie}"))
    }
}

/// The flags of a request (netlink(7)); the upper ones mean one thing in a question and another in an order.
struct Flags {
    bits: u16,
    is_get: bool,
}

const COMMON: &[(u16, &str)] = &[(0x1, "REQUEST"), (0x4, "ACK"), (0x8, "ECHO")];
const OF_GET: &[(u16, &str)] = &[(0x300, "DUMP")];
const OF_NEW: &[(u16, &str)] = &[(0x100, "REPLACE"), (0x200, "EXCL"), (0x400, "CREATE"), (0x800, "APPEND")];

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.bits;
        let mut names = Vec::new();
        for (bits, name) in COMMON.iter().chain(if self.is_get { OF_GET } else { OF_NEW }) {
            if left & bits == *bits {
                names.push((*name).to_owned());
                left &= !bits;
            }
        }
        if left != 0 {
            names.push(format!("{left:#x}"));
        }
        f.write_str(&names.join("|"))
    }
}

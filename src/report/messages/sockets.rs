//! Sentences about what programs have on a link and lose with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use super::network::kept_index;
use super::{and, few, or_nothing};
use crate::model::net::link::index::IndexUser;
use crate::model::net::link::socket::Program;
use crate::model::problem::SocketCause;
use crate::model::text::{count, escape};
use crate::report::text::verb;

sentences! {
    SocketCause {
        GroupsEnd { groups, programs } => "{who} joined {groups} here; the membership ends with the link. After a loss, restart the \
            program, or let it leave and join again" (who = who(programs), groups = named("multicast group", groups)),
        GroupsEnded { groups, programs } => "{who} joined {groups} on the former link and receives nothing from it: restart the \
            program, or let it leave and join again" (who = who(programs), groups = named("multicast group", groups)),
        AnycastEnds { groups, programs } => "{who} joined {groups} here; the membership ends with the link. After a loss, restart the \
            program, or let it leave and join again" (who = who(programs), groups = named("anycast group", groups)),
        AnycastEnded { groups, programs } => "{who} joined {groups} on the former link and may receive nothing from it: restart the \
            program, or let it leave and join again" (who = who(programs), groups = named("anycast group", groups)),
        PacketEnds { programs } => "{who} has a packet socket here, which ends with the link. After a loss, restart the program"
            (who = who(programs)),
        PacketEnded { programs } => "the packet socket of {who} lost the link and receives nothing: restart the program"
            (who = who(programs)),
        RoutingEnds { programs } => "{who} routes multicast here, which ends with the link. After a loss, restart the program"
            (who = who(programs)),
        RoutingEnded { programs } => "{who} routed multicast on the former link and does not on this one: restart the program"
            (who = who(programs)),
        TapEnds { programs } => "{who} has the link's character device open, which ends with the link. After a loss, restart the \
            program" (who = who(programs)),
        TapEnded { programs } => "{who} has the character device of the former link open, which is dead: restart the program"
            (who = who(programs)),
        FunctionEnds { index, driver, programs } => "{who} has virtual function {index} open (driver {driver}), which ends with the \
            link. netfix binds the driver again, but cannot give the device back: stop the program before a reload of the driver, \
            and start it afterwards" (who = who(programs)),
        VerbsEnd { programs } => "{who} uses the device through verbs (RDMA, or DPDK beside the driver), which ends with the driver. Stop \
            the program before a reload of the driver, and start it afterwards" (who = who(programs)),
        ClockEnds { programs } => "{who} has the device's clock (PTP) open, which ends with the driver. Restart the program after a reload \
            of the driver, unless it opens the new clock itself" (who = who(programs)),
        IndexNamed { index, users } => "{who} its ifindex {index}, which netfix gives it back after a reload of its driver"
            (who = naming(users)),
        IndexEnds { index, users, why } => "{who} its ifindex {index}. A reload of its driver gives it another one, and no packet \
            {effect} then: {remedy} after it{or_name}{why}" (who = naming(users), effect = effect(users), remedy = remedy(users),
            or_name = or_name(users), why = or_nothing(". ", why.as_ref().map(kept_index).as_ref())),
        IndexDead { then, now, by: None, users, is_older: _ } => "{who} its former ifindex {then} ({now} now), and no packet {effect}: \
            {remedy}" (who = naming(users), effect = effect(users), remedy = remedy(users)),
        IndexDead { then, now, by: Some(by), users, is_older: _ } => "{who} its former ifindex {then} ({now} now). {by} has that one now, \
            and a packet of {by} {effect}: {remedy}" (who = naming(users), effect = effect(users), remedy = remedy(users)),
        IndexUnknown { users } => "{who} this ifindex, which no link has, and no packet {effect}: {remedy}, unless its link is away for good"
            (who = naming(users), effect = effect(users), remedy = remedy(users)),
        IndexUnread { what } => "cannot list what names links by their ifindex: {what}",
        OperatorActs { pid } => "sriov-network-config-daemon{pid} sets virtual functions on this node. While the driver is reloaded, it \
            may drain the node, or make the functions before netfix does. For a window, scale it down or freeze its cgroup"
            (pid = or_nothing(" (pid ", pid.map(|pid| format!("{pid})")).as_ref())),
        ConnectionsEnd { connections } => "{connections} with a source translated to an address of a link that a reload takes: the \
            masqueraded ones end, because the kernel deletes their entries with the link, unless `netfix upgrade` runs the reload: it \
            restores those of TCP and UDP"
            (connections = count(*connections, "connection")),
        ConnectionsUnknown { error } => "the number of masqueraded connections that a reload ends is unknown: {error}",
    }
}

/// Groups with the word for them.
fn named(noun: &str, groups: &[IpAddr]) -> String {
    let plural = if groups.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", few(groups))
}

/// The programs, as far as they are known.
fn who(programs: &[Program]) -> String {
    if programs.is_empty() {
        return "a program".to_owned();
    }
    few(programs)
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit.as_ref().map(|unit| escape(unit));
        let unit = or_nothing(", ", unit.as_ref());
        write!(f, "{} (pid {}{unit})", self.name, self.pid)
    }
}

/// Who names an ifindex: how many of each kind, the first of them, and the verb.
fn naming(users: &[IndexUser]) -> String {
    let mut kinds: BTreeMap<&str, Vec<&IndexUser>> = BTreeMap::new();
    for user in users {
        kinds.entry(noun(user)).or_default().push(user);
    }
    let of_kind = |(noun, users): (&&str, &Vec<&IndexUser>)| {
        let number = count(users.len(), noun);
        let has_names = users.iter().any(|user| !user.to_string().is_empty());
        let names = has_names.then(|| format!("({})", few(users)));
        number + &or_nothing(" ", names.as_ref())
    };
    let who = and(kinds.iter().map(of_kind));
    format!("{who} {}", verb(users.len(), "names", "name"))
}

const NFT_RULE: &str = "nft rule";

fn noun(user: &IndexUser) -> &'static str {
    match user {
        IndexUser::NftRule { .. } => NFT_RULE,
        IndexUser::XfrmSelector => "xfrm selector",
        IndexUser::FdbDestination => "fdb destination",
        IndexUser::AddressLabel => "address label",
        IndexUser::MptcpEndpoint => "MPTCP endpoint",
        IndexUser::Socket { .. } => "socket",
    }
}

/// As its tool names it, or nothing.
impl fmt::Display for IndexUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NftRule {
                family,
                table,
                chain,
                handle,
            } => write!(f, "{family} {table} {chain} handle {handle}"),
            Self::Socket { name, programs } => write!(f, "{name} of {}", who(programs)),
            _ => Ok(()),
        }
    }
}

/// What becomes of users of an ifindex that no link has.
fn effect(users: &[IndexUser]) -> &'static str {
    let sockets = users.iter().filter(|user| user.is_socket()).count();
    match sockets {
        0 => "matches",
        all if all == users.len() => "is received",
        _ => "matches or is received",
    }
}

/// What a person can do about it.
fn remedy(users: &[IndexUser]) -> String {
    let words = users.iter().map(|user| match user {
        IndexUser::NftRule { .. } => "load the ruleset again (`nft -f`)",
        IndexUser::Socket { .. } => "restart the programs",
        _ => "set the others again",
    });
    and(words.collect::<BTreeSet<_>>())
}

/// What needs no cure.
fn or_name(users: &[IndexUser]) -> &'static str {
    if users.iter().any(|user| noun(user) == NFT_RULE) {
        ", or use its name (`iifname`, `oifname`)"
    } else {
        ""
    }
}

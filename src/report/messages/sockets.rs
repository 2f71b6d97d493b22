//! Sentences about what programs have on a link and lose with it.

use std::fmt;
use std::net::IpAddr;

use super::{few, or_nothing};
use crate::model::net::link::socket::Program;
use crate::model::problem::SocketCause;
use crate::model::text::count;

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
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

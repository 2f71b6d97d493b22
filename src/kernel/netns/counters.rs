//! What the counters of a namespace show of interfaces that it had.

use std::fs;

/// Messages that the kernel sends from an interface, and never from the loopback device.
const NOT_OF_LOOPBACK: [&str; 3] = [
    "Icmp6OutRouterSolicits",
    "Icmp6OutNeighborSolicits",
    "Icmp6OutMLDv2Reports",
];

/// Whether the namespace that the calling thread is in has received more packets than its loopback device carried, or sent what
/// that one does not carry. Counters that cannot be read show nothing.
#[must_use]
pub(crate) fn had_interface() -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let (Ok(v4), v6) = (read("snmp"), read("snmp6").unwrap_or_default()) else {
        return false;
    };
    // Read last: a packet is counted there first or at the same time.
    let Ok(devices) = read("dev") else {
        return false;
    };
    shows_interface(&v4, &v6, &devices)
}

fn shows_interface(v4: &str, v6: &str, devices: &str) -> bool {
    let v6_count = |name: &str| {
        let lines = v6.lines().map(str::split_ascii_whitespace);
        let mut counts = lines.filter_map(|mut words| Some((words.next()?, words.next()?)));
        let count = counts.find(|(key, _)| *key == name);
        count.map_or(0, |(_, count)| count.parse().unwrap_or_default())
    };
    let received = v4_received(v4).unwrap_or_default() + v6_count("Ip6InReceives");
    let of_loopback: Option<u64> = devices.lines().find_map(|line| {
        let counts = line.trim_start().strip_prefix("lo:")?;
        counts.split_ascii_whitespace().nth(1)?.parse().ok()
    });
    of_loopback.is_some_and(|carried| received > carried)
        || NOT_OF_LOOPBACK.iter().any(|name| v6_count(name) > 0)
}

/// `InReceives` of the first table: a line with names, and one with numbers.
fn v4_received(v4: &str) -> Option<u64> {
    let mut lines = v4.lines().filter(|line| line.starts_with("Ip: "));
    let (names, counts) = (lines.next()?, lines.next()?);
    let mut both = names.split(' ').zip(counts.split(' '));
    let (_, count) = both.find(|(name, _)| *name == "InReceives")?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "Inter-|   Receive | Transmit\n face |bytes packets errs\n    lo:  980601    6014    0    0\n";

    fn v4(received: u64) -> String {
        format!(
            "Ip: Forwarding DefaultTTL InReceives InHdrErrors\nIp: 1 64 {received} 0\nIcmp: InMsgs\nIcmp: 0\n"
        )
    }

    #[test]
    fn more_packets_than_the_loopback_device_carried_came_over_another() {
        assert!(!shows_interface(&v4(6014), "", DEVICES));
        assert!(!shows_interface(&v4(6004), "Ip6InReceives 10\n", DEVICES));
        assert!(shows_interface(&v4(6005), "Ip6InReceives 10\n", DEVICES));
        assert!(!shows_interface("", "", DEVICES), "unknown is no evidence");
        assert!(
            !shows_interface(&v4(6015), "", ""),
            "unknown is no evidence"
        );
    }

    #[test]
    fn neighbour_discovery_is_not_sent_from_the_loopback_device() {
        let sent = "Icmp6OutNeighborSolicits        \t1\n";
        assert!(shows_interface(&v4(0), sent, DEVICES));
        assert!(!shows_interface(&v4(0), &sent.replace('1', "0"), DEVICES));
    }
}

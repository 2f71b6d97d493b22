//! Which packets meet a rule of policy routing. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kernel::Errno;
use crate::model::Rule;

/// Whether packets from one of these sources, to these destinations, meet the conditions of the rule.
pub(super) fn is_met(rule: &Rule, sources: &BTreeSet<IpAddr>, behind: &[(IpNet, IpAddr)]) -> bool {
    let has_others = rule.invert
        || rule.tos != 0
        || rule.iif.is_some()
        || rule.oif.is_some()
        || rule.ip_proto.is_some()
        || rule.sport.is_some()
        || rule.dport.is_some()
        || rule.uid_range.is_some()
        || rule.tun_id.is_some()
        || !rule.extra.is_empty();
    !has_others
        && has_source(rule.from, sources)
        && behind.iter().all(|(_, ip)| covers(rule.to, *ip))
}

/// Whether a prefix of a rule covers one of these addresses.
fn has_source(prefix: Option<(IpAddr, u8)>, sources: &BTreeSet<IpAddr>) -> bool {
    let Some((ip, len)) = prefix else { return true };
    let net = IpNet::new(ip, len);
    net.is_ok_and(|net| {
        let mut covered = sources.range(net.network()..=net.broadcast());
        covered.next().is_some()
    })
}

/// Whether a prefix of a rule covers the address; none covers all.
fn covers(prefix: Option<(IpAddr, u8)>, ip: IpAddr) -> bool {
    let net = prefix.map(|(ip, len)| IpNet::new(ip, len));
    net.is_none_or(|net| net.is_ok_and(|net| net.contains(&ip)))
}

/// Whether this rule refuses packets to that address with that errno.
pub(super) fn refuses(rule: &Rule, to: IpAddr, errno: Errno) -> bool {
    /// `FR_ACT_BLACKHOLE`, `FR_ACT_UNREACHABLE`, `FR_ACT_PROHIBIT` (`linux/fib_rules.h`).
    const REFUSING: [(u8, Errno); 3] = [
        (6, Errno::EINVAL),
        (7, Errno::ENETUNREACH),
        (8, Errno::EACCES),
    ];
    rule.ipv6 != to.is_ipv4()
        && REFUSING.contains(&(rule.action, errno))
        && covers(rule.to, to)
        && rule.fwmark.is_none()
        && rule.iif.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_refuses_what_it_covers_with_the_errno_of_its_action() {
        let rule = |action, to| Rule {
            to,
            action,
            ..Rule::default()
        };
        let to: IpAddr = "10.0.0.1".parse().unwrap();
        assert!(refuses(&rule(8, None), to, Errno::EACCES));
        assert!(!refuses(&rule(8, None), to, Errno::ENETUNREACH));
        assert!(!refuses(&rule(1, None), to, Errno::EACCES));
        assert!(refuses(&rule(6, Some((to, 24))), to, Errno::EINVAL));
        assert!(!refuses(
            &rule(6, Some(("10.1.0.0".parse().unwrap(), 24))),
            to,
            Errno::EINVAL
        ));
        assert!(!refuses(
            &rule(8, None),
            "fd00::1".parse().unwrap(),
            Errno::EACCES
        ));
    }
}

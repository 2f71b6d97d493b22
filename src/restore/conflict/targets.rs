//! The addresses to probe: those that pods have lost and are to get again.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::kernel::wire::frame;
use crate::model::net::address::NODAD;
use crate::model::net::link::sysctl::SysctlKey;
use crate::model::{Address, Claim, IfName, Indexed, Link, Mac, NetState, Parent};
use crate::plan::HostLinks;
use crate::records::matched::Matched;

/// An address that a pod has lost and is to get again.
#[derive(Debug)]
pub(in crate::restore) struct ProbeTarget {
    pub(in crate::restore) claim: Claim,
    /// The present name of the host's link.
    pub(in crate::restore) parent: IfName,
    /// The MAC of the pod's link.
    pub(in crate::restore) mac: Mac,
    pub(in crate::restore) address: IpAddr,
}

impl ProbeTarget {
    /// The claim by the present name of the host's link.
    pub(in crate::restore) fn claim_now(&self) -> Claim {
        Claim::Address(self.parent.clone(), self.address)
    }

    pub(in crate::restore) fn frame(&self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(address) => frame::arp_probe(self.mac, address),
            IpAddr::V6(address) => frame::solicitation(self.mac, address),
        }
    }

    /// The MACs to which an answer is sent.
    pub(in crate::restore) fn reply_macs(&self) -> Vec<Mac> {
        match self.address {
            IpAddr::V4(_) => vec![self.mac],
            IpAddr::V6(address) => frame::probe_groups(address).to_vec(),
        }
    }
}

/// The addresses to probe for a pod that has these links and addresses now: those that are missing on macvlans and ipvlans of the
/// host's links, that only one pod may have, and for which the kernel does not probe itself.
pub(in crate::restore) fn targets(
    matched: &Matched,
    now: &NetState,
    links: &HostLinks,
) -> Vec<ProbeTarget> {
    let recorded = matched.claims();
    let recorded = Indexed::new(&recorded);
    let present: HashSet<_> = now
        .addresses
        .iter()
        .map(|one| (&one.dev, one.identity()))
        .collect();
    let is_withheld =
        |claim: Option<&Claim>| claim.is_some_and(|one| matched.withheld.contains(one));
    let is_lost = |address: &&&Address| !present.contains(&(&address.dev, address.identity()));
    let mut targets = Vec::new();
    for link in &recorded.state.links {
        let parent = link.parent.as_ref().filter(|_| link.kind.shares_parent());
        let Some(Parent::Host(parent)) = parent else {
            continue;
        };
        let mac = now.link(&link.name).and_then(|now| now.mac).or(link.mac);
        let is_used = link.flags.up && !link.flags.noarp;
        let Some(mac) = mac.filter(|_| is_used) else {
            continue;
        };
        if is_withheld(Claim::of_link(link, parent).as_ref()) {
            continue;
        }
        let addresses = recorded.addresses_of(&link.name).iter().filter(is_lost);
        let addresses = addresses.filter(|address| !matched.leaves_to_daemon(address));
        for address in addresses.filter(|address| !is_probed_by_kernel(link, address)) {
            let claim = Claim::of_address(address, parent);
            if let Some(claim) = claim.filter(|claim| !is_withheld(Some(claim))) {
                targets.push(ProbeTarget {
                    claim,
                    parent: links.name_now(parent),
                    mac,
                    address: address.local,
                });
            }
        }
    }
    targets
}

/// Whether the kernel adds an address only after duplicate address detection (`addrconf_dad_begin` in
/// `net/ipv6/addrconf.c`). An optimistic one is in use before its end.
fn is_probed_by_kernel(link: &Link, address: &Address) -> bool {
    const ACCEPT_DAD: SysctlKey = SysctlKey::known("accept_dad");
    const DAD_TRANSMITS: SysctlKey = SysctlKey::known("dad_transmits");
    const OPTIMISTIC_DAD: SysctlKey = SysctlKey::known("optimistic_dad");
    let is_set = |key, default: i64| link.sysctls.ipv6.get(&key).copied().unwrap_or(default) > 0;
    address.local.is_ipv6()
        && address.flags & NODAD == 0
        && is_set(ACCEPT_DAD, 1)
        && is_set(DAD_TRANSMITS, 1)
        && !is_set(OPTIMISTIC_DAD, 0)
}

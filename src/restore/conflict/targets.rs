//! The addresses to probe: those that pods have lost and are to get again.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::kernel::wire::frame;
use crate::model::net::address::NODAD;
use crate::model::net::link::sysctl::SysctlKey;
use crate::model::{Address, AddressProxy, Claim, IfName, Indexed, Link, Mac, NetState, Parent};
use crate::plan::HostLinks;
use crate::records::matched::Matched;

/// An address that a pod has lost and is to get again.
#[derive(Debug, Clone)]
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

    /// Whether it answers for this address, by the recorded name of the host's link.
    pub(super) fn is_answered_by(&self, proxy: &AddressProxy) -> bool {
        matches!(&self.claim, Claim::Address(link, address) if proxy.answers_for(link, *address))
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
/// host's links, that only one pod may have, and for which the kernel does not probe itself or has found another owner.
pub(in crate::restore) fn targets(
    matched: &Matched,
    now: &NetState,
    links: &HostLinks,
) -> Vec<ProbeTarget> {
    let recorded = matched.claims();
    let recorded = Indexed::new(&recorded);
    let present: HashMap<_, _> = now
        .addresses
        .iter()
        .map(|one| ((&one.dev, one.identity()), one))
        .collect();
    let is_withheld =
        |claim: Option<&Claim>| claim.is_some_and(|one| matched.withheld.contains(one));
    // One that another machine had may be free now.
    let is_probed = |link: &Link, address: &Address| {
        let now = present.get(&(&address.dev, address.identity()));
        now.map_or_else(
            || !is_probed_by_kernel(link, address),
            |now| now.has_failed_detection(),
        )
    };
    let lost = claimed(&recorded).filter(|(link, parent, address, claim)| {
        is_probed(link, address)
            && !matched.leaves_to_daemon(address)
            && !is_withheld(Some(claim))
            && !is_withheld(Claim::of_link(link, parent).as_ref())
    });
    let target = |(link, parent, address, claim): (&Link, &IfName, &Address, Claim)| {
        let now = now.link(&link.name).and_then(|now| now.mac);
        Some(ProbeTarget {
            claim,
            parent: links.name_now(parent),
            mac: now.or(link.mac)?,
            address: address.local,
        })
    };
    lost.filter_map(target).collect()
}

/// The addresses that a pod with this state has and that a restore would probe, on the present links of the host.
pub(super) fn present(state: &NetState) -> Vec<ProbeTarget> {
    let target = |(link, parent, address, claim): (&Link, &IfName, &Address, Claim)| {
        Some(ProbeTarget {
            claim,
            parent: parent.clone(),
            mac: link.mac?,
            address: address.local,
        })
    };
    let state = Indexed::new(state);
    let probed =
        claimed(&state).filter(|(link, _, address, _)| !is_probed_by_kernel(link, address));
    probed.filter_map(target).collect()
}

/// The addresses that only one pod may have, on macvlans and ipvlans of the host's links; each with its link and that link's parent.
fn claimed<'a>(
    state: &'a Indexed<'a>,
) -> impl Iterator<Item = (&'a Link, &'a IfName, &'a Address, Claim)> {
    let links = state.state.links.iter().filter_map(|link| {
        let is_used = link.kind.shares_parent() && link.flags.up && !link.flags.noarp;
        match &link.parent {
            Some(Parent::Host(parent)) if is_used => Some((link, parent)),
            _ => None,
        }
    });
    links.flat_map(|(link, parent)| {
        let addresses = state.addresses_of(&link.name).iter();
        addresses.filter_map(move |address| {
            let claim = Claim::of_address(address, parent)?;
            Some((link, parent, *address, claim))
        })
    })
}

/// Whether the kernel adds an address only after duplicate address detection (`addrconf_dad_begin` in
/// `net/ipv6/addrconf.c`). An optimistic one is in use before its end.
pub(in crate::restore) fn is_probed_by_kernel(link: &Link, address: &Address) -> bool {
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

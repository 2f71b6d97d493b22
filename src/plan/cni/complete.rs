//! Completes an incomplete source: what it lacks comes from the pod's present state.

use ipnet::{IpNet, Ipv4Net};

use crate::model::net::address::in_adding_order;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::net::link::{Flags, Macvlan, MacvlanMode, Vlan};
use crate::model::pod::partial::{Attachment, Made, Partial, Tuning};
use crate::model::problem::PartialCause;
use crate::model::{Address, IfName, Indexed, Link, LinkKind, NetState, Parent, Problem};
use crate::plan::cni::routes;
use crate::plan::link::diff;
use crate::plan::link::ipv6::{ADDR_GEN_MODE, DISABLE_IPV6};
use crate::plan::{HostLinks, Plan};

/// The state that such a source describes, and the problems with it.
///
/// The pod's present objects, in `now`, keep their settings and attributes if their link is up. Missing ones are created as
/// in the source, or else with the settings of a new link on that parent. Links in `made` are of this run and get the
/// source's settings.
#[must_use]
pub fn complete(
    partial: &Partial,
    now: &NetState,
    made: &[IfName],
    host: &HostLinks,
) -> (NetState, Vec<Problem>) {
    let mut completion = Completion {
        now,
        made,
        host,
        state: now.clone(),
        problems: Vec::new(),
    };
    for attachment in &partial.attachments {
        completion.attachment(attachment);
    }
    (completion.state, completion.problems)
}

struct Completion<'a> {
    now: &'a NetState,
    made: &'a [IfName],
    host: &'a HostLinks,
    state: NetState,
    problems: Vec<Problem>,
}

impl Completion<'_> {
    fn attachment(&mut self, attachment: &Attachment) {
        let now = self.now.link(&attachment.ifname);
        let link = match now {
            Some(_) if !attachment.can_be_made() => return,
            Some(now) if now.kind.name() == attachment.made.name() => {
                Some(self.existing(attachment, now))
            }
            // Another kind of link has its name: the planner reports the conflict.
            Some(_) => Some(plain(attachment)),
            None => self.fresh(attachment),
        };
        let Some(link) = link else { return };
        self.state.links.retain(|other| other.name != link.name);
        self.state.links.push(link);
        if attachment.can_be_made() {
            self.addresses(attachment);
            self.routes(attachment);
        }
    }

    /// A link to create; `None`, with a problem, if that is impossible.
    fn fresh(&mut self, attachment: &Attachment) -> Option<Link> {
        let mut link = plain(attachment);
        if !attachment.can_be_made() {
            return Some(link);
        }
        let Some(parent) = &attachment.parent else {
            self.error(PartialCause::ParentUnknown, attachment);
            return None;
        };
        if let Some(available) = self.host.mtus.get(parent).copied() {
            let wanted = attachment.mtu.unwrap_or(available);
            if wanted > available {
                let cause = PartialCause::MtuAboveParent {
                    mtu: wanted,
                    parent: parent.clone(),
                    available,
                };
                self.error(cause, attachment);
                return None;
            }
            link.mtu = wanted;
        }
        link.parent = Some(Parent::Host(parent.clone()));
        tune(attachment, &all_sysctls(attachment), &mut link);
        self.report_what_is_lost(attachment);
        Some(link)
    }

    fn existing(&mut self, attachment: &Attachment, now: &Link) -> Link {
        let is_own = self.made.contains(&attachment.ifname);
        let mut link = now.clone();
        // No source says whether the kernel had added an address.
        link.sysctls.ipv6.remove(&ADDR_GEN_MODE);
        link.mac = attachment.mac.or(now.mac);
        link.flags = Flags {
            up: true,
            ..now.flags
        };
        match (&mut link.kind, &attachment.made) {
            (
                LinkKind::Macvlan(data),
                Made::Macvlan {
                    mode: Some(mode), ..
                },
            ) => data.mode = *mode,
            (LinkKind::Vlan(data), Made::Vlan(id)) => data.id = *id,
            _ => {}
        }
        if is_own || !now.flags.up {
            tune(attachment, &all_sysctls(attachment), &mut link);
            self.unknown_settings(attachment, now);
        } else {
            self.allow_ipv6(attachment, &mut link);
            self.left_alone(attachment, &link, now);
        }
        if is_own {
            self.report_what_is_lost(attachment);
        }
        link
    }

    /// A missing IPv6 address needs IPv6, on a link that is up as well.
    fn allow_ipv6(&self, attachment: &Attachment, link: &mut Link) {
        let lacks_ipv6 = attachment.addresses.iter().any(|net| {
            let wanted = address(&attachment.ifname, *net);
            wanted.local.is_ipv6() && !self.now.addresses.iter().any(|now| now.is_same(&wanted))
        });
        if lacks_ipv6 && let Some(off) = link.sysctls.ipv6.get_mut(&DISABLE_IPV6) {
            *off = 0;
        }
    }

    /// What a restore cannot set on a recreated link.
    fn report_what_is_lost(&mut self, attachment: &Attachment) {
        if let (None, Made::Macvlan { .. }) = (attachment.mac, &attachment.made) {
            self.problems
                .push(PartialCause::MacUnknown.warning(&attachment.ifname));
        }
        for what in &attachment.beyond {
            let what = what.clone();
            self.error(PartialCause::PluginLost { what }, attachment);
        }
    }

    /// Reports how a link that is up differs from its configuration; it may have been changed on purpose.
    fn left_alone(&mut self, attachment: &Attachment, link: &Link, now: &Link) {
        let mut configured = link.clone();
        let explicit = [&attachment.tuning.sysctls];
        tune(attachment, &explicit, &mut configured);
        configured.mac = now.mac;
        let mut differing = Plan::default();
        let state = Indexed::new(self.now);
        diff::attributes(&configured, now, &state, &state, &mut differing);
        diff::sysctls(&configured, now, &state, &mut differing);
        for line in differing.lines() {
            self.problems
                .push(PartialCause::ConfiguredOtherwise.warning(line));
        }
        for what in &attachment.beyond {
            let what = what.clone();
            self.problems
                .push(PartialCause::PluginUnseen { what }.info(&attachment.ifname));
        }
    }

    /// Reports configured settings that this kernel does not show, and that netfix cannot set.
    fn unknown_settings(&mut self, attachment: &Attachment, now: &Link) {
        let dev = &attachment.ifname;
        let wanted = attachment.tuning.sysctls.folders();
        for ((folder, wanted), (_, known)) in wanted.into_iter().zip(now.sysctls.folders()) {
            for (key, value) in wanted.iter().filter(|(key, _)| !known.contains_key(key)) {
                let object = format!("sysctl net/{}/{dev}/{key} = {value}", folder.as_str());
                self.problems
                    .push(PartialCause::SettingUnknown.error(object));
            }
        }
    }

    fn addresses(&mut self, attachment: &Attachment) {
        let wanted = attachment.addresses.iter();
        let wanted: Vec<_> = wanted
            .map(|net| address(&attachment.ifname, *net))
            .collect();
        // Added in the order of the source, they are listed in this one.
        for wanted in in_adding_order(wanted.iter()) {
            if !self.state.addresses.iter().any(|now| now.is_same(wanted)) {
                self.state.addresses.push(wanted.clone());
            }
        }
    }

    fn routes(&mut self, attachment: &Attachment) {
        let (routes, impossible) = routes::routes(&attachment.ifname, &attachment.routes);
        for route in impossible {
            self.error(PartialCause::RouteOfTwoFamilies { route }, attachment);
        }
        for route in routes {
            if !self
                .state
                .routes
                .iter()
                .any(|now| routes::goes_the_same_way(now, &route))
            {
                self.state.routes.push(route);
            }
        }
    }

    fn error(&mut self, cause: PartialCause, attachment: &Attachment) {
        self.problems.push(cause.error(&attachment.ifname));
    }
}

/// A new link, as far as the source describes it.
fn plain(attachment: &Attachment) -> Link {
    let kind = match &attachment.made {
        Made::Macvlan { mode, bc_queue_len } => LinkKind::Macvlan(Macvlan {
            bc_queue_len: *bc_queue_len,
            ..Macvlan::plain(mode.unwrap_or(MacvlanMode::Bridge))
        }),
        Made::Vlan(id) => LinkKind::Vlan(Vlan::plain(*id)),
        Made::Other(driver) => LinkKind::other(driver),
    };
    let mut link = Link::plain(attachment.ifname.clone(), kind);
    link.mac = attachment.mac.or(attachment.spare_mac);
    link.mtu = attachment.mtu.unwrap_or(link.mtu);
    link
}

fn all_sysctls(attachment: &Attachment) -> [&Sysctls; 2] {
    [&attachment.tuning.implied, &attachment.tuning.sysctls]
}

/// Applies the settings of the source to a link, with these of its sysctls.
fn tune(attachment: &Attachment, sysctls: &[&Sysctls], link: &mut Link) {
    let Tuning {
        txqueuelen,
        promisc,
        allmulti,
        sysctls: _,
        implied: _,
    } = &attachment.tuning;
    link.mtu = attachment.mtu.unwrap_or(link.mtu);
    link.txqueuelen = txqueuelen.unwrap_or(link.txqueuelen);
    link.flags.promisc = promisc.unwrap_or(link.flags.promisc);
    link.flags.allmulti = allmulti.unwrap_or(link.flags.allmulti);
    let into = &mut link.sysctls;
    for from in sysctls {
        for (folder, settings) in from.folders() {
            into.folder_mut(folder).extend(settings.iter().copied());
        }
        into.stable_secret = from.stable_secret.or(into.stable_secret);
    }
}

/// An address as plugins add it: with a broadcast address, if the subnet has one.
fn address(dev: &IfName, net: IpNet) -> Address {
    let broadcast = match net {
        IpNet::V4(net) if net.prefix_len() < 31 => Some(Ipv4Net::broadcast(&net)),
        _ => None,
    };
    Address {
        broadcast,
        ..Address::plain(dev.clone(), net.addr(), net.prefix_len())
    }
}

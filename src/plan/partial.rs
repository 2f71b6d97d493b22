//! Sources that know a pod only in part: what they leave out is taken from what is there.

use ipnet::{IpNet, Ipv4Net};

use super::settle;
use super::{HostLinks, Plan, via};
use crate::model::link::{Flags, Macvlan, MacvlanMode, Vlan};
use crate::model::partial::{Attachment, Made, Partial, Tuning};
use crate::model::sysctl::{Settings, Sysctls};
use crate::model::{Address, Code, IfName, Link, LinkKind, NetState, Parent, Problem};

/// The state that such a source describes, and what it cannot say of it.
///
/// Everything in `now`, what the pod has, belongs to it as it is: a link that is up keeps its settings, an address or a
/// route its attributes. What is missing is made as the source says, and where that is silent as a new link on its
/// parent would be. Links in `made` are this run's own, so their settings are still the source's to decide.
#[must_use]
pub fn complete(
    partial: &Partial,
    now: &NetState,
    made: &[IfName],
    host: &HostLinks,
) -> (NetState, Vec<Problem>) {
    let mut completion = Completion { now, made, host, state: now.clone(), problems: Vec::new() };
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
            Some(now) if now.kind.name() == attachment.made.name() => Some(self.existing(attachment, now)),
            // Something else has its name: the planner says so, whatever the link stood on.
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

    /// A link that has to be made; `None`, with the reason told, when it cannot.
    fn fresh(&mut self, attachment: &Attachment) -> Option<Link> {
        let mut link = plain(attachment);
        if !attachment.can_be_made() {
            return Some(link);
        }
        let Some(parent) = &attachment.parent else {
            let message = "is gone, and nothing says what it stood on; name that with --parent, such as --parent eth0.3";
            self.error(Code::ParentMissing, attachment, message.to_owned());
            return None;
        };
        if let Some(available) = self.host.mtus.get(parent).copied() {
            let wanted = attachment.mtu.unwrap_or(available);
            if wanted > available {
                let message = format!(
                    "had MTU {wanted}, and {parent} has {available} now: `ip link set {parent} mtu {wanted}`, and \
                     the same for what that stands on, then run this again"
                );
                self.error(Code::Failed, attachment, message);
                return None;
            }
            link.mtu = wanted;
        }
        link.parent = Some(Parent::Host(parent.clone()));
        tune(attachment, &mut link);
        self.tell_what_is_new(attachment);
        Some(link)
    }

    fn existing(&mut self, attachment: &Attachment, now: &Link) -> Link {
        let is_own = self.made.contains(&attachment.ifname);
        let mut link = now.clone();
        link.mac = attachment.mac.or(now.mac);
        link.flags = Flags { up: true, ..now.flags };
        match (&mut link.kind, &attachment.made) {
            (LinkKind::Macvlan(data), Made::Macvlan { mode: Some(mode), .. }) => data.mode = *mode,
            (LinkKind::Vlan(data), Made::Vlan(id)) => data.id = *id,
            _ => {}
        }
        if is_own || !now.flags.up {
            tune(attachment, &mut link);
            self.unknown_settings(attachment, now);
        } else {
            self.left_alone(attachment, &link, now);
        }
        if is_own {
            self.tell_what_is_new(attachment);
        }
        link
    }

    /// What nobody can put into a link that is made anew.
    fn tell_what_is_new(&mut self, attachment: &Attachment) {
        let dev = &attachment.ifname;
        if let (None, Made::Macvlan { .. }) = (attachment.mac, &attachment.made) {
            let message = "its MAC was not written down, so it gets another one; neighbours that knew the old one \
                           learn it by the announcement";
            self.problems.push(Problem::warning(Code::PartialSource, dev.to_string(), message));
        }
        for what in &attachment.beyond {
            let message =
                format!("{} was made with it, and netfix cannot do that again", what.escape_debug());
            self.error(Code::Unsupported, attachment, message);
        }
    }

    /// A link that is up may have been changed since it was made; that it is so is said, and nothing is done.
    fn left_alone(&mut self, attachment: &Attachment, link: &Link, now: &Link) {
        let mut configured = link.clone();
        let explicit = Tuning { implied: Sysctls::default(), ..attachment.tuning.clone() };
        tune(&Attachment { tuning: explicit, ..attachment.clone() }, &mut configured);
        configured.mac = now.mac;
        let mut differing = Plan::default();
        settle::attributes(&configured, now, self.now, &mut differing);
        settle::sysctls(&configured, now, self.now, &mut differing);
        for line in differing.lines() {
            let message = "is how it was configured; the link is up, so it is left as it is";
            self.problems.push(Problem::warning(Code::PartialSource, line, message));
        }
        for what in &attachment.beyond {
            let message = format!("whether {} is still in effect is not known", what.escape_debug());
            self.problems.push(Problem::info(Code::PartialSource, attachment.ifname.to_string(), message));
        }
    }

    /// Settings that were configured and that netfix does not see, so that it cannot set them either.
    fn unknown_settings(&mut self, attachment: &Attachment, now: &Link) {
        let folders = |sysctls: &Sysctls| {
            let Sysctls { ipv4, ipv6, neigh4, neigh6, stable_secret: _ } = sysctls.clone();
            [("ipv4/conf", ipv4), ("ipv6/conf", ipv6), ("ipv4/neigh", neigh4), ("ipv6/neigh", neigh6)]
        };
        let dev = &attachment.ifname;
        for ((folder, wanted), (_, known)) in
            folders(&attachment.tuning.sysctls).into_iter().zip(folders(&now.sysctls))
        {
            for (key, value) in wanted.iter().filter(|(key, _)| !known.contains_key(*key)) {
                let object = format!("sysctl net/{folder}/{dev}/{key} = {value}");
                let message = "was configured, and netfix cannot set it; write it by hand";
                self.problems.push(Problem::error(Code::Unsupported, object, message));
            }
        }
    }

    fn addresses(&mut self, attachment: &Attachment) {
        let wanted = attachment.addresses.iter().map(|net| address(&attachment.ifname, *net));
        // The kernel lists IPv6 addresses newest first.
        let (v4, v6): (Vec<_>, Vec<_>) = wanted.partition(|address| address.local.is_ipv4());
        for wanted in v4.into_iter().chain(v6.into_iter().rev()) {
            if !self.state.addresses.iter().any(|now| now.is_same(&wanted)) {
                self.state.addresses.push(wanted);
            }
        }
    }

    fn routes(&mut self, attachment: &Attachment) {
        let (routes, impossible) = via::routes(&attachment.ifname, &attachment.routes);
        for route in impossible {
            let message = format!("{route}: destination and gateway are of different families");
            self.error(Code::Unsupported, attachment, message);
        }
        for route in routes {
            if !self.state.routes.iter().any(|now| via::goes_the_same_way(now, &route)) {
                self.state.routes.push(route);
            }
        }
    }

    fn error(&mut self, code: Code, attachment: &Attachment, message: String) {
        self.problems.push(Problem::error(code, attachment.ifname.to_string(), message));
    }
}

/// A link of which nothing is known but how it came to be.
fn plain(attachment: &Attachment) -> Link {
    let kind = match &attachment.made {
        Made::Macvlan { mode, bc_queue_len } => LinkKind::Macvlan(Macvlan {
            bc_queue_len: *bc_queue_len,
            ..Macvlan::plain(mode.unwrap_or(MacvlanMode::Bridge))
        }),
        Made::Vlan(id) => LinkKind::Vlan(Vlan::plain(*id)),
        Made::Other(driver) => LinkKind::Other { driver: driver.clone() },
    };
    let mut link = Link::plain(attachment.ifname.clone(), kind);
    link.mac = attachment.mac.or(attachment.spare_mac);
    link.mtu = attachment.mtu.unwrap_or(link.mtu);
    link
}

/// Gives a link the settings that the source speaks of.
fn tune(attachment: &Attachment, link: &mut Link) {
    let Tuning { txqueuelen, promisc, allmulti, sysctls, implied } = &attachment.tuning;
    link.mtu = attachment.mtu.unwrap_or(link.mtu);
    link.txqueuelen = txqueuelen.unwrap_or(link.txqueuelen);
    link.flags.promisc = promisc.unwrap_or(link.flags.promisc);
    link.flags.allmulti = allmulti.unwrap_or(link.flags.allmulti);
    for from in [implied, sysctls] {
        let Sysctls { ipv4, ipv6, neigh4, neigh6, stable_secret } = from.clone();
        let into = &mut link.sysctls;
        let folders: [(&mut Settings, Settings); 4] = [
            (&mut into.ipv4, ipv4),
            (&mut into.ipv6, ipv6),
            (&mut into.neigh4, neigh4),
            (&mut into.neigh6, neigh6),
        ];
        for (into, from) in folders {
            into.extend(from);
        }
        into.stable_secret = stable_secret.or(into.stable_secret);
    }
}

/// An address as programs add it: with the broadcast address of its subnet, where that has room for one.
fn address(dev: &IfName, net: IpNet) -> Address {
    let broadcast = match net {
        IpNet::V4(net) if net.prefix_len() < 31 => Some(Ipv4Net::broadcast(&net)),
        _ => None,
    };
    Address { broadcast, ..Address::plain(dev.clone(), net.addr(), net.prefix_len()) }
}

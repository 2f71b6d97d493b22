//! The MTU: of links on others, and what IPv6 needs.

use netfix::model::net::link::settings::Settings;
use netfix::model::net::link::sysctl::SysctlKey;
use netfix::model::{IfName, Link, LinkKind, Parent};

use super::link::stays;
use super::{Errno, Kernel};

pub(super) const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");
/// `IPV6_MIN_MTU`.
const MIN_IPV6: u32 = 1280;

impl Kernel {
    pub fn set_mtu(&mut self, dev: &IfName, mtu: u32) -> Result<(), Errno> {
        let link = self.link(dev)?;
        let (below, is_vlan) = (self.mtu_below(link), matches!(link.kind, LinkKind::Vlan(_)));
        if let Ok(Some(below)) = below
            && mtu > below
        {
            return Err(if is_vlan {
                Errno::ERANGE
            } else {
                Errno::EINVAL
            });
        }
        self.link_mut(dev)?.mtu = mtu;
        self.ipv6_follows_mtu(dev, mtu)?;
        // Links on it go down with it, but not up.
        let is_pulled = |link: &&Link| {
            link.parent == Some(Parent::Own(dev.clone())) && link.mtu > mtu && !stays(link)
        };
        let pulled: Vec<IfName> = self
            .state
            .links
            .iter()
            .filter(is_pulled)
            .map(|link| link.name.clone())
            .collect();
        pulled.iter().try_for_each(|name| self.set_mtu(name, mtu))
    }

    /// A link keeps its IPv6 only with an MTU that is large enough, and gets it again as a new link does.
    fn ipv6_follows_mtu(&mut self, dev: &IfName, mtu: u32) -> Result<(), Errno> {
        let initial = self.new_link.clone();
        let link = self.link_mut(dev)?;
        if link.kind == LinkKind::Loopback {
            return Ok(());
        }
        let had_ipv6 = !link.sysctls.ipv6.is_empty();
        if mtu < MIN_IPV6 {
            link.sysctls.ipv6 = Settings::default();
            link.sysctls.neigh6 = Settings::default();
            (link.sysctls.stable_secret, link.token) = (None, None);
            self.take_ipv6(dev);
            return Ok(());
        }
        if !had_ipv6 {
            link.sysctls.ipv6 = initial.ipv6;
            link.sysctls.neigh6 = initial.neigh6;
        }
        if let Some(setting) = link.sysctls.ipv6.get_mut(&IPV6_MTU) {
            *setting = mtu.into();
        }
        if !had_ipv6 {
            self.make_link_local(dev);
        }
        Ok(())
    }

    fn take_ipv6(&mut self, dev: &IfName) {
        let state = &mut self.state;
        state
            .routes
            .retain(|route| !route.is_ipv6() || !route.devs().contains(&dev));
        state
            .neighbours
            .retain(|neighbour| neighbour.dev != *dev || neighbour.dst.is_ipv4());
        self.take_ipv6_addresses(dev);
    }
}

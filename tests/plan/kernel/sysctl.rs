//! Per-interface sysctls, and the addresses that the kernel creates because of them.

use std::net::{IpAddr, Ipv6Addr};

use netfix::model::net::address::{Maker, PERMANENT};
use netfix::model::net::link::sysctl::{Folder, SysctlKey};
use netfix::model::{Address, IfName, Link, Mac};

use super::link::makes_link_local;
use super::mtu::IPV6_MTU;
use super::{Errno, Kernel};

pub(super) const DISABLE_IPV6: SysctlKey = SysctlKey::known("disable_ipv6");
pub(super) const ADDR_GEN_MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
const ACCEPT_RA: SysctlKey = SysctlKey::known("accept_ra");
/// `IN6_ADDR_GEN_MODE_NONE`, `IN6_ADDR_GEN_MODE_STABLE_PRIVACY`.
pub(super) const MODE_NONE: i64 = 1;
const MODE_STABLE: i64 = 2;
const SCOPE_LINK: u8 = 253;
/// `IFAPROT_KERNEL_LL`.
const PROTO_KERNEL_LL: u8 = 3;

pub(super) fn setting(link: &Link, key: &SysctlKey) -> Option<i64> {
    link.sysctls.ipv6.get(key).copied()
}

impl Kernel {
    pub(super) fn write_sysctl(
        &mut self,
        dev: &IfName,
        folder: Folder,
        key: &SysctlKey,
        value: &str,
    ) -> Result<(), Errno> {
        let mtu = self.link(dev).map_err(|_| Errno::ENOENT)?.mtu;
        let link = self.link_mut(dev)?;
        if key.as_str() == "stable_secret" {
            let secret: Ipv6Addr = value.parse().map_err(|_| Errno::EINVAL)?;
            link.sysctls.stable_secret = Some(secret);
            link.sysctls.ipv6.insert(ADDR_GEN_MODE, MODE_STABLE);
            return Ok(());
        }
        let value: i64 = value.parse().map_err(|_| Errno::EINVAL)?;
        let settings = match folder {
            Folder::Ipv4Conf => &mut link.sysctls.ipv4,
            Folder::Ipv6Conf => &mut link.sysctls.ipv6,
            Folder::Ipv4Neigh => &mut link.sysctls.neigh4,
            Folder::Ipv6Neigh => &mut link.sysctls.neigh6,
        };
        let place = settings.get_mut(key).ok_or(Errno::ENOENT)?;
        if folder != Folder::Ipv6Conf {
            *place = value;
            return Ok(());
        }
        if *key == IPV6_MTU && value > mtu.into() {
            return Err(Errno::EINVAL);
        }
        let is_change = *place != value;
        *place = value;
        let has_secret = link.sysctls.stable_secret.is_some();
        if *key == ADDR_GEN_MODE && value == MODE_STABLE && !has_secret {
            return Err(Errno::EINVAL);
        }
        if *key == DISABLE_IPV6 && value != 0 {
            self.take_ipv6_addresses(dev);
        } else if is_change && (*key == ADDR_GEN_MODE || *key == DISABLE_IPV6) {
            self.make_link_local(dev);
        }
        Ok(())
    }

    /// By netlink, where the kernel creates no address at once, unlike a write of the sysctl.
    pub(super) fn set_addr_gen_mode(&mut self, dev: &IfName, mode: u8) -> Result<(), Errno> {
        let link = self.link_mut(dev)?;
        if i64::from(mode) == MODE_STABLE && link.sysctls.stable_secret.is_none() {
            return Err(Errno::EINVAL);
        }
        link.sysctls.ipv6.insert(ADDR_GEN_MODE, mode.into());
        Ok(())
    }

    /// The kernel creates a link-local address, and one from the prefix that a router advertises.
    pub(super) fn carrier_came(&mut self, dev: &IfName) {
        self.make_link_local(dev);
        let Ok(link) = self.link(dev) else { return };
        let listens =
            setting(link, &DISABLE_IPV6) == Some(0) && setting(link, &ACCEPT_RA) == Some(1);
        if self.router && listens {
            let learnt = "2001:db8:ad::ff".parse().expect("an address");
            let address = Address {
                maker: Maker::Network,
                ..Address::plain(dev.clone(), IpAddr::V6(learnt), 64)
            };
            self.state.addresses.insert(0, address);
        }
    }

    pub(super) fn make_link_local(&mut self, dev: &IfName) {
        let Ok(link) = self.link(dev) else { return };
        let Some(mac) = link.mac.filter(|_| makes_link_local(link)) else {
            return;
        };
        let local = match (setting(link, &ADDR_GEN_MODE), link.sysctls.stable_secret) {
            // Not the kernel's hash, but it also depends on the secret.
            (Some(MODE_STABLE), Some(secret)) => {
                let [.., a, b, c, d] = secret.segments();
                Ipv6Addr::new(0xfe80, 0, 0, 0, a, b, c, d)
            }
            _ => eui64(mac),
        };
        let is_known =
            |address: &Address| address.dev == *dev && address.local == IpAddr::V6(local);
        if !self.state.addresses.iter().any(is_known) {
            let address = Address {
                scope: SCOPE_LINK,
                flags: PERMANENT,
                protocol: Some(PROTO_KERNEL_LL),
                maker: Maker::Kernel,
                ..Address::plain(dev.clone(), IpAddr::V6(local), 64)
            };
            self.list_ipv6(address);
        }
    }
}

/// RFC 4291, appendix A.
fn eui64(Mac(mac): Mac) -> Ipv6Addr {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0xfe, 0x80]);
    bytes[8..11].copy_from_slice(&mac[..3]);
    bytes[8] ^= 2;
    bytes[11..13].copy_from_slice(&[0xff, 0xfe]);
    bytes[13..].copy_from_slice(&mac[3..]);
    Ipv6Addr::from(bytes)
}

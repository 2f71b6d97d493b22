//! Packet steering and NAPI settings of links, through a sysfs of the calling thread's namespace that is mounted nowhere.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::fault::point;
use crate::kernel::Errno;
use crate::kernel::conf::files::Files;
use crate::model::net::link::sysfs::{OF_LINK, OF_QUEUE, SysfsKey, SysfsSettings, SysfsValue};
use crate::model::{IfName, Link, LinkKind};

/// The kernel makes no value longer: a page.
const LONGEST: usize = 4096;

/// The state of a port of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortState {
    Listening,
    Learning,
    /// It forwards, or does not and will not soon.
    Other,
}

/// A sysfs that shows the links of the namespace in which it was made. It is gone with this value.
pub(crate) struct Sysfs(Files);

impl Sysfs {
    pub(crate) fn here() -> io::Result<Self> {
        Files::mount("sysfs").map(Self)
    }

    /// The files of a link. Those of one without hardware are found sooner by its place than by its class.
    pub(crate) fn files(&self, dev: &IfName) -> nix::Result<Files> {
        let dev = OsStr::from_bytes(dev.as_bytes());
        let below = |folder: &str| self.0.below(&Path::new(folder).join(dev));
        below("devices/virtual/net").or_else(|_| below("class/net"))
    }

    /// How long a port of this bridge listens, and then learns; `None` without spanning tree.
    pub(crate) fn spanning_tree(&self, bridge: &IfName) -> Option<Duration> {
        let files = self.files(bridge).ok()?;
        let number = |text: &str| text.parse().ok();
        let is_on = files.read::<16, u64>("bridge/stp_state", number)? != 0;
        let hundredths = files.read::<16, u64>("bridge/forward_delay", number)?;
        is_on.then(|| Duration::from_millis(10 * hundredths))
    }

    /// Whether the port of a bond still agrees with its switch (802.3ad) whether it may send; `None` where it speaks with none.
    pub(crate) fn negotiates(&self, port: &IfName) -> Option<bool> {
        let files = self.files(port).ok()?;
        let state = "bonding_slave/ad_actor_oper_port_state";
        files.read::<16, _>(state, |text| text.parse().ok().map(negotiates))
    }

    /// Whether the port of a bridge will forward.
    pub(crate) fn port_state(&self, port: &IfName) -> PortState {
        let files = self.files(port).ok();
        // `BR_STATE_*` (`linux/if_bridge.h`).
        let state = files.and_then(|files| {
            files.read::<16, _>("brport/state", |text| match text {
                "1" => Some(PortState::Listening),
                "2" => Some(PortState::Learning),
                _ => None,
            })
        });
        state.unwrap_or(PortState::Other)
    }

    /// The ports of a bond in the order in which they were added.
    fn bond_ports(of_link: &Files) -> Vec<IfName> {
        let names = |text: &str| text.split(' ').map(|name| name.parse().ok()).collect();
        let ports = of_link
            .read::<LONGEST, Vec<Option<IfName>>>("bonding/slaves", |text| Some(names(text)));
        ports.into_iter().flatten().flatten().collect()
    }

    /// Reads what belongs to a link: its settings, and what distinguishes a device from the one that its driver makes next.
    fn complete(&self, link: &mut Link) -> nix::Result<()> {
        let of_link = self.files(&link.name)?;
        let instance = of_link.inode()?;
        let mut settings = SysfsSettings::new();
        for setting in OF_LINK {
            read_into(&mut settings, &of_link, setting, "");
        }
        for (prefix, names) in OF_QUEUE {
            // The driver of a device decides which processor uses which transmit queue.
            if link.hardware.is_some() && prefix == "tx-" {
                continue;
            }
            let count = link.queues.map_or(u32::MAX, |queues| match prefix {
                // A link with one has nothing to choose from (`xps_cpus_show` in net/core/net-sysfs.c).
                "tx-" if queues.tx == 1 => 0,
                "tx-" => queues.tx,
                _ => queues.rx,
            });
            for number in 0..count {
                let queue = format!("queues/{prefix}{number}");
                let Ok(files) = of_link.below(Path::new(&queue)) else {
                    break;
                };
                for setting in names {
                    read_into(&mut settings, &files, setting, &format!("{queue}/"));
                }
            }
        }
        link.sysfs = settings;
        if matches!(link.kind, LinkKind::Bond(_)) {
            link.ports = Self::bond_ports(&of_link);
        }
        if let Some(hardware) = &mut link.hardware {
            hardware.instance = Some(instance);
        }
        Ok(())
    }
}

/// By the state of a port. Where no switch has answered in time, the kernel sends without one (`ad_agg_selection_logic` in
/// `drivers/net/bonding/bond_3ad.c`).
fn negotiates(state: u8) -> bool {
    /// `LACP_STATE_*` (`net/bond_3ad.h`).
    const DISTRIBUTING: u8 = 0x20;
    const DEFAULTED: u8 = 0x40;
    const EXPIRED: u8 = 0x80;
    let has_no_switch = state & (DEFAULTED | EXPIRED) == DEFAULTED;
    state & DISTRIBUTING == 0 && !has_no_switch
}

/// Reads a setting that is not the default. A link without the feature has no such file, or one that cannot be read.
fn read_into(settings: &mut SysfsSettings, files: &Files, name: &str, prefix: &str) {
    let value = files.read::<LONGEST, _>(name, |text| SysfsValue::try_from(text.to_owned()).ok());
    if let Some(value) = value.filter(|value| !value.is_default())
        && let Ok(key) = SysfsKey::try_from(format!("{prefix}{name}"))
    {
        settings.insert(key, value);
    }
}

/// Adds their settings to the links of the calling thread's namespace that can be lost with a NIC.
///
/// # Errors
/// A sysfs cannot be mounted, for a reason other than a kernel before 5.2, which cannot mount one in this way.
pub fn complete(links: &mut [Link]) -> io::Result<()> {
    let mut links = links
        .iter_mut()
        .filter(|link| link.can_be_lost() || link.is_stand_in())
        .peekable();
    if links.peek().is_none() {
        return Ok(());
    }
    let sysfs = match Sysfs::here() {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => return Ok(()),
        sysfs => sysfs?,
    };
    for link in links {
        match sysfs.complete(link) {
            // It was deleted since.
            Err(Errno::ENOENT) => {}
            completed => completed?,
        }
    }
    Ok(())
}

/// Writes one setting of a link of the calling thread's namespace.
///
/// # Errors
/// The kernel refuses the value, or the link has no such setting.
pub fn write(dev: &IfName, key: &SysfsKey, value: &SysfsValue) -> io::Result<()> {
    let sysfs = Sysfs::here()?;
    let mut file = sysfs.files(dev)?.open_to_write(&key.to_string())?;
    point("sysfs write")?;
    file.write_all(value.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_negotiates_until_it_sends_or_no_switch_answers() {
        // As Linux 6.1 reports it: with a switch, until it sends; and without one.
        let (with, without) = ([0xc5, 0x05, 0x3d], [0xc5, 0xcd, 0x4d]);
        for [first, second, last] in [with, without] {
            let all = [(first, true), (second, true), (last, false)];
            for (state, expected) in all {
                assert_eq!(negotiates(state), expected, "{state:#x}");
            }
        }
    }
}

//! Virtual functions: writes to the files of the bus.

use std::io;

use crate::kernel::link::{self, Placement};
use crate::kernel::{Errno, Error, Socket, sriov};
use crate::model::net::link::{Macvlan, MacvlanMode};
use crate::model::problem::RestoreCause;
use crate::model::{Link, LinkKind};
use crate::plan::{Change, NetlinkStep, SriovChange, SriovStep, Step};
use crate::restore::between::Between;

/// Carries out a step for a device of this index.
pub(super) fn write(
    socket: &mut Socket,
    device: Result<u32, Errno>,
    step: &SriovStep,
) -> io::Result<()> {
    let bus = step.bus.as_str();
    match &step.change {
        SriovChange::Autoprobe(is_on) => sriov::set_autoprobe(bus, *is_on),
        SriovChange::Number(vfs) => received(socket, device?, || sriov::set_number(bus, *vfs)),
        SriovChange::Override(index, driver) => sriov::set_override(bus, *index, driver),
        SriovChange::Bind(index) => sriov::bind(bus, *index),
        SriovChange::Rebind(index) => sriov::rebind(bus, *index),
        // It comes with a step for the host.
        SriovChange::Await(_) => Err(Errno::ENODEV.into()),
    }
}

/// Makes functions while a macvlan receives the packets of the device. Where ice finds no receiver, it registers one of its own against
/// bonds, and the kernel refuses each macvlan and bridge after that (`ice_disable_lag`, Linux 5.12 to 6.4).
fn received(
    socket: &mut Socket,
    device: u32,
    make: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    // A device that has a receiver needs no other.
    let receiver = Receiver::on(socket, device);
    let result = make();
    if let Ok(receiver) = receiver {
        receiver.delete();
    }
    result
}

/// A macvlan that is down, where only this process can reach it.
struct Receiver {
    place: Between,
    index: u32,
}

impl Receiver {
    fn on(socket: &mut Socket, device: u32) -> Result<Self, Error> {
        /// `ETH_MIN_MTU`: no device has less.
        const LEAST_MTU: u32 = 68;
        let mut place = Between::open()?;
        let name = "netfix0".parse().map_err(|_| Errno::EINVAL)?;
        let macvlan = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Private));
        let mut link = Link::plain(name, macvlan);
        link.mtu = LEAST_MTU;
        let request = link::add(
            &link,
            Placement {
                name: Some(&link.name),
                index: None,
                netns: Some(place.netns.raw_fd()),
                parent: Some(device),
            },
        )?;
        socket.run_one(request)??;
        let index = link::index_of(&mut place.socket, &link.name)?;
        Ok(Self { place, index })
    }

    /// Deletes it at once: the kernel takes its time for what is in a namespace without a user.
    fn delete(mut self) {
        let _ = self.place.socket.run_one(link::del(self.index));
    }
}

/// Whether a step is about a virtual function.
pub(super) fn is_about_one(step: &Step) -> bool {
    match step {
        Step::Sriov(_) => true,
        Step::Netlink(NetlinkStep::SetLink { change, .. }) => {
            matches!(change, Change::Function(..))
        }
        _ => false,
    }
}

/// Whether a step failed because the functions could not be made.
pub(super) fn needs_functions(step: &Step, failed: &Step) -> bool {
    let Step::Sriov(SriovStep {
        dev,
        change: SriovChange::Number(_),
        ..
    }) = failed
    else {
        return false;
    };
    step != failed && is_about_one(step) && step.devs() == [dev]
}

/// What became of a step that is still missing: the driver's `error`, if it refused it.
pub(super) fn cause(error: Option<String>) -> RestoreCause {
    error.map_or(RestoreCause::FunctionUnchanged, |error| {
        RestoreCause::FunctionRefused { error }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::kernel::netns;

    fn ip(words: &str) -> bool {
        let mut ip = Command::new("ip");
        ip.args(words.split(' ')).status().unwrap().success()
    }

    #[test]
    fn a_device_has_a_receiver_while_its_functions_are_made_and_none_after_that() {
        let all = || {
            assert!(ip("link add eth0 index 77 type veth peer name peer"));
            assert!(ip("link add br0 type bridge"));
            let mut socket = Socket::open_here().unwrap();
            let make = || {
                assert!(!ip("link set eth0 master br0"), "nothing receives");
                Ok(())
            };
            received(&mut socket, 77, make).unwrap();
            assert!(ip("link set eth0 master br0"), "the macvlan is still there");
            // With a receiver of its own, and where the functions cannot be made.
            let refused = || Err(Errno::ERANGE.into());
            assert!(received(&mut socket, 77, refused).is_err());
        };
        netns::in_new(all).unwrap();
    }
}

//! A namespace through which links go on their way: into a pod, or back to the host with another ifindex.

use crate::kernel::link;
use crate::kernel::{Error, Netns, Socket, netns};
use crate::model::Link;

/// A namespace that only this process can reach: what is in it when netfix dies is gone with it, but for devices, which the kernel returns
/// to its first namespace. While the kernel takes down one that was closed, it changes no other network.
#[derive(Debug)]
pub(super) struct Between {
    pub netns: Netns,
    pub socket: Socket,
}

impl Between {
    pub fn open() -> Result<Self, Error> {
        netns::in_new(|| {
            Ok(Self {
                netns: Netns::here()?,
                socket: Socket::open_here()?,
            })
        })?
    }

    /// Moves the only link here to where it belongs, with its name.
    pub fn move_out(&mut self, index: u32, (netns, link): (&Netns, &Link)) -> Result<(), Error> {
        self.socket.run_one(link::rename(index, &link.name))??;
        self.move_to(netns, index, link.index)
    }

    /// Moves the only link here and gives it, since Linux 5.13, the `wanted` index there.
    fn move_to(&mut self, netns: &Netns, index: u32, wanted: u32) -> Result<(), Error> {
        let moved = |wanted| link::move_to(index, netns.raw_fd(), wanted);
        let mut result = self.socket.run_one(moved(wanted))?;
        if wanted != 0 && result.is_err() {
            // Another link has it there; the link matters more than its number.
            result = self.socket.run_one(moved(0))?;
        }
        Ok(result?)
    }
}

/// Gives a device of the host another ifindex, where the kernel can: it moves to a namespace, where it keeps the present one, and back.
/// One that cannot move back, and one whose netfix dies, is returned by the kernel.
pub(super) fn renumber(
    between: &mut Option<Between>,
    socket: &mut Socket,
    (present, wanted): (u32, u32),
) -> Result<(), Error> {
    let mut empty = between.take().map_or_else(Between::open, Ok)?;
    socket.run_one(link::move_to(present, empty.netns.raw_fd(), 0))??;
    empty.move_to(&Netns::here()?, present, wanted)?;
    *between = Some(empty);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::kernel::Errno;

    fn read(words: &str) -> String {
        let output = Command::new("sh").args(["-c", words]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_device_gets_the_index_that_names_it_elsewhere() {
        let all = || {
            read(
                "ip link add eth0 index 77 type veth peer name peer index 80 && ip link set eth0 up alias lan mtu 1400 address 0a:00:00:00:00:01",
            );
            let (mut socket, mut between) = (Socket::open_here().unwrap(), None);
            renumber(&mut between, &mut socket, (77, 7)).unwrap();
            let shown = read("ip link show eth0");
            assert!(shown.starts_with("7: eth0@"), "{shown}");
            for kept in ["mtu 1400", "alias lan", "0a:00:00:00:00:01"] {
                assert!(shown.contains(kept), "{shown}");
            }
            // Another one has it: the device comes back all the same.
            renumber(&mut between, &mut socket, (7, 80)).unwrap();
            let shown = read("ip link show eth0");
            assert!(shown.starts_with("7: eth0@"), "{shown}");
        };
        netns::in_new(all).unwrap();
    }

    #[test]
    fn a_device_that_is_bound_to_its_namespace_is_left_as_it_is() {
        let all = || {
            read("ip link add br0 index 77 up type bridge");
            let refused = renumber(&mut None, &mut Socket::open_here().unwrap(), (77, 7));
            assert!(
                matches!(refused, Err(Error::Kernel(Errno::EINVAL))),
                "{refused:?}"
            );
            let shown = read("ip link show br0");
            assert!(shown.starts_with("77: br0: "), "{shown}");
            assert!(shown.contains(",UP"), "{shown}");
        };
        netns::in_new(all).unwrap();
    }
}

//! Creates the pods' links on the host's links, all pods in few sends.

use std::time::Duration;

use crate::kernel::link::{self, Placement};
use crate::kernel::{Errno, Error, Netns, Request, Socket};
use crate::model::{IfName, Link, LinkKind, NetState, Parent};
use crate::plan::link::nic;
use crate::plan::{NicRules, NicStep, Plan, Step};
use crate::restore::apply;
use crate::restore::apply::detour::is_taken;
use crate::restore::between::Between;
use crate::restore::permit::Permit;

/// The namespace of a missing link, and the link.
pub(crate) type Creation<'a> = (&'a Netns, &'a Link);

/// What was set on a device before it was moved.
pub(crate) type Created = Result<Vec<Step>, Error>;

/// Creates the links, each in one message with its final name, index, MAC and MTU; the results are in order. A device is
/// moved instead, with its name and index, after what its driver forgot is set; that is in its result.
///
/// Kernels before 6.15 look the name and index up in the sender's namespace and answer `EEXIST` where the host has
/// them. Such a link, and one whose index is taken in its pod, goes through a namespace between the host and the pod.
/// Fails when the host's socket fails.
pub(crate) fn create(
    permit: Permit<'_>,
    socket: &mut Socket,
    host: &NetState,
    creations: &[Creation<'_>],
    rules: NicRules,
) -> Result<Vec<Created>, Error> {
    /// The messages of a thousand pods need not be in memory at once.
    const AT_ONCE: usize = 128;
    let mut between = None;
    let mut results = Vec::with_capacity(creations.len());
    for part in creations.chunks(AT_ONCE) {
        let answers = create_directly(socket, host, part)?;
        for (creation, answer) in part.iter().zip(answers) {
            results.push(match answer {
                _ if creation.1.kind == LinkKind::Physical => {
                    let set = set_device(permit, socket, host, creation.1, rules);
                    take_device(&mut between, socket, host, creation).map(|()| set)
                }
                Err(errno) if is_taken(errno, creation.1, host) => {
                    detour(&mut between, socket, host, creation).map(|()| Vec::new())
                }
                other => other.map(|()| Vec::new()).map_err(Error::from),
            });
        }
    }
    Ok(results)
}

/// Creates the links where they belong; the answers are in order.
fn create_directly(
    socket: &mut Socket,
    host: &NetState,
    creations: &[Creation<'_>],
) -> Result<Vec<Result<(), Errno>>, Error> {
    let mut requests = Vec::with_capacity(creations.len());
    let mut results: Vec<Result<(), Errno>> = Vec::with_capacity(creations.len());
    for (netns, link) in creations {
        let index = Some(link.index).filter(|index| *index != 0);
        let request = request(host, link, Some(&link.name), index, netns);
        results.push(request.map(|request| requests.push(request)));
    }
    let mut answers = socket.run(&requests)?.into_iter();
    for sent in results.iter_mut().filter(|result| result.is_ok()) {
        *sent = answers.next().unwrap_or(Err(Errno::EIO));
    }
    Ok(results)
}

/// The request for a link on one of the host's.
fn request(
    host: &NetState,
    link: &Link,
    name: Option<&IfName>,
    index: Option<u32>,
    netns: &Netns,
) -> Result<Request, Errno> {
    let place = Placement {
        name,
        index,
        netns: Some(netns.raw_fd()),
        parent: Some(parent_of(host, link)?.index),
    };
    link::add(link, place)
}

fn parent_of<'a>(host: &'a NetState, link: &Link) -> Result<&'a Link, Errno> {
    let Some(Parent::Host(parent)) = &link.parent else {
        return Err(Errno::EINVAL);
    };
    host.link(parent).ok_or(Errno::ENODEV)
}

/// Creates a link without a name in `between`, where neither the host nor a tenant has anything, and moves it into its pod.
fn detour(
    between: &mut Option<Between>,
    socket: &mut Socket,
    host: &NetState,
    creation: &Creation<'_>,
) -> Result<(), Error> {
    let mut empty = between.take().map_or_else(Between::open, Ok)?;
    let sent = socket.run_one(request(host, creation.1, None, None, &empty.netns)?)?;
    if let Err(errno) = sent {
        // Nothing came: the next link can go through it.
        *between = Some(empty);
        return Err(errno.into());
    }
    // The name that the kernel gives to the first link of a kind (`rtnl_newlink_create`).
    let name = format!("{}0", creation.1.kind.name());
    let name = name.parse().map_err(|_| Errno::EINVAL)?;
    let index = link::index_of(&mut empty.socket, &name)?;
    // A link that cannot be moved goes with its namespace.
    empty.move_out(index, *creation)?;
    *between = Some(empty);
    Ok(())
}

/// Sets what the driver forgot on a device that is to be moved, and returns what was set. What is refused is tried again in the pod, and
/// reported there.
fn set_device(
    permit: Permit<'_>,
    socket: &mut Socket,
    host: &NetState,
    wanted: &Link,
    rules: NicRules,
) -> Vec<Step> {
    let Ok(device) = parent_of(host, wanted) else {
        return Vec::new();
    };
    let mut plan = Plan::default();
    nic::of_device(wanted, device, rules, &mut plan);
    let done = apply::run(permit, socket, host, plan.steps, Duration::ZERO)
        .done
        .into_iter();
    let renamed = done.map(|step| match step {
        Step::Nic(step) => Step::Nic(NicStep {
            dev: wanted.name.clone(),
            ..step
        }),
        other => other,
    });
    renamed.collect()
}

/// Moves a device of the host into its pod, through `between`, where it gets its name. One that cannot be moved returns to the
/// host; if netfix dies, the kernel returns it.
fn take_device(
    between: &mut Option<Between>,
    socket: &mut Socket,
    host: &NetState,
    creation: &Creation<'_>,
) -> Result<(), Error> {
    let mut empty = between.take().map_or_else(Between::open, Ok)?;
    let device = parent_of(host, creation.1)?;
    socket.run_one(link::move_to(device.index, empty.netns.raw_fd(), 0))??;
    let index = link::index_of(&mut empty.socket, &device.name)?;
    let moved = empty.move_out(index, *creation);
    if moved.is_err() {
        empty.move_out(index, (&Netns::here()?, device))?;
    }
    *between = Some(empty);
    moved
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::kernel::netns;
    use crate::model::LinkKind;
    use crate::model::net::link::{Macvlan, MacvlanMode};

    fn index_of(socket: &mut Socket, name: &str) -> Option<u32> {
        link::index_of(socket, &name.parse().unwrap()).ok()
    }

    #[test]
    fn a_link_gets_its_name_and_index_on_the_way_to_its_pod() {
        let with_parent = || {
            let mut ip = Command::new("ip");
            let words = "link add eth0 index 77 type veth peer name eth1";
            assert!(ip.args(words.split(' ')).status().unwrap().success());
            Socket::open_here().unwrap()
        };
        let mut host = netns::in_new(with_parent).unwrap();
        let parent = Link {
            index: 77,
            ..Link::plain("eth0".parse().unwrap(), LinkKind::Physical)
        };
        let state = NetState {
            links: vec![parent.clone()],
            ..NetState::default()
        };
        let mut between = None;
        let macvlan = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
        for index in [77, 78] {
            let mut pod = Between::open().unwrap();
            let wanted = Link {
                index,
                parent: Some(Parent::Host(parent.name.clone())),
                ..Link::plain(parent.name.clone(), macvlan.clone())
            };
            let creation = (&pod.netns, &wanted);
            detour(&mut between, &mut host, &state, &creation).unwrap();
            assert!(detour(&mut between, &mut host, &state, &creation).is_err());
            assert!(between.is_none(), "what cannot be moved is kept");
            assert_eq!(index_of(&mut pod.socket, "eth0"), Some(index));
            assert_eq!(index_of(&mut pod.socket, "macvlan0"), None);
        }
        assert_eq!(index_of(&mut host, "macvlan0"), None);
    }
}

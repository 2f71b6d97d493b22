//! From a netlink step to its requests.

use crate::kernel::address::neighbour;
use crate::kernel::link::ports;
use crate::kernel::route::{nexthop, rule};
use crate::kernel::{Errno, Request, address, link, route, sriov, traffic};
use crate::model::net::address::{DADFAILED, TENTATIVE};
use crate::model::net::route::Position;
use crate::model::{Address, IfName};
use crate::plan::{Change, NetlinkStep, OrderedObject, Rewrite};

/// The requests for a step; `at` returns the ifindex of an interface. A new IPv6 address is probed by the kernel, or usable at once.
pub(crate) fn of(
    step: &NetlinkStep,
    is_probed: bool,
    at: impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Vec<Request>, Errno> {
    let request = match step {
        NetlinkStep::SetLink { dev, change, .. } => set_link(at(dev)?, change, &at)?,
        NetlinkStep::AddTraffic { dev, object } => traffic::add(at(dev)?, object),
        NetlinkStep::ChangeTraffic { dev, object } => traffic::change(at(dev)?, object),
        NetlinkStep::AddAddress(a) if !is_probed => return Ok(usable(at(&a.dev)?, a)),
        NetlinkStep::ChangeActions { dev: _, filter } => traffic::replace_actions(filter),
        NetlinkStep::AddAddress(a) => address::add(at(&a.dev)?, a),
        NetlinkStep::ChangeAddress(a) => address::change(at(&a.dev)?, a),
        NetlinkStep::AddForwarding { dev, entry } => link::fdb::put(at(dev)?, entry, &at)?,
        NetlinkStep::AddNeighbour(n) => neighbour::put(at(&n.dev)?, n),
        NetlinkStep::AddGroup {
            bridge,
            port,
            entry,
        } => ports::add_group(at(bridge)?, at(port)?, entry),
        NetlinkStep::AddRoute { route, position } => route::add(route, *position, &at)?,
        NetlinkStep::ChangeRoute(route) => route::change(route, &at)?,
        NetlinkStep::DeleteRoute(route) => route::del(route, &at)?,
        NetlinkStep::AddNexthop(nexthop) => nexthop::add(nexthop, &at)?,
        NetlinkStep::ChangeNexthop(nexthop) => nexthop::replace(nexthop, &at)?,
        NetlinkStep::AddRule(r) => rule::add(r),
        NetlinkStep::Rewrite(rewrite) => return rewritten(rewrite, &at),
    };
    Ok(vec![request])
}

fn rewritten(
    Rewrite { gone, added }: &Rewrite,
    at: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Vec<Request>, Errno> {
    let mut requests = Vec::new();
    // Each goes behind all others in its turn.
    let one_by_one = gone == added && added.iter().all(|one| one.route().is_some());
    if !one_by_one {
        for object in gone {
            requests.push(deleted(object, at)?);
        }
    }
    for object in added {
        if one_by_one {
            requests.push(deleted(object, at)?);
        }
        match object {
            OrderedObject::Address(a) => {
                let was_there = gone.iter().any(|gone| is_usable(gone, a));
                requests.extend(added_again(at(&a.dev)?, a, was_there));
            }
            OrderedObject::Route(route) => requests.push(route::add(route, Position::Last, at)?),
            OrderedObject::Rule(rule) => requests.push(rule::add(rule)),
        }
    }
    Ok(requests)
}

fn deleted(
    object: &OrderedObject,
    at: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    Ok(match object {
        OrderedObject::Address(a) => address::del(at(&a.dev)?, a),
        OrderedObject::Route(route) => route::del(route, at)?,
        OrderedObject::Rule(rule) => rule::del(rule),
    })
}

/// The routes that a step deletes and adds again, each as a request that the kernel refuses because it is there, but not before it
/// has checked everything else.
pub(crate) fn trials(
    step: &NetlinkStep,
    at: impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Vec<Request>, Errno> {
    let NetlinkStep::Rewrite(rewrite) = step else {
        return Ok(Vec::new());
    };
    let routes = rewrite.gone.iter().filter_map(OrderedObject::route);
    routes
        .map(|route| route::add(route, Position::Only, &at))
        .collect()
}

/// Whether `gone` is the IPv6 address `added`, and duplicate address detection has found no other owner.
fn is_usable(gone: &OrderedObject, added: &Address) -> bool {
    matches!(gone, OrderedObject::Address(gone) if gone.local == added.local
        && gone.flags & (TENTATIVE | DADFAILED) == 0)
}

/// An address that was usable a moment ago stays so.
fn added_again(index: u32, address: &Address, was_there: bool) -> Vec<Request> {
    if was_there {
        return usable(index, address);
    }
    vec![address::add(index, address)]
}

/// An address that is usable at once: without duplicate address detection.
fn usable(index: u32, address: &Address) -> Vec<Request> {
    match address.without_detection() {
        Some(first) => vec![address::add(index, &first), address::change(index, address)],
        None => vec![address::add(index, address)],
    }
}

fn set_link(
    index: u32,
    change: &Change,
    at: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    Ok(match change {
        Change::Up => link::set_up(index, true),
        Change::Down => link::set_up(index, false),
        Change::Mac(mac) => link::set(index, |link| link.address(mac.0.to_vec())),
        Change::Name(name) => link::rename(index, name),
        Change::Broadcast(mac) => link::set_broadcast(index, *mac),
        Change::Mtu(mtu) => link::set(index, |link| link.mtu(*mtu)),
        Change::TxQueueLen(length) => link::set(index, |link| link.txqueuelen(*length)),
        Change::Group(group) => link::set(index, |link| link.link_group(*group)),
        Change::Alias(alias) => link::set_alias(index, alias),
        Change::Altnames(names) => link::add_altnames(index, names),
        Change::Flags(from, to) => link::set_flags(index, *from, *to),
        Change::Master(master) => {
            let master = at(master)?;
            link::set(index, |link| link.controller(master))
        }
        Change::Port(settings) => link::set_bridge_port(index, settings),
        Change::BackupPort(port) => link::set_backup_port(index, at(port)?),
        Change::BondPort(settings) => link::set_bond_port(index, settings),
        Change::AddVlans(vlans) => ports::add_vlans(index, vlans),
        Change::DeleteVlans(vlans) => ports::delete_vlans(index, vlans),
        Change::Offload(limits) => link::set_offload(index, limits),
        Change::ProtoDown => link::set_protodown(index),
        Change::Dormant => link::set_dormant(index),
        Change::Token(token) => link::set_token(index, *token),
        Change::Kind(kind) => link::change_kind(index, kind)?,
        Change::Lower { link, parent } => link::change_lower(index, link, at(parent)?)?,
        Change::BondOption(option, value) => link::change_bond_option(index, *option, *value),
        Change::BondLists(bond) => link::change_bond_lists(index, bond),
        Change::AddrGenMode(mode) => link::set_addr_gen_mode(index, *mode),
        Change::Function(function, setting) => sriov::set(index, *function, *setting),
        Change::BondPrimary(port) => link::change_bond_primary(index, at(port)?),
    })
}

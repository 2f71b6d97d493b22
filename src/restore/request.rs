//! From a step to the one netlink request that makes it.

use crate::kernel::{Errno, Request, address, link, neighbour, route, rule};
use crate::model::IfName;
use crate::plan::{Change, Step};

/// The request for a step that neither creates a link nor writes a sysctl: those two need more than one message. `at`
/// returns the ifindex of an interface.
pub(crate) fn of(
    step: &Step,
    at: impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    Ok(match step {
        Step::AddLink(_) | Step::Sysctl { .. } => return Err(Errno::EINVAL),
        Step::SetLink { dev, change, .. } => set_link(at(dev)?, change, &at)?,
        Step::AddAddress(a) => address::add(at(&a.dev)?, a),
        Step::ChangeAddress(a) => address::change(at(&a.dev)?, a),
        Step::AddNeighbour(n) => neighbour::put(at(&n.dev)?, n),
        Step::AddRoute { route, append } => route::add(route, *append, &at)?,
        Step::AddRule(r) => rule::add(r),
    })
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
        Change::Macvlan(data) => link::change_macvlan(index, data),
        Change::Vlan(data) => link::change_vlan(index, data),
        Change::BondOption(option, value) => link::change_bond_option(index, *option, *value),
        Change::BondLists(bond) => link::change_bond_lists(index, bond),
        Change::AddrGenMode(mode) => link::set_addr_gen_mode(index, *mode),
        Change::BondPrimary(port) => link::change_bond_primary(index, at(port)?),
    })
}

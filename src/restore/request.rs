//! From a step to the one netlink request that makes it.

use crate::kernel::{Request, address, link, neighbour, route, rule};
use crate::model::IfName;
use crate::plan::{Change, Step};

/// The interface that a step is about, or goes through, is not there.
#[derive(Debug)]
pub(crate) struct Missing;

/// The request for a step that neither creates a link nor writes a sysctl: those two need more than one message.
pub(crate) fn of(step: &Step, index: impl Fn(&IfName) -> Option<u32>) -> Result<Request, Missing> {
    let at = |dev: &IfName| index(dev).ok_or(Missing);
    Ok(match step {
        Step::AddLink(_) | Step::Sysctl { .. } => return Err(Missing),
        Step::SetLink { dev, change, .. } => set_link(at(dev)?, change, &at)?,
        Step::AddAddress(a) => address::put(at(&a.dev)?, a, address::Mode::Add),
        Step::ChangeAddress(a) => address::put(at(&a.dev)?, a, address::Mode::Change),
        Step::AddNeighbour(n) => neighbour::put(at(&n.dev)?, n),
        Step::AddRoute { route, append } => {
            let mode = if *append {
                route::Mode::Append
            } else {
                route::Mode::Exclusive
            };
            route::add(route, mode, index).map_err(|_| Missing)?
        }
        Step::AddRule(r) => rule::add(r),
    })
}

fn set_link(
    index: u32,
    change: &Change,
    at: &impl Fn(&IfName) -> Result<u32, Missing>,
) -> Result<Request, Missing> {
    let set = || link::set(index);
    Ok(match change {
        Change::Up => set().up(true).request(),
        Change::Down => set().up(false).request(),
        Change::Mac(mac) => set().mac(*mac).request(),
        Change::Mtu(mtu) => set().mtu(*mtu).request(),
        Change::TxQueueLen(length) => set().txqueuelen(*length).request(),
        Change::Group(group) => set().group(*group).request(),
        Change::Alias(alias) => set().alias(alias).request(),
        Change::Altnames(names) => link::add_altnames(index, names),
        Change::Flags(from, to) => set().flags(*from, *to).request(),
        Change::Master(master) => set().master(at(master)?).request(),
        Change::Macvlan(data) => link::change_macvlan(index, data),
        Change::Vlan(data) => link::change_vlan(index, data),
        Change::BondOption(option, value) => link::change_bond_option(index, *option, *value),
        Change::BondLists(bond) => link::change_bond_lists(index, bond),
        Change::AddrGenMode(mode) => link::set_addr_gen_mode(index, *mode),
        Change::BondPrimary(port) => link::change_bond_primary(index, at(port)?),
    })
}

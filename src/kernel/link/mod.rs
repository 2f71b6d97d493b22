//! Links: between rtnetlink messages and the model (`ip link`).

mod add;
pub(crate) mod bond;
mod change;
mod data;
pub mod fdb;
pub(in crate::kernel) mod hwmode;
mod kind;
pub mod multicast;
pub mod ports;
mod read;
mod resolve;
pub(crate) mod sockets;
pub(in crate::kernel) mod vlan_options;

pub use add::{Placement, add};
pub(crate) use add::{add_empty, add_stand_in};
pub use change::{
    add_altnames, change_bond_lists, change_bond_option, change_bond_primary, change_kind,
    change_lower, del, index_of, move_to, rename, set, set_addr_gen_mode, set_alias,
    set_backup_port, set_bond_port, set_bridge_port, set_broadcast, set_dormant, set_flags,
    set_offload, set_protodown, set_token, set_up,
};
pub use read::is_coming_up;
pub(in crate::kernel) use read::{RawLink, name, parse, parse_in_part};
pub(in crate::kernel) use resolve::resolve;

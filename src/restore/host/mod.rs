//! The host during a restore: the return of its NIC, and the links under the pods.

pub(super) mod links;
pub(super) mod managed;
pub(super) mod own_addresses;
pub(super) mod scope;
mod setting_owners;
pub(crate) mod wait_nic;

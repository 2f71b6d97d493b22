//! The arguments about settings and ifindexes of NICs.

use clap::Args;

use crate::plan::{IndexMode, NicMode};

/// What becomes of settings and ifindexes of NICs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct NicArgs {
    /// What to do with the settings (ethtool) of a NIC that its driver has recreated
    #[arg(long, hide = true, value_enum, value_name = "HOW", default_value_t)]
    pub nic_settings: NicMode,
    /// What becomes of ifindexes.
    #[command(flatten)]
    pub index: IndexArgs,
}

/// What a restore does with ifindexes of NICs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct IndexArgs {
    /// What to do with the ifindex of a NIC that its driver has recreated: nftables rules and sockets name the NIC by it
    #[arg(long, hide = true, value_enum, value_name = "HOW", default_value_t)]
    pub nic_index: IndexMode,
}

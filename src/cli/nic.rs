//! The argument about settings of NICs.

use clap::Args;

use super::headings::EXPERT;
use crate::plan::NicMode;

/// What becomes of settings of NICs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct NicArgs {
    /// What to do with the settings (ethtool) of a NIC that its driver has recreated
    #[arg(long, help_heading = EXPERT, hide_short_help = true, value_enum, value_name = "HOW", default_value_t)]
    pub nic_settings: NicMode,
}

//! The argument about settings of NICs.

use clap::Args;

use super::args::SOURCE;
use crate::plan::NicMode;

/// What becomes of settings of NICs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct NicArgs {
    /// What to do with the settings (ethtool) of a NIC that its driver has made anew
    #[arg(long, help_heading = SOURCE, value_enum, value_name = "HOW", default_value_t)]
    pub nic_settings: NicMode,
}

//! The options of the probe before an address is added.

use clap::Args;

use crate::model::ConflictProbe;

/// The probe before an address is added.
#[derive(Debug, Clone, Copy, Args)]
pub struct ProbeArgs {
    /// Before an address is added, probe whether another machine has it
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub conflict_probe: ConflictProbe,
    /// The same as `--conflict-probe off`
    #[arg(long, hide = true, conflicts_with = "conflict_probe")]
    pub no_conflict_probe: bool,
}

impl ProbeArgs {
    /// What both options mean.
    #[must_use]
    pub fn mode(self) -> ConflictProbe {
        if self.no_conflict_probe {
            ConflictProbe::Off
        } else {
            self.conflict_probe
        }
    }
}

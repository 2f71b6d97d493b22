//! How to find out, before an address is added, whether another machine has it.

use clap::ValueEnum;

/// The probe before an address is added (RFC 5227, RFC 4862).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ConflictProbe {
    /// A probe and its repetition, within 200 ms
    #[default]
    Fast,
    /// Three probes with the random intervals of RFC 5227: 4 to 7 s
    Rfc5227,
    /// No probe
    Off,
}

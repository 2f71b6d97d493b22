//! systemd of this machine.

use std::path::Path;

use crate::model::Problem;
use crate::model::problem::{KubeletCause, SystemdCause};
use crate::systemd::Bus;

/// Exists where systemd is process 1 (`sd_booted(3)`).
const BOOTED: &str = "/run/systemd/system";

/// Connects to systemd; `None` where another init system runs this machine.
pub(crate) fn connect() -> Result<Option<Bus>, Problem> {
    if !Path::new(BOOTED).is_dir() {
        return Ok(None);
    }
    let bus = Bus::connect().map_err(|cause| not_queried(cause).error(""))?;
    Ok(Some(bus))
}

/// systemd did not answer a query.
pub(crate) fn not_queried(cause: SystemdCause) -> KubeletCause {
    KubeletCause::Systemd { cause }
}

//! The identity of the machine and its boot.

use std::io;
use std::sync::OnceLock;

use crate::checked;
use crate::clock;
use crate::inventory::cannot_observe;
use crate::model::{NodeIdentity, Problem, Stamp};

/// It is the same for the whole process.
static NODE: OnceLock<NodeIdentity> = OnceLock::new();

/// Which machine and which boot this is; both are unknown unless [`know_node`] succeeded.
pub fn node_identity() -> NodeIdentity {
    NODE.get().cloned().unwrap_or_default()
}

/// Now, as records have it.
pub(crate) fn stamp() -> Stamp {
    Stamp {
        node: node_identity(),
        boottime: Some(clock::boottime()),
        wall: clock::whole_seconds(),
    }
}

/// Reads it, before anything else can use up what reading needs, such as open files.
///
/// # Errors
/// A file is there and cannot be read. A machine or boot that is not known must never be taken for another one, nor be recorded.
pub(crate) fn know_node() -> Result<(), Problem> {
    let node = NodeIdentity {
        machine_id: read("/etc/machine-id")?,
        boot_id: read("/proc/sys/kernel/random/boot_id")?,
        hostname: read("/proc/sys/kernel/hostname")?,
    };
    NODE.get_or_init(|| node);
    Ok(())
}

/// The text of a file; `None` if it is empty, or missing: not every machine has a machine-id.
fn read(path: &str) -> Result<Option<String>, Problem> {
    match checked::text(path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_observe(path, &error)),
    }
}

//! What `netfix guard` knows: `guard.json`; and until when a person keeps it still: `guard-hold.json`.

use std::path::PathBuf;

use super::{Guard, Store, StoreError, disk, file, schema};
use crate::model::window::{GUARD_SCHEMA, GuardHold, GuardRecord};

/// The file of a hold.
pub(crate) const HOLD: &str = "guard-hold.json";

impl Store {
    fn guard_path(&self) -> PathBuf {
        self.folder.join("guard.json")
    }

    fn hold_path(&self) -> PathBuf {
        self.folder.join(HOLD)
    }

    /// Until when a person keeps the guard still, or kept it; `None` where nobody ever did.
    pub(crate) fn load_hold(&self) -> Result<Option<GuardHold>, StoreError> {
        let path = self.hold_path();
        let loaded = schema::load(&path, GUARD_SCHEMA)?;
        loaded
            .map(|(_, text)| file::parse(&path, &text))
            .transpose()
    }

    /// What the guard knows; nothing where it never ran.
    pub(crate) fn load_guard(&self) -> Result<GuardRecord, StoreError> {
        let path = self.guard_path();
        let loaded = schema::load(&path, GUARD_SCHEMA)?;
        let record = loaded
            .map(|(_, text)| file::parse(&path, &text))
            .transpose()?;
        Ok(record.unwrap_or_default())
    }
}

impl Guard {
    /// Keeps the guard still, or no longer.
    pub(crate) fn save_hold(&self, hold: Option<&GuardHold>) -> Result<(), StoreError> {
        let path = self.store.hold_path();
        match hold {
            Some(hold) => file::save(&path, hold, &["checksum"]),
            None if path.exists() => {
                disk::remove(&path).map_err(StoreError::io("cannot remove", &path))
            }
            None => Ok(()),
        }
    }

    /// Writes what the guard knows.
    pub(crate) fn save_guard(&self, record: &GuardRecord) -> Result<(), StoreError> {
        file::save(&self.store.guard_path(), record, &["checksum"])
    }
}

//! What `netfix guard` knows: `guard.json`.

use std::path::PathBuf;

use super::{Guard, Store, StoreError, file, schema};
use crate::model::window::{GUARD_SCHEMA, GuardRecord};

impl Store {
    fn guard_path(&self) -> PathBuf {
        self.folder.join("guard.json")
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
    /// Writes what the guard knows.
    pub(crate) fn save_guard(&self, record: &GuardRecord) -> Result<(), StoreError> {
        file::save(&self.store.guard_path(), record, &["checksum"])
    }
}

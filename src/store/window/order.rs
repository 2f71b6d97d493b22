//! The order of windows: by their number, which no clock changes. An id is a wall clock's second, and orders only windows of
//! an earlier netfix, which have no number.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use crate::store::{Store, StoreError, file};

/// What the head of a record has: its place, and whether a person opened the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub place: RecordPlace,
    pub is_planned: bool,
}

/// The place of a record among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordPlace {
    Number(u64),
    /// An earlier netfix wrote it.
    Unnumbered,
    /// The record is damaged.
    Unknown,
}

impl Store {
    /// The number of a window that is opened now.
    pub(crate) fn next_window_number(&self) -> Result<u64, StoreError> {
        let ids = self.stored_windows()?;
        let numbers = ids.iter().map(|id| head(&self.record_path(id)).place);
        let highest = numbers.filter_map(|place| match place {
            RecordPlace::Number(number) => Some(number),
            RecordPlace::Unnumbered | RecordPlace::Unknown => None,
        });
        Ok(highest.max().unwrap_or_default() + 1)
    }
}

/// The ids, the oldest first. A damaged record stays behind the one that is before it by its id.
pub(super) fn sorted(mut all: Vec<(RecordPlace, String)>) -> Vec<String> {
    all.sort_by(|(_, a), (_, b)| a.cmp(b));
    let mut before = 0;
    let mut placed: Vec<(u64, String)> = Vec::new();
    for (place, id) in all {
        let number = match place {
            RecordPlace::Number(number) => number,
            RecordPlace::Unnumbered => 0,
            RecordPlace::Unknown => before,
        };
        before = number;
        placed.push((number, id));
    }
    placed.sort_by_key(|(number, _)| *number);
    placed.into_iter().map(|(_, id)| id).collect()
}

/// The head of a record. Its keys are sorted, so nothing of the pods is read.
pub(super) fn head(path: &Path) -> RecordHead {
    let mut found = HeadParts::default();
    let read = match file::open(path, file::is_ours) {
        Ok(Some((file, _))) => {
            let mut reader = serde_json::Deserializer::from_reader(BufReader::new(file));
            reader.deserialize_map(Head(&mut found)).is_ok()
        }
        _ => false,
    };
    RecordHead {
        place: match found.number {
            Some(number) => RecordPlace::Number(number),
            None if read => RecordPlace::Unnumbered,
            None => RecordPlace::Unknown,
        },
        is_planned: !found.has_kind,
    }
}

/// What was read of a head.
#[derive(Default)]
struct HeadParts {
    number: Option<u64>,
    has_kind: bool,
}

/// Reads up to the number; what follows it is an error for the reader.
struct Head<'a>(&'a mut HeadParts);

impl<'de> Visitor<'de> for Head<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "number" {
                self.0.number = map.next_value()?;
                return Ok(());
            }
            // It comes before the number, and only those have it that no person opened.
            self.0.has_kind |= key == "kind";
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

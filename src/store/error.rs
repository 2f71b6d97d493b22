//! Why something stored could not be read or written.

use std::io;
use std::path::Path;

use crate::model::Problem;
use crate::model::problem::{StoreCause, StoreEffect};

/// Why something stored could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct StoreError {
    pub(super) cause: StoreCause,
    /// The file's name, or the option that requested it.
    object: String,
    pub(super) source: Option<io::Error>,
    /// Whether a newer netfix wrote the file, which is no damage.
    is_newer: bool,
}

impl StoreError {
    pub(super) fn new(path: &Path, cause: StoreCause) -> Self {
        let name = path.file_name().unwrap_or_default();
        Self {
            cause,
            object: name.to_string_lossy().into_owned(),
            source: None,
            is_newer: false,
        }
    }

    pub(crate) fn corrupt(file: &Path, reason: impl Into<String>) -> Self {
        let (path, reason, effect) = (file.display().to_string(), reason.into(), None);
        let cause = StoreCause::Corrupt {
            path,
            reason,
            effect,
        };
        Self::new(file, cause)
    }

    /// A file that a newer netfix wrote.
    pub(super) fn newer(file: &Path, reason: String) -> Self {
        Self {
            is_newer: true,
            ..Self::corrupt(file, reason)
        }
    }

    pub(super) fn no_generation(number: u64, kept: Vec<u64>) -> Self {
        Self {
            cause: StoreCause::NoGeneration { kept },
            object: format!("--generation {number}"),
            source: None,
            is_newer: false,
        }
    }

    pub(super) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::failed(action, path, source, false)
    }

    pub(super) fn write<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::failed(action, path, source, true)
    }

    fn failed(action: &str, file: &Path, source: io::Error, writing: bool) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let (action, path) = (action.to_owned(), file.display().to_string());
        let (error, effect) = (source.to_string(), None);
        let cause = match source.kind() {
            StorageFull | QuotaExceeded => StoreCause::NoSpace {
                action,
                path,
                error,
                effect,
            },
            _ if writing => StoreCause::CannotWrite {
                action,
                path,
                error,
                effect,
            },
            _ => StoreCause::CannotRead {
                action,
                path,
                error,
                effect,
            },
        };
        Self {
            source: Some(source),
            ..Self::new(file, cause)
        }
    }

    /// Whether a newer netfix wrote the file.
    pub(crate) fn is_newer(&self) -> bool {
        self.is_newer
    }

    /// Whether the file or folder does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        let kind = self.source.as_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::NotFound)
    }

    /// A file that would be larger than netfix reads, with both sizes in MiB.
    pub(super) fn too_large(file: &Path, size: u64, most: u64) -> Self {
        let path = file.display().to_string();
        Self::new(file, StoreCause::TooLarge { path, size, most })
    }

    /// Whether the file would be larger than netfix reads.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self.cause, StoreCause::TooLarge { .. })
    }

    pub(super) fn is_of_no_generation(&self) -> bool {
        matches!(self.cause, StoreCause::NoGeneration { .. })
    }

    /// The file's name, or the option that requested it.
    pub(crate) fn object(&self) -> &str {
        &self.object
    }

    /// The error as a problem.
    pub(crate) fn problem(&self) -> Problem {
        self.cause.clone().error(self.object.clone())
    }

    /// The error as a problem, with its effect on the command.
    pub(crate) fn problem_with(&self, effect: StoreEffect) -> Problem {
        let mut cause = self.cause.clone();
        add_effect(&mut cause, effect);
        cause.error(self.object.clone())
    }

    /// The error with its effect on every command.
    pub(super) fn affecting(mut self, effect: StoreEffect) -> Self {
        add_effect(&mut self.cause, effect);
        self
    }
}

fn add_effect(cause: &mut StoreCause, effect: StoreEffect) {
    match cause {
        StoreCause::Corrupt { effect: place, .. }
        | StoreCause::NoSpace { effect: place, .. }
        | StoreCause::CannotWrite { effect: place, .. }
        | StoreCause::CannotRead { effect: place, .. } => *place = Some(effect),
        StoreCause::TooLarge { .. }
        | StoreCause::Locked { .. }
        | StoreCause::NoGeneration { .. } => {}
    }
}

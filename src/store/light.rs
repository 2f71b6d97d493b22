//! Large checkpoints. Before the first pod is restored, only the part that concerns other pods too is read, from the node's
//! state: a pod with tens of thousands of routes delays no other pod.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::schema::{decode, load_checkpoint};
use super::{StoreError, file};
use crate::model::checkpoint::Large;
use crate::model::{Checkpoint, NetState, PodId, Problem};

/// A large checkpoint's file.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    path: PathBuf,
    size: u64,
    /// What the file had when it was to be held in memory.
    text: Option<Arc<String>>,
    state: OnceLock<Result<NetState, Problem>>,
}

impl Whole {
    /// The whole state, read when it is first needed.
    pub(crate) fn state(&self) -> Result<&NetState, &Problem> {
        let state = self.state.get_or_init(|| {
            let checkpoint = self.load().map_err(|error| error.problem())?;
            Ok(checkpoint.netfix.map(|own| own.state).unwrap_or_default())
        });
        state.as_ref()
    }

    /// Adds the rest of the state to a checkpoint that has a part of it.
    pub(crate) fn complete(&self, checkpoint: &mut Checkpoint) {
        if let (Ok(state), Some(extension)) = (self.state(), &mut checkpoint.netfix) {
            extension.state = state.clone();
        }
    }

    /// The whole state, if it was read.
    pub(crate) fn known(&self) -> Option<&NetState> {
        self.state.get()?.as_ref().ok()
    }

    /// The whole checkpoint.
    pub(crate) fn load(&self) -> Result<Checkpoint, StoreError> {
        match &self.text {
            Some(text) => decode(&self.path, text),
            None => load_checkpoint(&self.path),
        }
    }

    /// Reads the file, so that it is not needed later. If that fails, it is read when it is needed.
    pub(crate) fn hold(&mut self) {
        let text = file::read(&self.path).ok().flatten();
        self.text = text.map(Arc::new);
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// A checkpoint; of a large one the part that concerns other pods, and its file.
pub(crate) type Light = (Checkpoint, Option<Whole>);

/// Reads a checkpoint, or takes its part from `known` if that is of this very file.
pub(super) fn load(
    path: &Path,
    id: &PodId,
    known: &BTreeMap<PodId, Large>,
) -> Result<Light, StoreError> {
    if let Some(large) = known.get(id)
        && let Some((size, sha256)) = file::large(path)
        && sha256 == large.sha256
    {
        let whole = Whole {
            path: path.to_owned(),
            size,
            text: None,
            state: OnceLock::new(),
        };
        return Ok((large.checkpoint.clone(), Some(whole)));
    }
    Ok((load_checkpoint(path)?, None))
}

/// The part of a checkpoint that concerns other pods, if its file is large.
pub(super) fn part(path: &Path, checkpoint: &Checkpoint) -> Option<Large> {
    let (_, sha256) = file::large(path)?;
    Some(Large {
        sha256,
        checkpoint: checkpoint.part_for_others(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATH: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/fuzz/checkpoint/web-0"
    );

    /// A checkpoint with so many copies of its routes, its file, and what the node's state has of it.
    fn stored(
        routes: usize,
    ) -> (
        Checkpoint,
        tempfile::TempDir,
        PathBuf,
        BTreeMap<PodId, Large>,
    ) {
        let text = fs::read_to_string(PATH).unwrap();
        let mut checkpoint: Checkpoint = serde_json::from_str(&text).unwrap();
        let extension = checkpoint.netfix.as_mut().unwrap();
        extension
            .state
            .links
            .iter_mut()
            .for_each(|link| link.alias = None);
        extension.schema = 1;
        let all = extension.state.routes.iter().cycle();
        extension.state.routes = all.take(routes).cloned().collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web-0");
        file::save(&path, &checkpoint, &["netfix", "checksum"]).unwrap();
        let large = part(&path, &checkpoint).map(|large| (id(), large));
        (checkpoint, folder, path, large.into_iter().collect())
    }

    fn id() -> PodId {
        "web-0".to_owned().try_into().unwrap()
    }

    fn state(of: &Checkpoint) -> NetState {
        of.netfix.as_ref().unwrap().state.clone()
    }

    #[test]
    fn of_a_large_checkpoint_the_rest_comes_later_and_is_complete() {
        let (expected, _folder, path, known) = stored(20_000);
        let (mut checkpoint, whole) = load(&path, &id(), &known).unwrap();
        assert!(state(&checkpoint).routes.is_empty());
        assert_eq!(state(&checkpoint).addresses, state(&expected).addresses);
        whole.unwrap().complete(&mut checkpoint);
        checkpoint.result = expected.result.clone();
        assert_eq!(checkpoint, expected);
    }

    #[test]
    fn a_small_one_and_one_that_was_replaced_are_read_at_once() {
        let (expected, _folder, path, known) = stored(10);
        assert!(known.is_empty());
        let (checkpoint, whole) = load(&path, &id(), &known).unwrap();
        assert_eq!(state(&checkpoint), state(&expected));
        assert!(whole.is_none());
        let (_, _other_folder, _, of_other) = stored(20_000);
        let (expected, _folder, path, _) = stored(20_001);
        let (checkpoint, whole) = load(&path, &id(), &of_other).unwrap();
        assert_eq!(state(&checkpoint), state(&expected));
        assert!(whole.is_none());
    }

    #[test]
    fn a_damaged_large_one_is_an_error_when_it_is_read() {
        let (_, _folder, path, known) = stored(20_000);
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replacen("\"10.88.0.2\"", "\"10.88.0.7\"", 1);
        for text in [&changed, &text[..text.len() * 3 / 4]] {
            fs::write(&path, text).unwrap();
            let (_, whole) = load(&path, &id(), &known).unwrap();
            assert!(whole.unwrap().state().is_err());
        }
    }
}

//! The content of the state directory, read without netfix.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::kept;
use crate::stage::Stage;

/// The keys that differ after every snapshot.
const TIMES: [&str; 7] = [
    "created",
    "created_boottime",
    "complete",
    "complete_boottime",
    "seen_boottime",
    "checksum",
    // The times of the last answers.
    "answers",
];

/// The current checkpoints, by name.
pub fn checkpoints(stage: &Stage<'_>) -> BTreeMap<String, String> {
    texts(&stage.node.state_dir().join("checkpoints"))
}

fn texts(folder: &Path) -> BTreeMap<String, String> {
    let whole = kept::names(folder)
        .into_iter()
        .filter(|name| !name.starts_with('.'));
    whole
        .map(|name| {
            (
                name.clone(),
                fs::read_to_string(folder.join(name)).unwrap_or_default(),
            )
        })
        .collect()
}

/// The directories of all complete generations, oldest first.
fn generations(stage: &Stage<'_>) -> Vec<PathBuf> {
    let folder = stage.node.generations_folder();
    let mut numbers: Vec<u64> = kept::names(&folder)
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
        .iter()
        .map(|number| folder.join(number.to_string()))
        .collect()
}

/// The checkpoints that are not stored any more, and the files that are not complete.
pub fn lost(stage: &Stage<'_>, before: &BTreeMap<String, String>) -> Vec<String> {
    let kept = generations(stage)
        .into_iter()
        .map(|folder| texts(&folder.join("checkpoints")));
    let all: Vec<_> = kept.chain([checkpoints(stage)]).collect();
    let is_held =
        |name: &String, text: &String| all.iter().any(|texts| texts.get(name) == Some(text));
    let gone = before.iter().filter(|(name, text)| !is_held(name, text));
    let gone = gone.map(|(name, _)| format!("the checkpoint {name} is nowhere any more"));
    let is_torn = |(path, text): &(PathBuf, String)| is_json(path) && parse(text).is_none();
    let torn = stage.node.state_files().into_iter().filter(is_torn);
    gone.chain(torn.map(|(path, _)| format!("{} is not whole", path.display())))
        .collect()
}

/// Whether netfix could read it.
fn is_json(path: &Path) -> bool {
    let is_named = path.extension().is_some_and(|ending| ending == "json");
    leftover(path).is_none()
        && (is_named
            || path
                .parent()
                .is_some_and(|folder| folder.ends_with("checkpoints")))
}

pub fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The content of the state directory, without times and without the numbers of generations.
pub fn picture(stage: &Stage<'_>) -> Value {
    let folder = stage.node.state_dir();
    let current = content(&folder);
    let newest = generations(stage).pop().map(|folder| content(&folder));
    let leftovers: Vec<String> = stage
        .node
        .state_files()
        .iter()
        .filter_map(|(path, _)| leftover(path))
        .collect();
    json!({
        "newest generation holds it": newest.is_none_or(|newest| newest == current),
        "stored": current,
        "left": leftovers,
        "locked": is_locked(&folder.join("lock")),
    })
}

fn content(folder: &Path) -> Value {
    let timeless = |text: &String| parse(text).map(without_times);
    let checkpoints = texts(&folder.join("checkpoints"));
    let checkpoints: BTreeMap<_, _> = checkpoints
        .iter()
        .map(|(name, text)| (name, timeless(text)))
        .collect();
    let node = fs::read_to_string(folder.join("node.json")).ok();
    let mut node = node.as_ref().and_then(timeless);
    // A reloaded NIC is another device.
    let links = node
        .as_mut()
        .and_then(|node| node.pointer_mut("/state/links")?.as_array_mut());
    for link in links.into_iter().flatten() {
        link["index"] = Value::Null;
    }
    json!({ "checkpoints": checkpoints, "node": node })
}

fn without_times(mut value: Value) -> Value {
    if let Value::Object(object) = &mut value {
        object.retain(|key, _| !TIMES.contains(&key.as_str()));
        if let Some(Value::Object(seen)) = object.get_mut("seen") {
            seen.values_mut().for_each(|time| *time = Value::Null);
        }
    }
    match value {
        Value::Object(object) => object
            .into_iter()
            .map(|(key, value)| (key, without_times(value)))
            .collect(),
        other => other,
    }
}

/// The temporary name of a file, or of a directory above it.
fn leftover(path: &Path) -> Option<String> {
    let names = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    names
        .into_iter()
        .find(|name| name.starts_with('.'))
        .map(Cow::into_owned)
}

fn is_locked(path: &Path) -> bool {
    use nix::errno::Errno;
    use nix::fcntl::{Flock, FlockArg};
    let Ok(file) = fs::File::open(path) else {
        return false;
    };
    matches!(
        Flock::lock(file, FlockArg::LockExclusiveNonblock),
        Err((_, Errno::EWOULDBLOCK))
    )
}

//! Large checkpoints. Before the first pod is restored, only the part that concerns other pods too is decoded: a pod with tens of
//! thousands of routes delays no other pod.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};

use serde::Deserialize;

use super::{Error, decode, file, schema};
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::cni_result::CniResult;
use crate::model::{
    Address, Bytes, Checkpoint, IfName, Link, NetState, NetnsIdentity, NodeIdentity, PodInfo,
    Problem, StackLink,
};

/// The size in bytes above which a checkpoint is large. That of a pod of Kubernetes has some 20 KiB.
const LARGE: usize = 1 << 20;

/// The text of a large checkpoint, verified, and the state in it.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    path: PathBuf,
    text: String,
    state: OnceLock<Result<NetState, Problem>>,
}

impl Whole {
    /// The whole state, decoded when it is first needed.
    pub(crate) fn state(&self) -> Result<&NetState, &Problem> {
        let decoded = || {
            let checkpoint = decode(&self.path, &self.text).map_err(|error| error.problem())?;
            Ok(checkpoint.netfix.map(|own| own.state).unwrap_or_default())
        };
        self.state.get_or_init(decoded).as_ref()
    }

    /// Adds the rest of the state to a checkpoint that has a part of it.
    pub(crate) fn complete(&self, checkpoint: &mut Checkpoint) {
        if let (Ok(state), Some(extension)) = (self.state(), &mut checkpoint.netfix) {
            extension.state = state.clone();
        }
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.text.len()
    }
}

/// A checkpoint; of a large one without routes, rules, neighbours and CNI result, and with its text.
pub(crate) type Light = (Checkpoint, Option<Whole>);

/// Reads a checkpoint.
pub(super) fn load(path: &Path) -> Result<Light, Error> {
    let text = super::text_of_checkpoint(path)?;
    // Only the schema defines what an ambiguous text is.
    if text.len() <= LARGE || schema::is_ambiguous(&text) {
        return Ok((decode(path, &text)?, None));
    }
    let verify = || file::verify(path, &text);
    let (part, verified) = thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, verify);
        let part = file::parse::<Part>(path, &text);
        let verified = match beside.map(ScopedJoinHandle::join) {
            Ok(verified) => verified.unwrap_or_else(|panic| resume_unwind(panic)),
            // No thread could be started.
            Err(_) => verify(),
        };
        (part, verified)
    });
    let Ok(part) = part else {
        return Ok((decode(path, &text)?, None));
    };
    // A newer schema is a better reason than a wrong checksum.
    schema::check(path, part.netfix.schema, SCHEMA)?;
    verified?;
    let whole = Whole {
        path: path.to_owned(),
        text,
        state: OnceLock::new(),
    };
    Ok((part.into(), Some(whole)))
}

/// The part of a checkpoint that concerns other pods: what it is about, and what it claims.
#[derive(Deserialize)]
struct Part {
    netns: Bytes,
    podname: Bytes,
    sandbox: String,
    ifname: IfName,
    netfix: PartOfExtension,
}

#[derive(Deserialize)]
struct PartOfExtension {
    schema: u32,
    created: String,
    node: NodeIdentity,
    identity: NetnsIdentity,
    pod: PodInfo,
    stack: Vec<StackLink>,
    state: PartOfState,
}

#[derive(Deserialize)]
struct PartOfState {
    links: Vec<Link>,
    addresses: Vec<Address>,
}

impl From<Part> for Checkpoint {
    fn from(part: Part) -> Self {
        let own = part.netfix;
        let state = NetState {
            links: own.state.links,
            addresses: own.state.addresses,
            ..NetState::default()
        };
        Self {
            netns: part.netns,
            podname: part.podname,
            sandbox: part.sandbox,
            ifname: part.ifname,
            result: CniResult::default(),
            netfix: Some(Extension {
                schema: own.schema,
                created: own.created,
                node: own.node,
                identity: own.identity,
                pod: own.pod,
                stack: own.stack,
                state,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATH: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/fuzz/checkpoint/web-0"
    );

    /// A checkpoint with so many copies of its routes, and its file.
    fn large(routes: usize) -> (Checkpoint, tempfile::TempDir, PathBuf) {
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
        (checkpoint, folder, path)
    }

    #[test]
    fn of_a_large_checkpoint_the_rest_comes_later_and_is_complete() {
        let (expected, _folder, path) = large(20_000);
        let (mut checkpoint, whole) = load(&path).unwrap();
        let state = |of: &Checkpoint| of.netfix.as_ref().unwrap().state.clone();
        assert!(state(&checkpoint).routes.is_empty());
        assert_eq!(state(&checkpoint).addresses, state(&expected).addresses);
        whole.unwrap().complete(&mut checkpoint);
        checkpoint.result = expected.result.clone();
        assert_eq!(checkpoint, expected);
    }

    #[test]
    fn a_small_one_is_read_at_once() {
        let (expected, _folder, path) = large(10);
        let (checkpoint, whole) = load(&path).unwrap();
        assert_eq!(checkpoint, expected);
        assert!(whole.is_none());
    }

    #[test]
    fn a_damaged_large_one_is_refused_before_anything_of_it_counts() {
        let (_, _folder, path) = large(20_000);
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("\"10.88.0.2\"", "\"10.88.0.7\""),
            ("\"schema\": 1", "\"schema\": 9"),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            assert!(load(&path).is_err(), "{to}");
        }
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert!(load(&path).is_err());
    }
}

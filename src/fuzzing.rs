//! The entries of the fuzz targets in `fuzz/`: what strangers write is read, and what follows from it is done as far as that
//! needs no kernel.

#![allow(
    clippy::missing_panics_doc,
    reason = "each panics where a property does not hold"
)]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{env, process, str};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kernel::devlink::settings_in;
use crate::kernel::ethtool::nic_in;
use crate::kernel::wire::frame;
use crate::kernel::{link, state};
use crate::matching::StoredRecord;
use crate::matching::host_baseline::HostBaseline;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::{Checkpoint, IfName, NetState, Partial, PodInfo, Problem};
use crate::plan::{self, DaemonState, HostLinks, NicRules, Observed, Plan, Step};
use crate::records::stored::summary_of;
use crate::store::{Store, foreign, with_checksum};
use crate::{cni, restore, runtime};

/// A target's name, and its entry.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 10] = [
    ("checkpoint", checkpoint),
    ("node", node),
    ("window", window),
    ("origin", origin),
    ("cni", cni_entry),
    ("cri", cri),
    ("docker", docker),
    ("frame", frame),
    ("netlink", netlink),
    ("ethtool", ethtool),
];

/// A folder with a file of this content, but for its checksum: without a right one, nothing after it would be reached.
fn folder_with(name: &str, content: &[u8]) -> PathBuf {
    let folder = folder();
    let text = str::from_utf8(content).ok().and_then(with_checksum);
    let content = text.as_ref().map_or(content, String::as_bytes);
    let file = folder.join(name);
    let write = || -> io::Result<()> {
        let parent = file.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)?;
        fs::set_permissions(parent, Permissions::from_mode(0o700))?;
        fs::write(&file, content)?;
        fs::set_permissions(&file, Permissions::from_mode(0o600))
    };
    let written = write();
    assert!(written.is_ok(), "{}: {written:?}", file.display());
    folder
}

/// Removes what the entries wrote.
///
/// # Errors
/// When the file system refuses.
pub fn clean_up() -> io::Result<()> {
    fs::remove_dir_all(folder())
}

fn folder() -> PathBuf {
    env::temp_dir().join(format!("netfix-fuzzing-{}", process::id()))
}

/// A checkpoint in a state directory.
pub fn checkpoint(content: &[u8]) {
    let folder = folder_with("checkpoints/web-0", content);
    let Ok(loaded) = Store::new(folder).load_all() else {
        return;
    };
    for (id, checkpoint) in loaded {
        match checkpoint {
            Ok(checkpoint) => record(&checkpoint.pod(&id), &checkpoint),
            Err(error) => drop(error.problem().to_string()),
        }
    }
}

fn record(info: &PodInfo, checkpoint: &Checkpoint) {
    is_written_as_it_was_read(checkpoint);
    let _ = (info.title(), summary_of(info, checkpoint));
    let _ = StoredRecord::of_checkpoint(info, checkpoint);
    match &checkpoint.netfix {
        Some(extension) => state(&extension.state),
        None => partial(&cni::of_origin(checkpoint)),
    }
}

/// A checkpoint in a folder of `i40e_net_fix`.
pub fn origin(content: &[u8]) {
    let folder = folder_with("origin/06c9b8d0a800", content).join("origin");
    for file in foreign(&folder).unwrap_or_default() {
        match file.content {
            Ok(content) => record(&content.checkpoint.pod(&content.id), &content.checkpoint),
            Err(error) => drop(error.problem().to_string()),
        }
    }
}

/// The node's state in a state directory.
pub fn node(content: &[u8]) {
    let folder = folder_with("node.json", content);
    let Ok(Some(node)) = Store::new(folder).load_node() else {
        return;
    };
    state(&node.state);
    let now = NetState::default();
    let recorded = Some((node.state.clone(), 0));
    let baseline = HostBaseline::new(recorded, &[], BTreeSet::new(), Some(&[]), &now);
    let (plan, _) = plan::host(
        &baseline.state,
        baseline.observed(&now, None),
        &baseline.devices,
    );
    steps(&plan);
}

/// The open window in a state directory.
pub fn window(content: &[u8]) {
    let folder = folder_with("window.json", content);
    if let Ok(Some(window)) = Store::new(folder).open_window() {
        is_written_as_it_was_read(&window);
    }
}

/// An entry of libcni's cache.
pub fn cni_entry(text: &[u8]) {
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    if let Ok(Some(entry)) = cni::parse(text) {
        let _ = entry.info.title();
        partial(&Partial {
            attachments: vec![entry.attachment],
        });
    }
}

/// The body of an answer of a CRI runtime.
pub fn cri(body: &[u8]) {
    runtime::fuzzing::cri(body);
}

/// The body of an answer of a Docker engine.
pub fn docker(body: &[u8]) {
    runtime::fuzzing::docker(body);
}

/// A frame from the network, whole and cut anywhere.
pub fn frame(bytes: &[u8]) {
    for end in 0..=bytes.len() {
        if let Some(heard) = frame::heard(&bytes[..end]) {
            assert!(!heard.mac.is_group(), "{heard:?}");
            assert!(!heard.address.is_unspecified(), "{heard:?}");
        }
    }
}

/// Datagrams of the kernel.
pub fn netlink(datagrams: &[u8]) {
    if let Ok(decoded) = state::state_in(datagrams) {
        is_written_as_it_was_read(&decoded);
        state(&decoded);
    }
}

/// Answers of the kernel about a device.
pub fn ethtool(datagrams: &[u8]) {
    if let Ok(dev) = "eth0".parse() {
        is_written_as_it_was_read(&nic_in(datagrams, &dev).0);
        let of_device = settings_in(datagrams, "0000:01:00.0", &[]);
        is_written_as_it_was_read(&of_device);
    }
}

fn is_written_as_it_was_read<T>(content: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = serde_json::to_string(content).unwrap_or_default();
    let again: Option<T> = serde_json::from_str(&text).ok();
    assert_eq!(again.as_ref(), Some(content));
}

fn partial(partial: &Partial) {
    let _ = partial.interfaces();
    let (now, host) = (NetState::default(), HostLinks::default());
    let (wanted, problems) = plan::complete(partial, &now, &[], &host);
    words(&problems);
    state(&wanted);
}

/// What a restore does with a recorded state, once on a pod that has lost all, once on one that has lost nothing.
fn state(recorded: &NetState) {
    let _ = recorded.claims();
    let lost = NetState::default();
    let new_link = Sysctls::default();
    for state in [&lost, recorded] {
        let observed = Observed {
            state,
            new_link: Some(&new_link),
            age: 1,
            daemons: DaemonState::Leave,
            nic: NicRules::default(),
            made: &[],
            kept_indexes: None,
        };
        steps(&plan::pod(
            recorded,
            &BTreeSet::new(),
            observed,
            &HostLinks::default(),
        ));
    }
}

/// Each step has words and a message.
fn steps(plan: &Plan) {
    let _ = plan.lines();
    words(&plan.problems);
    let index = |_: &IfName| Ok(7);
    for step in plan.steps.iter().chain(&plan.later) {
        let requests = match step {
            Step::AddLink(link) => link::add(
                link,
                link::Placement {
                    name: Some(&link.name),
                    index: None,
                    netns: None,
                    parent: Some(7),
                },
            )
            .map(|request| vec![request]),
            Step::Netlink(step) => restore::request::of(step, true, index),
            Step::Sysctl { .. }
            | Step::Sysfs { .. }
            | Step::Sriov(_)
            | Step::JoinGroups { .. }
            | Step::Index { .. }
            | Step::Nic(_) => {
                continue;
            }
        };
        for request in requests.into_iter().flatten() {
            let _ = request.encoded();
        }
    }
}

fn words(problems: &[Problem]) {
    for problem in problems {
        drop(problem.to_string());
    }
}

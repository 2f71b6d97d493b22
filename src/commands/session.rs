//! What every command starts from: the state folder, the host, and the pods that live on it.

use std::path::Path;

use jiff::Timestamp;

use super::select::Selection;
use super::{Early, Outcome};
use crate::cli::Selectors;
use crate::cni;
use crate::kernel::Netns;
use crate::model::partial::Attachment;
use crate::model::{Checkpoint, Code, NodeIdentity, NodeState, Partial, PodId, PodInfo, Problem};
use crate::observe::{self, Host, Pod};
use crate::report::{InterfaceView, Listener, NodeView, PodView, State, interfaces};
use crate::runtime::{self, Answer};
use crate::store::Store;

/// What the program around a command provides.
pub struct Context {
    /// The state folder.
    pub store: Store,
    /// Who hears of progress.
    pub progress: Box<dyn Listener>,
    /// Whether only errors are wanted.
    pub quiet: bool,
    /// Whether stdout is to have one document and nothing else.
    pub json: bool,
}

/// The machine as a command found it.
#[derive(Debug)]
pub(super) struct Session {
    pub node: NodeIdentity,
    pub host: Host,
    pub pods: Vec<Pod>,
    pub problems: Vec<Problem>,
    /// What the container runtimes said; `None` when they were not asked.
    pub answer: Option<Answer>,
}

/// Reads the selectors, or says which of them is no pattern.
pub(super) fn selection(selectors: &Selectors) -> Result<Selection, Early> {
    Selection::new(selectors).map_err(|problem| Box::new(Outcome::refused(problem)))
}

impl Session {
    /// Observes the host and opens every chosen namespace; the kernel alone is asked, so names may be missing.
    ///
    /// When the host or the list of namespaces cannot be read, nothing is known, and the command ends here.
    pub(super) fn open(selection: &Selection) -> Result<Self, Early> {
        let refuse = |object: &str, error: &dyn std::fmt::Display| {
            Box::new(Outcome::refused(Problem::error(Code::Unreadable, object, error.to_string())))
        };
        let host = Host::observe().map_err(|error| refuse("host", &error))?;
        let (found, mut problems) = runtime::discover(selection).map_err(|error| refuse("/proc", &error))?;
        let mut pods = Vec::new();
        for opened in observe::open_pods(found, &host) {
            match opened {
                Ok(pod) => pods.push(pod),
                Err(unopened) => {
                    let (info, error) = *unopened;
                    let message = format!("its namespace cannot be entered: {error}");
                    problems.push(Problem::error(Code::Unreadable, "", message).of(&info.id));
                }
            }
        }
        Ok(Self { node: observe::node_identity(), host, pods, problems, answer: None })
    }

    /// A pod keeps the id and the names under which its namespace was once written down, unless a runtime knows better.
    pub(super) fn recognise(&mut self, stored: &[(&PodId, &Checkpoint)]) {
        for pod in &mut self.pods {
            let of_pod = |id: &PodId, checkpoint: &Checkpoint| match &checkpoint.netfix {
                Some(extension) => extension.is_about(&self.node, &pod.identity, &pod.info),
                None => leads_to(&checkpoint.netns, pod) && !info_of(id, checkpoint).contradicts(&pod.info),
            };
            let about = stored.iter().filter(|(id, checkpoint)| of_pod(id, checkpoint));
            if let Some((id, checkpoint)) = about.max_by_key(|(_, checkpoint)| checkpoint.rank()) {
                pod.info.learn(info_of(id, checkpoint));
            }
        }
    }

    /// Refuses to go on when the user chose pods and none of them lives here.
    pub(super) fn require_pods(&self, selection: &Selection) -> Result<(), Early> {
        if !self.pods.is_empty() || !self.problems.is_empty() || selection.is_everything() {
            return Ok(());
        }
        let message = "no living network namespace is found that matches the selectors";
        Err(Box::new(Outcome::refused(Problem::error(Code::NotFound, selection.to_string(), message))))
    }

    /// The host, as answers show it.
    pub(super) fn node_view(&self, created: Option<String>) -> NodeView {
        NodeView { hostname: self.node.hostname.clone(), created, ..NodeView::default() }
    }
}

/// The host, for commands that look at nothing living.
pub(super) fn node_view() -> NodeView {
    NodeView { hostname: observe::node_identity().hostname, ..NodeView::default() }
}

/// Whether an old path leads to this pod's namespace, under whatever path it was found.
pub(super) fn leads_to(path: &str, pod: &Pod) -> bool {
    key_at(path) == Some(pod.netns.key())
}

/// The namespace that a path leads to at this moment, if it leads to one.
pub(super) fn key_at(path: &str) -> Option<(u64, u64)> {
    Netns::open(Path::new(path)).ok().map(|netns| netns.key())
}

/// The stored checkpoints of the pods that the user chose; `--netns` is a question to living namespaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored {
    pub checkpoints: Vec<(PodInfo, Checkpoint)>,
    /// Pods whose checkpoint cannot be read.
    pub damaged: Vec<PodView>,
    /// Why.
    pub problems: Vec<Problem>,
}

/// Reads the checkpoints that the user chose; a damaged one does not stop the others.
pub(super) fn load(store: &Store, selection: &Selection) -> Result<Stored, Early> {
    let loaded = store.load_all().map_err(|error| Box::new(Outcome::refused(error.problem())))?;
    let mut stored = Stored::default();
    for (id, checkpoint) in loaded {
        match checkpoint {
            Ok(checkpoint) => {
                let info = info_of(&id, &checkpoint);
                if selection.wants_pod(&info) {
                    stored.checkpoints.push((info, checkpoint));
                }
            }
            Err(error) => {
                let info = nameless(&id);
                if selection.wants_pod(&info) {
                    stored.problems.push(error.problem().of(&id));
                    stored.damaged.push(bare_view(&info, Path::new(""), State::Failed));
                }
            }
        }
    }
    Ok(stored)
}

/// The problem of having nothing to work from.
pub(super) fn no_checkpoints(selection: &Selection) -> Problem {
    let message =
        "no checkpoint is stored for what was chosen; run `netfix snapshot` while the network is well";
    Problem::error(Code::CheckpointMissing, selection.to_string(), message)
}

/// Who a stored checkpoint says it is about; the file's name decides the id.
pub(super) fn info_of(id: &PodId, checkpoint: &Checkpoint) -> PodInfo {
    let stated = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let unknown = || PodInfo {
        name: stated(&checkpoint.podname),
        sandbox: stated(&checkpoint.sandbox),
        source: "origin".to_owned(),
        ..nameless(id)
    };
    let info = checkpoint.netfix.as_ref().map_or_else(unknown, |extension| extension.pod.clone());
    PodInfo { id: id.clone(), ..info }
}

pub(super) fn nameless(id: &PodId) -> PodInfo {
    PodInfo {
        id: id.clone(),
        namespace: None,
        name: None,
        uid: None,
        sandbox: None,
        attempt: None,
        source: String::new(),
    }
}

/// A pod's view with nothing but who it is.
pub(super) fn bare_view(info: &PodInfo, netns: &Path, state: State) -> PodView {
    PodView {
        info: info.clone(),
        netns: Some(netns.display().to_string()).filter(|path| !path.is_empty()),
        state,
        created: None,
        seen: None,
        interfaces: Vec::new(),
        before: None,
        after: None,
        steps: Vec::new(),
        gateways: Vec::new(),
        checkpoint: None,
    }
}

/// A pod's view with what its checkpoint says.
pub(super) fn stored_view(info: &PodInfo, checkpoint: &Checkpoint, state: State) -> PodView {
    let mut view = bare_view(info, Path::new(&checkpoint.netns), state);
    if let Some(extension) = &checkpoint.netfix {
        view.created = Some(extension.created.clone());
        view.interfaces = interfaces(&extension.state);
    } else {
        view.interfaces = partial_interfaces(&cni::of_origin(checkpoint));
    }
    view
}

/// The interfaces that a source speaks of which knows only part of a pod.
pub(super) fn partial_interfaces(partial: &Partial) -> Vec<InterfaceView> {
    let view = |attachment: &Attachment| InterfaceView {
        name: attachment.ifname.clone(),
        kind: attachment.made.name().to_owned(),
        mac: attachment.mac,
        parent: attachment.parent.clone(),
        mtu: attachment.mtu,
        addresses: attachment.addresses.iter().map(ToString::to_string).collect(),
        gateways: attachment.gateways(),
    };
    partial.attachments.iter().map(view).collect()
}

/// Now, as checkpoints write it (RFC 3339, UTC, whole seconds).
pub(super) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Seconds since a checkpoint was written; 0 when the clock went backwards or the text is no time.
pub(super) fn age(created: &str) -> u32 {
    let then = created.parse::<Timestamp>().ok();
    let seconds = then.map(|then| Timestamp::now().as_second() - then.as_second());
    u32::try_from(seconds.unwrap_or_default()).unwrap_or_default()
}

/// The stored node state, if it is of this machine and boot; any other is a problem, not a reason to stop.
pub(super) fn load_node(
    store: &Store,
    node: &NodeIdentity,
    problems: &mut Vec<Problem>,
) -> Option<NodeState> {
    match store.load_node() {
        Ok(Some(stored)) if stored.node.machine_id != node.machine_id => {
            let message = "is of another machine and is not used; was this state folder copied, or do machines share \
                           it? Each needs one of its own";
            problems.push(Problem::warning(Code::OtherMachine, "node.json", message));
            None
        }
        Ok(Some(stored)) if !stored.node.is_same(node) => {
            problems.push(Problem::warning(
                Code::OtherBoot,
                "node.json",
                "is of another boot and is not used",
            ));
            None
        }
        Ok(stored) => stored,
        Err(error) => {
            let mut problem = error.problem();
            problem.message.push_str("; the host's own addresses and routes are not known");
            problems.push(problem);
            None
        }
    }
}

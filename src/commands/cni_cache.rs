//! `--source cni-cache`: which entries of libcni's cache belong to which living namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::check_in::{CheckIn, Matched, described};
use super::select::Selection;
use super::session::{bare_view, key_at};
use super::{Early, Outcome};
use crate::cni::{self, Entry, Owner};
use crate::model::checkpoint::CniResult;
use crate::model::partial::Attachment;
use crate::model::{Checkpoint, Code, IfName, Partial, PodInfo, Problem};
use crate::observe::Pod;
use crate::report::{PodView, State};
use crate::runtime::Answer;
use crate::store;

/// The cache as it was found.
#[derive(Debug)]
pub(super) struct Cache {
    /// By sandbox id.
    sandboxes: BTreeMap<String, Vec<Entry>>,
    /// Files that cannot be used, and why.
    damaged: Vec<(PathBuf, store::Error)>,
}

/// Reads it, or refuses where there is none.
pub(super) fn read(folder: &Path) -> Result<Cache, Early> {
    let files = store::cni_cache(folder).map_err(|error| {
        let mut problem = error.problem();
        if error.is_missing() {
            problem.code = Code::NotFound;
            problem
                .message
                .push_str("; where the runtime keeps libcni's cache elsewhere, say --cni-cache-dir");
        }
        Box::new(Outcome::refused(problem))
    })?;
    let mut cache = Cache { sandboxes: BTreeMap::new(), damaged: Vec::new() };
    for (path, text) in files {
        let corrupt = |reason| store::Error::Corrupt { path: path.clone(), reason };
        match text.and_then(|text| cni::parse(&text).map_err(corrupt)) {
            Ok(Some(entry)) => cache.sandboxes.entry(entry.container.clone()).or_default().push(entry),
            Ok(None) => {}
            Err(error) => cache.damaged.push((path, error)),
        }
    }
    Ok(cache)
}

/// Pairs the cache with the living pods; the second part are pods of which a file cannot be used.
pub(super) fn check_in(
    cache: Cache,
    pods: Vec<Pod>,
    answer: Option<&Answer>,
    selection: &Selection,
) -> (CheckIn, Vec<PodView>) {
    let Cache { sandboxes, damaged } = cache;
    let mut desk = Desk { pods: pods.into_iter().map(Some).collect(), selection, result: CheckIn::default() };
    let owners = desk.owners(sandboxes);
    for (at, claims) in owners {
        desk.claimed(at, claims);
    }
    let views = desk.damaged(&damaged, answer);
    desk.tell_of_others();
    let Desk { pods, mut result, .. } = desk;
    result.strays = pods.into_iter().flatten().collect();
    (result, views)
}

struct Desk<'a> {
    /// Living pods that no entry has claimed yet.
    pods: Vec<Option<Pod>>,
    selection: &'a Selection,
    result: CheckIn,
}

impl Desk<'_> {
    /// The living pods' places, each with the sandboxes whose entries are about it.
    fn owners(&mut self, sandboxes: BTreeMap<String, Vec<Entry>>) -> BTreeMap<usize, Vec<Vec<Entry>>> {
        let living: Vec<&PodInfo> = self.pods.iter().flatten().map(|pod| &pod.info).collect();
        let keys = self.pods.iter().flatten().enumerate().map(|(at, pod)| (pod.netns.key(), at)).collect();
        let (mut owners, mut gone, mut notes) = (BTreeMap::<usize, Vec<_>>::new(), 0, Vec::new());
        for entries in sandboxes.into_values() {
            let Some(info) = entries.first().map(cni::Entry::pod) else { continue };
            match cni::owner(&info, leads_to(&entries, &keys), &living) {
                Owner::Pod(at) => owners.entry(at).or_default().push(entries),
                Owner::Former(at) => notes.push(former(&info, living[at])),
                Owner::Gone => gone += 1,
            }
        }
        self.result.problems.extend(notes);
        // Of a selection it is not known whether the others live.
        if gone > 0 && self.selection.is_everything() {
            let message = format!("entries of {gone} pods that are gone are passed over");
            self.result.problems.push(Problem::info(Code::NetnsGone, "cni-cache", message));
        }
        owners
    }

    fn claimed(&mut self, at: usize, mut claims: Vec<Vec<Entry>>) {
        let Some(pod) = self.pods[at].take() else { return };
        let path = pod.netns.path.display().to_string();
        let ids: Vec<String> =
            claims.iter().filter_map(|entries| Some(entries.first()?.container.clone())).collect();
        let entries = claims.pop().unwrap_or_default();
        let info = info(&entries, &pod.info);
        if !self.selection.wants_pod(&info) && !self.selection.wants_pod(&pod.info) {
            return;
        }
        if !claims.is_empty() {
            let message = format!(
                "the entries of sandboxes {} all lead to this namespace, and no runtime says which it is: none is used",
                ids.join(" and ")
            );
            self.result.problems.push(Problem::error(Code::NetnsReplaced, path, message).of(&info.id));
            self.result.rejected.push(bare_view(&info, &pod.netns.path, State::Failed));
            return;
        }
        let (partial, problems) = partial(entries);
        self.result.problems.extend(problems.into_iter().map(|problem| problem.of(&info.id)));
        let Some(ifname) = partial.attachments.first().map(|first| first.ifname.clone()) else {
            self.result.rejected.push(bare_view(&info, &pod.netns.path, State::Failed));
            return;
        };
        let checkpoint = Checkpoint {
            netns: path,
            podname: info.name.clone().unwrap_or_default(),
            sandbox: info.sandbox.clone().unwrap_or_default(),
            ifname,
            result: CniResult::default(),
            netfix: None,
        };
        self.result.matched.push(Matched { info, checkpoint, pod, age: 0, partial: Some(partial) });
    }

    /// Reports the files that cannot be used: as their pod's, where their name tells whose they are.
    fn damaged(&mut self, damaged: &[(PathBuf, store::Error)], answer: Option<&Answer>) -> Vec<PodView> {
        let mut views = Vec::new();
        for (path, error) in damaged {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let names = |info: &PodInfo| info.sandbox.as_deref().is_some_and(|id| is_named(&file, id));
            let matched = self.result.matched.iter().map(|matched| &matched.info);
            let living = self.pods.iter().flatten().map(|pod| &pod.info);
            let (is_known, owner) = match matched.clone().find(|info| names(info)) {
                Some(owner) => (true, Some(owner)),
                None => (false, living.clone().find(|info| names(info))),
            };
            let runs = |answer: &Answer| answer.sandboxes.iter().any(|sandbox| is_named(&file, &sandbox.id));
            match owner {
                Some(info) if !self.selection.wants_pod(info) => {}
                Some(info) => {
                    self.result.problems.push(error.problem().of(&info.id));
                    if !is_known {
                        views.push(bare_view(info, Path::new(""), State::Failed));
                    }
                }
                None if answer.is_some_and(|answer| !answer.asked.is_empty() && !runs(answer)) => {
                    let message = "cannot be used, and no sandbox of that id runs";
                    self.result.problems.push(Problem::info(Code::CheckpointCorrupt, file, message));
                }
                None => self.result.problems.push(error.problem()),
            }
        }
        views
    }

    /// Interfaces that other plugins made: nobody can say from here whether a NIC's loss takes them.
    fn tell_of_others(&mut self) {
        let partials = self.result.matched.iter().filter_map(|matched| matched.partial.as_ref());
        let others = partials.flat_map(|partial| &partial.attachments).filter(|a| !a.can_be_made());
        let makers: BTreeSet<&str> = others.map(|attachment| attachment.made.name()).collect();
        if makers.is_empty() {
            return;
        }
        let makers: Vec<&str> = makers.into_iter().collect();
        let message = format!(
            "interfaces made by {} are left alone; they stand on no NIC, or netfix cannot make them; one that is \
             missing is reported",
            makers.join(", ")
        );
        self.result.problems.push(Problem::info(Code::PartialSource, "cni-cache", message));
    }
}

/// The place of the living pod that the entries' paths lead to.
fn leads_to(entries: &[Entry], places: &BTreeMap<(u64, u64), usize>) -> Option<usize> {
    let paths: BTreeSet<&str> = entries.iter().flat_map(|entry| &entry.paths).map(String::as_str).collect();
    paths.iter().find_map(|path| places.get(&key_at(path)?).copied())
}

fn former(entry: &PodInfo, living: &PodInfo) -> Problem {
    let message = format!("{} was in this namespace before: its entry is passed over", described(entry));
    Problem::info(Code::PodReplaced, "cni-cache", message).of(&living.id)
}

/// Who the pod is: the id as everywhere else, the names as the runtime gave them to the plugins.
fn info(entries: &[Entry], living: &PodInfo) -> PodInfo {
    let mut info = PodInfo { source: cni::SOURCE.to_owned(), ..living.clone() };
    for PodInfo { namespace, name, uid, sandbox, .. } in entries.iter().map(Entry::pod) {
        info.namespace = namespace.or(info.namespace);
        info.name = name.or(info.name);
        info.uid = uid.or(info.uid);
        info.sandbox = sandbox;
    }
    info
}

/// One attachment an interface. A plugin that calls others leaves an entry of its own beside theirs.
fn partial(entries: Vec<Entry>) -> (Partial, Vec<Problem>) {
    let mut by_name: BTreeMap<IfName, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        by_name.entry(entry.attachment.ifname.clone()).or_default().push(entry);
    }
    let (mut attachments, mut problems) = (Vec::<Attachment>::new(), Vec::new());
    for (ifname, entries) in by_name {
        let (mut made, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.attachment.can_be_made());
        if made.len() > 1 {
            let networks: Vec<String> =
                made.iter().map(|entry| entry.network.escape_debug().to_string()).collect();
            let message =
                format!("the networks {} both claim this interface: neither is used", networks.join(" and "));
            problems.push(Problem::error(Code::CheckpointCorrupt, ifname.to_string(), message));
            continue;
        }
        let one = made.pop().or_else(|| others.into_iter().next());
        attachments.extend(one.map(|entry| entry.attachment));
    }
    (Partial { attachments }, problems)
}

/// Whether a file of the cache (`<network>-<sandbox>-<interface>`) is named after that sandbox.
fn is_named(file: &str, sandbox: &str) -> bool {
    !sandbox.is_empty() && file.contains(&format!("-{sandbox}-"))
}

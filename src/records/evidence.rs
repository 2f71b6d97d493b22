//! Why a namespace without an interface and without a checkpoint should have a network: what it lost is not known then, but that it
//! lost something is.

use std::path::Path;

use crate::cni::{self, CacheEntry};
use crate::inventory::observe::Pod;
use crate::inventory::visit::visit;
use crate::inventory::{private, procfs};
use crate::kernel::Netns;
use crate::kernel::netns::counters;
use crate::matching::NetnsKey;
use crate::model::pod::empty::Evidence;
use crate::runtime::RuntimeAnswer;
use crate::store;

/// Who may know of a network.
#[derive(Clone, Copy)]
pub(crate) struct Witnesses<'a> {
    /// What the runtimes report; `None` where they were not queried.
    pub answer: Option<&'a RuntimeAnswer>,
    pub cni_cache: &'a Path,
}

impl Witnesses<'_> {
    /// The first evidence about each of these namespaces that is bare; in their order.
    pub(crate) fn among(&self, pods: &mut [Pod], bare: &[bool]) -> Vec<Option<Evidence>> {
        let mut found = vec![None; pods.len()];
        let all = pods.iter_mut().enumerate().filter(|(at, _)| bare[*at]);
        let (places, mut pods): (Vec<usize>, Vec<&mut Pod>) = all.unzip();
        for (at, evidence) in places.into_iter().zip(self.about(&mut pods)) {
            found[at] = evidence;
        }
        found
    }

    /// The first evidence about each of these namespaces, which have no interface; in their order.
    pub(crate) fn about(&self, bare: &mut [&mut Pod]) -> Vec<Option<Evidence>> {
        if bare.is_empty() {
            return Vec::new();
        }
        let results = self.results();
        let counted = visit(bare, |_| counters::had_interface());
        let pods = bare.iter().zip(counted);
        pods.map(|(pod, counted)| {
            let reported = private::reported(self.answer, &pod.info);
            let known = [
                (
                    reported.is_some_and(|one| one.has_network),
                    Evidence::Runtime,
                ),
                (
                    results.iter().any(|one| one.is_about(pod)),
                    Evidence::CniCache,
                ),
                (pod.was_on_host(), Evidence::HostId),
                (counted.unwrap_or(false), Evidence::Packets),
            ];
            let found = known.into_iter().find(|(is_known, _)| *is_known);
            found.map(|(_, evidence)| evidence)
        })
        .collect()
    }

    /// libcni's results; those that cannot be read show nothing.
    fn results(&self) -> Vec<CniResultOwner> {
        let files = store::cni_cache(self.cni_cache).unwrap_or_default();
        let texts = files.into_iter().filter_map(|(_, text)| text.ok());
        let entries = texts.filter_map(|text| cni::parse(&text).ok()?);
        entries.map(CniResultOwner::new).collect()
    }
}

/// Whom a result of libcni is for.
struct CniResultOwner {
    sandbox: Option<String>,
    /// The namespaces to which its paths lead, but for those of processes, whose numbers may be others' by now.
    netns: Vec<NetnsKey>,
}

impl CniResultOwner {
    fn new(result: CacheEntry) -> Self {
        let paths = result.paths.iter().map(Path::new);
        let lasting = paths.filter(|path| procfs::pid_in(path).is_none());
        Self {
            sandbox: result.info.sandbox,
            netns: lasting
                .filter_map(|path| Some(Netns::open(path).ok()?.key()))
                .collect(),
        }
    }

    fn is_about(&self, pod: &Pod) -> bool {
        let is_sandbox = self.sandbox.is_some() && self.sandbox == pod.info.sandbox;
        is_sandbox || self.netns.contains(&pod.netns.key())
    }
}

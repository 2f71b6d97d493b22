//! The recorded states of the pods, by namespace, and what has answered them.

use crate::inventory::observe::Pod;
use crate::model::checkpoint::Extension;
use crate::model::pod::by_netns::ByNetns;
use crate::model::{AnswerRecord, NetState, NodeIdentity, Problem};
use crate::records::stored::Stored;
use crate::store::Whole;

/// What netfix recorded of pods.
pub(super) struct Recorded<'a> {
    records: Vec<Record<'a>>,
    by_netns: ByNetns<usize>,
}

/// What netfix recorded of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub own: &'a Extension,
    /// The rest of a large one.
    whole: Option<&'a Whole>,
}

impl<'a> Record<'a> {
    /// The whole state.
    pub(super) fn state(self) -> Result<&'a NetState, &'a Problem> {
        self.whole.map_or(Ok(&self.own.state), Whole::state)
    }
}

impl<'a> Recorded<'a> {
    pub(super) fn of(stored: &'a Stored) -> Self {
        let checkpoints = stored.checkpoints.iter();
        let records: Vec<Record<'_>> = checkpoints
            .filter_map(|(info, checkpoint)| {
                let whole = stored.whole.get(&info.id);
                let own = checkpoint.netfix.as_ref()?;
                Some(Record { own, whole })
            })
            .collect();
        let identities = records.iter().enumerate();
        Self {
            by_netns: ByNetns::new(identities.map(|(at, one)| (&one.own.identity, at))),
            records,
        }
    }

    /// Whether one may describe this pod.
    pub(super) fn has(&self, pod: &Pod) -> bool {
        let mut candidates = self.candidates(pod);
        candidates.any(|(_, one)| one.own.identity.may_be(&pod.identity))
    }

    /// The newest that surely describes this pod.
    pub(super) fn about(&self, node: &NodeIdentity, pod: &Pod) -> Option<Record<'a>> {
        let about = self
            .candidates(pod)
            .filter(|(_, one)| one.own.is_about(node, &pod.identity, &pod.info));
        // Of two from the same second, the later one in the list.
        let newest = about.max_by_key(|(at, one)| (one.own.stamp().order(), *at));
        newest.map(|(_, one)| one)
    }

    fn candidates(&self, pod: &Pod) -> impl Iterator<Item = (usize, Record<'a>)> {
        let candidates = self.by_netns.candidates(&pod.identity);
        candidates.map(|at| (*at, self.records[*at]))
    }
}

/// What a gateway has answered before, by the record: that it must answer again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PastAnswer {
    /// No record shows anything about it.
    #[default]
    Unknown,
    /// It was probed, and has never answered.
    Never,
    /// It answered ARP or neighbour discovery, and no ping.
    Arp,
    /// It answered pings.
    Ping,
}

impl From<Option<&AnswerRecord>> for PastAnswer {
    fn from(record: Option<&AnswerRecord>) -> Self {
        match record {
            None => Self::Unknown,
            Some(record) if record.ping.is_some() => Self::Ping,
            Some(record) if record.arp.is_some() => Self::Arp,
            Some(_) => Self::Never,
        }
    }
}

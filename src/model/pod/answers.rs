//! What has answered the host and each pod: gateways and neighbours, by ARP or neighbour discovery, and to pings. What has answered
//! before must answer again; what has never answered is no fault of a restore.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{IfName, Mac, PodId};

/// What is known about one neighbour of a namespace. Without a time it was probed and has never answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The pod; absent for the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodId>,
    /// The gateway or neighbour.
    pub address: IpAddr,
    /// The interface of the pod or host.
    pub dev: IfName,
    /// The hardware address in its last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// The port behind which a bridge of the host with several uplinks had learnt that address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<IfName>,
    /// When it last answered ARP or neighbour discovery (RFC 3339, UTC, whole seconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arp: Option<String>,
    /// When it last answered a ping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<String>,
}

/// The answers of all namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnswerRecords(Vec<AnswerRecord>);

impl AnswerRecord {
    /// Whether it has ever answered.
    #[must_use]
    pub fn has_answered(&self) -> bool {
        self.arp.is_some() || self.ping.is_some()
    }

    /// Whether both are about the same neighbour.
    fn is_of(&self, other: &Self) -> bool {
        (&self.pod, self.address, &self.dev) == (&other.pod, other.address, &other.dev)
    }

    /// What is left of it without the answers that are not among those of `now`. A snapshot sends no ping: a next hop that answers ARP and
    /// still answers pings gets its answer back with the next probe.
    fn but(&self, now: &[Self]) -> Self {
        let now = now.iter().find(|now| now.is_of(self));
        let mut left = self.clone();
        left.ping
            .take_if(|_| now.is_none_or(|now| now.ping.is_none()));
        if now.is_none() {
            (left.mac, left.port, left.arp) = (None, None, None);
        }
        left
    }

    /// When it last answered.
    fn last(&self) -> Option<&String> {
        self.arp.iter().chain(&self.ping).max()
    }
}

impl AnswerRecords {
    /// How many are kept of a namespace: a pod may have thousands of next hops.
    const MOST: usize = 32;

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is known about a neighbour of the pod, or of the host without one.
    #[must_use]
    pub fn of(&self, pod: Option<&PodId>, address: IpAddr, dev: &IfName) -> Option<&AnswerRecord> {
        let mut own = self.of_namespace(pod);
        own.find(|one| one.address == address && one.dev == *dev)
    }

    /// What is known about the neighbours of the pod, or of the host without one.
    pub fn of_namespace<'a>(
        &'a self,
        pod: Option<&PodId>,
    ) -> impl Iterator<Item = &'a AnswerRecord> {
        self.0.iter().filter(move |one| one.pod.as_ref() == pod)
    }

    /// What is known about the neighbours of the host.
    #[must_use]
    pub fn of_host(&self) -> Vec<AnswerRecord> {
        self.of_namespace(None).cloned().collect()
    }

    /// What is known about the neighbours of each pod.
    #[must_use]
    pub fn by_pod(&self) -> HashMap<PodId, Vec<AnswerRecord>> {
        let mut all: HashMap<_, Vec<_>> = HashMap::new();
        for one in &self.0 {
            if let Some(pod) = &one.pod {
                all.entry(pod.clone()).or_default().push(one.clone());
            }
        }
        all
    }

    /// Whether an answer to the pod, or to the host, is not among those of `now`.
    pub(crate) fn has_silent(&self, pod: Option<&PodId>, now: &[AnswerRecord]) -> bool {
        let mut known = self.of_namespace(pod);
        known.any(|one| one.but(now) != *one)
    }

    /// Counts as never given the answers to the pod, or to the host, that are not among those of `now`: a person gave them up.
    pub(crate) fn give_up(&mut self, pod: Option<&PodId>, now: &[AnswerRecord]) {
        let own = self.0.iter_mut().filter(|one| one.pod.as_ref() == pod);
        for one in own {
            *one = one.but(now);
        }
    }

    /// Whether this adds to what is known: another MAC, or an answer where there was none since that time.
    #[must_use]
    pub fn is_new(&self, found: &AnswerRecord, since: &str) -> bool {
        let Some(known) = self.of(found.pod.as_ref(), found.address, &found.dev) else {
            return true;
        };
        let is_later = |known: &Option<String>, found: &Option<String>| {
            found.is_some() && known.as_deref().is_none_or(|known| known < since)
        };
        is_later(&known.arp, &found.arp)
            || is_later(&known.ping, &found.ping)
            || found.mac.is_some() && found.mac != known.mac
            || found.port.is_some() && found.port != known.port
    }

    /// Notes what adds to what is known; returns whether anything did.
    pub fn take(&mut self, found: Vec<AnswerRecord>, since: &str) -> bool {
        let mut has_new = false;
        for one in found {
            if self.is_new(&one, since) {
                has_new = true;
                self.note(one);
            }
        }
        has_new
    }

    /// Notes what was found; of more than are kept of a namespace, the oldest answer goes.
    pub fn note(&mut self, found: AnswerRecord) {
        if let Some(known) = self.0.iter_mut().find(|one| one.is_of(&found)) {
            known.mac = found.mac.or(known.mac);
            known.port = found.port.or(known.port.take());
            known.arp = found.arp.max(known.arp.take());
            known.ping = found.ping.max(known.ping.take());
            return;
        }
        let pod = found.pod.clone();
        self.0.push(found);
        let own = self.0.iter().enumerate();
        let own = own.filter(|(_, one)| one.pod == pod);
        if own.clone().count() > Self::MOST
            && let Some((oldest, _)) = own.min_by_key(|(_, one)| one.last())
        {
            self.0.remove(oldest);
        }
    }

    /// Forgets the answers of pods that are not stored any more.
    pub(crate) fn forget_unless(&mut self, is_stored: impl Fn(&PodId) -> bool) {
        self.0.retain(|one| one.pod.as_ref().is_none_or(&is_stored));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pod: Option<&str>, last: u8, arp: Option<&str>, ping: Option<&str>) -> AnswerRecord {
        AnswerRecord {
            pod: pod.map(PodId::from_text),
            address: [10, 3, 0, last].into(),
            dev: "eth0".parse().unwrap(),
            mac: None,
            port: None,
            arp: arp.map(str::to_owned),
            ping: ping.map(str::to_owned),
        }
    }

    #[test]
    fn an_answer_is_added_to_what_is_known() {
        let mut known = AnswerRecords::default();
        known.note(answer(Some("web"), 1, None, None));
        known.note(answer(None, 1, Some("2026-11-01T00:00:00Z"), None));
        let pod = PodId::from_text("web");
        let dev = "eth0".parse().unwrap();
        let of = |known: &AnswerRecords| known.of(Some(&pod), [10, 3, 0, 1].into(), &dev).cloned();
        assert!(!of(&known).unwrap().has_answered());
        known.note(answer(Some("web"), 1, None, Some("2026-11-02T00:00:00Z")));
        known.note(answer(Some("web"), 1, Some("2026-11-01T00:00:00Z"), None));
        known.note(answer(Some("web"), 1, None, None));
        let both = answer(
            Some("web"),
            1,
            Some("2026-11-01T00:00:00Z"),
            Some("2026-11-02T00:00:00Z"),
        );
        assert_eq!(of(&known), Some(both.clone()));
        assert!(!known.is_new(&both, "2026-11-01T00:00:00Z"));
        assert!(known.is_new(&both, "2026-11-01T12:00:00Z"));
        known.forget_unless(|_| false);
        assert_eq!(of(&known), None);
        assert_eq!(known.of_namespace(None).count(), 1);
    }

    #[test]
    fn of_too_many_answers_of_a_pod_the_oldest_goes() {
        let mut known = AnswerRecords::default();
        known.note(answer(None, 1, None, None));
        for last in 0..40 {
            let at = format!("2026-11-01T00:00:{last:02}Z");
            known.note(answer(Some("web"), last, Some(&at), None));
        }
        let pod = PodId::from_text("web");
        let left: Vec<_> = known.of_namespace(Some(&pod)).collect();
        assert_eq!(left.len(), 32);
        assert_eq!(left[0].address, IpAddr::from([10, 3, 0, 8]));
        assert_eq!(known.of_namespace(None).count(), 1);
    }
}

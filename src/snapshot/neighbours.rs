//! What has answered the pods and the host, by their neighbour tables: no packet is sent.

use std::net::IpAddr;

use crate::inventory::observe::{Host, Pod};
use crate::inventory::pods::ObservedPod;
use crate::kernel::address::neighbour_probe::{self, AnsweredNeighbour};
use crate::model::{AnswerRecord, IfName, NetState, PodId};

/// Reads it, and adds it to what is known. A table that cannot be read shows no answer.
pub(super) fn answers(
    known: &[AnswerRecord],
    (pods, observed): (&[Pod], &[ObservedPod]),
    host: &mut Host,
    at: &str,
) -> Vec<AnswerRecord> {
    let of_host = neighbour_probe::answered(&mut host.socket).unwrap_or_default();
    let mut all = of_namespace(None, &host.state, of_host, at);
    for (pod, observed) in pods.iter().zip(observed) {
        if let Ok((state, _)) = observed {
            let table = pod.answered.clone();
            all.extend(of_namespace(Some(&pod.info.id), state, table, at));
        }
    }
    for one in &mut all {
        let mut learned = host.state.learned.iter();
        let port = learned.find(|(_, mac)| one.mac == Some(*mac));
        one.port = port.map(|(port, _)| port.clone());
    }
    [known, &all].concat()
}

/// Of a namespace with gateways those alone: it may have any number of other neighbours.
fn of_namespace(
    pod: Option<&PodId>,
    state: &NetState,
    table: Vec<AnsweredNeighbour>,
    at: &str,
) -> Vec<AnswerRecord> {
    let gateways = state.routes.iter().flat_map(|route| route.gateways());
    let gateways: Vec<(IpAddr, &IfName)> = gateways.collect();
    let answers = table.into_iter().filter_map(|one| {
        let mut links = state.links.iter();
        let dev = &links.find(|link| link.index == one.index)?.name;
        let is_one = gateways.is_empty() || gateways.contains(&(one.dst, dev));
        is_one.then(|| AnswerRecord {
            pod: pod.cloned(),
            address: one.dst,
            dev: dev.clone(),
            mac: Some(one.lladdr),
            port: None,
            arp: Some(at.to_owned()),
            ping: None,
        })
    });
    answers.collect()
}

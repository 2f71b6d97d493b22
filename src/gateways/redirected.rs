//! Answers that the namespace does not see, because its link passes all that it receives on to another one, such as the tap of a
//! virtual machine (Kata Containers). A packet socket does.

use super::question::Prober;
use super::trial::GatewayProbe;
use crate::inventory::Inventory;
use crate::inventory::observe::Pod;
use crate::inventory::visit;
use crate::kernel::traffic;
use crate::kernel::wire::frame;
use crate::kernel::wire::packet::FrameListener;

/// Sockets that receive the frames of pods with such links, each with its pod.
pub(super) type FrameListeners = Vec<(usize, FrameListener)>;

/// The probes of one pod that may have been answered unseen.
struct SilentProbes<'a, 'p, 'q> {
    at: usize,
    pod: &'a mut Pod,
    probes: Vec<&'p mut GatewayProbe<'q>>,
}

impl AsMut<Pod> for SilentProbes<'_, '_, '_> {
    fn as_mut(&mut self) -> &mut Pod {
        self.pod
    }
}

/// Notes which of the silent probes are on such links, and opens the sockets: the kernel will repeat its requests.
pub(super) fn listen(inventory: &mut Inventory, probes: &mut [GatewayProbe<'_>]) -> FrameListeners {
    let mut suspects: Vec<SilentProbes<'_, '_, '_>> = Vec::new();
    let mut pods = inventory.pods.iter_mut().enumerate();
    // The probes are in the order of the pods.
    for probe in probes.iter_mut().filter(|probe| probe.is_suspect()) {
        let Prober::Pod(at) = probe.question.place else {
            continue;
        };
        if let Some(last) = suspects.last_mut().filter(|last| last.at == at) {
            last.probes.push(probe);
        } else if let Some((_, pod)) = pods.find(|(place, _)| *place == at) {
            let probes = vec![probe];
            suspects.push(SilentProbes { at, pod, probes });
        }
    }
    let opened = visit::hold(&mut suspects, |SilentProbes { pod, probes, .. }| {
        let mut has_any = false;
        for probe in probes {
            let index = probe.question.index.unwrap_or_default();
            let is_redirected = traffic::passes_on(pod.socket()?, index)?;
            probe.is_redirected = Some(is_redirected);
            has_any |= is_redirected;
        }
        Ok(if has_any {
            Some(FrameListener::open()?)
        } else {
            None
        })
    });
    let opened = suspects.iter().zip(opened);
    let opened = opened.filter_map(|(of, opened)| Some((of.at, opened.ok()??)));
    opened.collect()
}

/// Takes the answers that have arrived in frames.
pub(super) fn take(listeners: &FrameListeners, at: usize, probes: &mut [GatewayProbe<'_>]) {
    /// A pod may send any number: the others have their turn in between.
    const AT_ONCE: usize = 64;
    let (pod, listener) = &listeners[at];
    for (index, frame) in std::iter::from_fn(|| listener.receive_now()).take(AT_ONCE) {
        let Some(heard) = frame::heard(&frame).filter(|heard| !heard.is_probe) else {
            continue;
        };
        let is_about = |probe: &&mut GatewayProbe<'_>| {
            let question = probe.question;
            question.place == Prober::Pod(*pod)
                && question.gateway == heard.address
                && question.index == Some(index)
                && probe.is_redirected == Some(true)
        };
        for probe in probes.iter_mut().filter(is_about) {
            probe.take_frame(heard.mac);
        }
    }
}

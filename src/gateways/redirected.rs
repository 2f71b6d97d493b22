//! Answers that the namespace does not see, because its link passes all that it receives on to another one, such as the tap of a
//! virtual machine (Kata Containers). A packet socket does.

use super::probe::in_places;
use super::question::Prober;
use super::trial::GatewayProbe;
use crate::inventory::Inventory;
use crate::kernel::wire::frame;
use crate::kernel::wire::packet::FrameListener;
use crate::kernel::{Error, traffic};

/// Sockets that receive the frames of pods with such links, each with its pod.
pub(super) type FrameListeners = Vec<(Prober, FrameListener)>;

/// Notes which of the silent probes of pods are on such links, and opens the sockets: the kernel will repeat its requests.
pub(super) fn listen(
    inventory: &mut Inventory,
    probes: &mut [GatewayProbe<'_>],
) -> Result<FrameListeners, Error> {
    let is_suspect =
        |probe: &GatewayProbe<'_>| probe.is_suspect() && probe.question.place != Prober::Host;
    let opened = in_places(inventory, probes, is_suspect, |_, socket, probes| {
        let mut has_any = false;
        for probe in probes.iter_mut().filter(|probe| probe.is_suspect()) {
            let index = probe.question.index.unwrap_or_default();
            let is_redirected = traffic::passes_on(socket, index).unwrap_or_default();
            probe.is_redirected = Some(is_redirected);
            has_any |= is_redirected;
        }
        Ok(has_any.then(FrameListener::open).and_then(Result::ok))
    });
    let opened = opened?.into_iter();
    Ok(opened
        .filter_map(|(at, opened)| Some((at, opened?)))
        .collect())
}

/// Takes the answers that have arrived in frames.
pub(super) fn take(listeners: &FrameListeners, at: usize, probes: &mut [GatewayProbe<'_>]) {
    /// A pod may send any number: the others have their turn in between.
    const AT_ONCE: usize = 64;
    let (place, listener) = &listeners[at];
    for (index, frame) in std::iter::from_fn(|| listener.receive_now()).take(AT_ONCE) {
        let Some(heard) = frame::heard(&frame).filter(|heard| !heard.is_probe) else {
            continue;
        };
        let is_about = |probe: &&mut GatewayProbe<'_>| {
            let question = probe.question;
            question.place == *place
                && question.gateway == heard.address
                && question.index == Some(index)
                && probe.is_redirected == Some(true)
        };
        for probe in probes.iter_mut().filter(is_about) {
            probe.take_frame(heard.mac);
        }
    }
}

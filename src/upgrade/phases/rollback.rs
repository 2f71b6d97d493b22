//! The rollback: brings the former driver back where COMMAND left the NIC or too many pods without network.

use std::mem;

use crate::gateways::{SilenceKind, Unanswered};
use crate::model::problem::{GatewayCause, RollbackCause};
use crate::model::text::join;
use crate::model::window::{Rollback, RollbackReason, Run, WindowPod, command_line};
use crate::model::{IfName, Problem, State, Window};
use crate::restore::{DeviceFaults, Restored};
use crate::upgrade::phases::command;
use crate::upgrade::request::UpgradeRequest;

/// In a window that netfix rolled back before it died.
pub(crate) fn already_rolled_back() -> Problem {
    RollbackCause::AlreadyRan.error("rollback")
}

/// A signal ended the wait for the NIC: that does not show that it stays away.
pub(crate) fn not_run(request: &UpgradeRequest<'_>) -> Problem {
    let command = request.rollback.map(|rollback| rollback.command);
    RollbackCause::NotRun.warning(command.unwrap_or_default())
}

/// The network after COMMAND, as far as a rollback depends on it.
#[derive(Debug, Default)]
pub(crate) struct NetworkAfter {
    /// NICs that a restore left without network.
    devices: DeviceFaults,
    /// What did not answer, and did before COMMAND or was not probed then.
    pub unanswered: Vec<Unanswered>,
    /// Whether it was lost again and again while kubelet was paused.
    pub is_lost_again: bool,
}

impl NetworkAfter {
    /// As a restore left it, and not probed yet.
    pub(crate) fn of(restored: &mut Restored) -> Self {
        Self {
            devices: mem::take(&mut restored.devices),
            ..Self::default()
        }
    }
}

/// The rollback that is needed after a restore, at most one in a window, and why. What is unknown needs none.
pub(crate) fn needed(
    request: &UpgradeRequest<'_>,
    window: &Window,
    after: &NetworkAfter,
) -> Option<(Rollback, Problem)> {
    let rollback = request.rollback.filter(|_| window.rollback.is_none())?;
    // With `--nic-wait 0` netfix does not wait for carrier.
    let waited = !request.wait.is_zero();
    let (reason, nics, lost) = reason(window, after, rollback.max_lost, waited)?;
    let problem = {
        let (nics, wait) = (join(&nics, ", "), request.wait);
        let allowed = rollback.max_lost;
        match reason {
            RollbackReason::NicMissing => RollbackCause::NicMissing { wait }.error(nics),
            RollbackReason::NoCarrier => RollbackCause::NoCarrier { wait }.error(nics),
            RollbackReason::SafeMode => RollbackCause::SafeMode.error(nics),
            RollbackReason::PodsLost => RollbackCause::PodsLost { lost, allowed }.error(""),
            RollbackReason::LostAgain => RollbackCause::LostAgain.error(""),
        }
    };
    let argv = ["sh", "-c", rollback.command].map(str::to_owned);
    let rollback = Rollback {
        reason,
        nics,
        lost,
        run: Run::new(&argv),
    };
    Some((rollback, problem))
}

/// The rollback that has run and left what it was for, and how it failed.
pub(crate) fn useless(
    request: &UpgradeRequest<'_>,
    window: &Window,
    after: &NetworkAfter,
) -> Option<Problem> {
    let (rollback, ran) = request.rollback.zip(window.rollback.as_ref())?;
    reason(window, after, rollback.max_lost, !request.wait.is_zero())?;
    let cause = command::failure(&ran.run);
    Some(RollbackCause::Useless { cause }.error(command_line(&ran.run.argv)))
}

/// Why a rollback is needed, the NICs that need it, and the number of pods that are lost.
fn reason(
    window: &Window,
    after: &NetworkAfter,
    max_lost: usize,
    waited: bool,
) -> Option<(RollbackReason, Vec<IfName>, usize)> {
    let pods = window.pods.iter();
    let lost = pods.filter(|pod| is_lost(pod, &after.unanswered)).count();
    let DeviceFaults {
        missing,
        silent,
        crippled,
    } = &after.devices;
    let silent = silent.iter().filter(|_| waited);
    let silent: Vec<IfName> = silent.filter_map(|nic| had_carrier(window, nic)).collect();
    match (missing.is_empty(), silent.is_empty()) {
        (false, _) => Some((RollbackReason::NicMissing, missing.clone(), lost)),
        (true, false) => Some((RollbackReason::NoCarrier, silent, lost)),
        (true, true) if !crippled.is_empty() => {
            Some((RollbackReason::SafeMode, crippled.clone(), lost))
        }
        (true, true) if lost > max_lost => Some((RollbackReason::PodsLost, Vec::new(), lost)),
        (true, true) if after.is_lost_again => Some((RollbackReason::LostAgain, Vec::new(), lost)),
        (true, true) => None,
    }
}

/// The former name of a NIC, unless it had no carrier before the window either.
fn had_carrier(window: &Window, now: &IfName) -> Option<IfName> {
    let mut nics = window.nics.iter().flatten();
    let known = nics.find(|nic| nic.after.as_ref().is_some_and(|nic| nic.name == *now));
    match known.and_then(|nic| nic.before.as_ref()) {
        Some(before) => before.carrier.then(|| before.name.clone()),
        None => Some(now.clone()),
    }
}

/// Whether a pod is not restored, or reaches none of its gateways and did before. A restore that could not begin leaves only the
/// gateways to judge by.
fn is_lost(pod: &WindowPod, unanswered: &[Unanswered]) -> bool {
    let is_silent = |one: &Unanswered| {
        one.pod.as_ref() == Some(&pod.info.id)
            && one.kind == SilenceKind::Gateway
            && !matches!(one.cause, GatewayCause::CannotProbe { .. })
    };
    let mut gateways = pod.gateways.iter();
    pod.state.is_some_and(|state: State| !state.is_good())
        || unanswered.iter().any(is_silent)
            && !gateways.any(|gateway| gateway.reachable == Some(true))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::model::{GatewayAnswer, PodId};
    use crate::upgrade::phases::rollback::*;

    /// A record of three pods that are all back, with two NICs.
    fn window() -> Window {
        let text = include_str!("../../../testdata/windows/well.json");
        serde_json::from_str(text).unwrap()
    }

    /// After a restore that left these devices.
    fn restored(devices: DeviceFaults) -> NetworkAfter {
        NetworkAfter {
            devices,
            ..NetworkAfter::default()
        }
    }

    fn unanswered(pod: &PodId, cause: GatewayCause) -> NetworkAfter {
        NetworkAfter {
            unanswered: vec![Unanswered {
                pod: Some(pod.clone()),
                object: "10.3.0.1".to_owned(),
                kind: SilenceKind::Gateway,
                cause,
            }],
            ..NetworkAfter::default()
        }
    }

    fn reason_for(
        window: &Window,
        after: &NetworkAfter,
        max_lost: usize,
    ) -> Option<RollbackReason> {
        reason(window, after, max_lost, true).map(|(reason, ..)| reason)
    }

    fn silence(pod: &mut WindowPod, silent: &[usize]) {
        let gateways = pod.gateways.iter_mut().enumerate();
        for (_, gateway) in gateways.filter(|(at, _)| silent.contains(at)) {
            gateway.reachable = Some(false);
        }
    }

    fn nic() -> IfName {
        "eth0".parse().unwrap()
    }

    #[test]
    fn a_missing_nic_asks_for_one() {
        let missing = restored(DeviceFaults {
            missing: vec![nic()],
            ..DeviceFaults::default()
        });
        let reason = reason_for(&window(), &missing, 99);
        assert_eq!(reason, Some(RollbackReason::NicMissing));
    }

    #[test]
    fn a_driver_in_safe_mode_asks_for_one_where_all_nics_are_back() {
        let mut devices = DeviceFaults {
            crippled: vec![nic()],
            ..DeviceFaults::default()
        };
        let reason = reason_for(&window(), &restored(devices.clone()), 99);
        assert_eq!(reason, Some(RollbackReason::SafeMode));
        devices.missing = vec![nic()];
        let reason = reason_for(&window(), &restored(devices), 99);
        assert_eq!(reason, Some(RollbackReason::NicMissing));
    }

    #[test]
    fn a_network_that_is_there_and_was_lost_again_and_again_asks_for_one() {
        let after = NetworkAfter {
            is_lost_again: true,
            ..NetworkAfter::default()
        };
        let reason = reason_for(&window(), &after, 99);
        assert_eq!(reason, Some(RollbackReason::LostAgain));
    }

    #[test]
    fn a_nic_without_carrier_asks_for_one_if_it_had_carrier_before() {
        let mut window = window();
        let silent = restored(DeviceFaults {
            silent: vec![nic()],
            ..DeviceFaults::default()
        });
        let reason = reason_for(&window, &silent, 0);
        assert_eq!(reason, Some(RollbackReason::NoCarrier));
        assert!(super::reason(&window, &silent, 0, false).is_none());
        for nic in window.nics.iter_mut().flatten() {
            nic.before.as_mut().unwrap().carrier = false;
        }
        assert_eq!(reason_for(&window, &silent, 0), None);
        window.nics = None;
        let reason = reason_for(&window, &silent, 0);
        assert_eq!(reason, Some(RollbackReason::NoCarrier));
    }

    #[test]
    fn a_pod_whose_state_is_unknown_is_not_known_to_be_lost() {
        let mut window = window();
        window.pods[0].state = Some(State::Failed);
        let reason = reason_for(&window, &NetworkAfter::default(), 0);
        assert_eq!(reason, Some(RollbackReason::PodsLost));
        window.pods[0].state = None;
        assert_eq!(reason_for(&window, &NetworkAfter::default(), 0), None);
    }

    #[test]
    fn as_many_lost_pods_as_allowed_ask_for_none() {
        let mut window = window();
        window.pods[0].state = Some(State::Failed);
        assert_eq!(reason_for(&window, &NetworkAfter::default(), 1), None);
        window.pods[1].state = Some(State::Failed);
        let reason = reason_for(&window, &NetworkAfter::default(), 1);
        assert_eq!(reason, Some(RollbackReason::PodsLost));
    }

    #[test]
    fn a_pod_is_lost_when_no_gateway_answers_that_answered_before() {
        let mut window = window();
        let pod = &mut window.pods[0];
        let id = pod.info.id.clone();
        let timeout = Duration::from_secs(5);
        let network = unanswered(&id, GatewayCause::NoAnswer { timeout });
        silence(pod, &[0]);
        assert!(
            pod.gateways
                .iter()
                .any(|one: &GatewayAnswer| one.reachable == Some(true))
        );
        assert_eq!(reason_for(&window, &network, 0), None);
        silence(&mut window.pods[0], &[0, 1]);
        let reason = reason_for(&window, &network, 0);
        assert_eq!(reason, Some(RollbackReason::PodsLost));
        // Nor has it one without an interface, where a restore could not begin.
        window.pods[0].state = None;
        let missing = unanswered(&id, GatewayCause::InterfaceMissing);
        assert_eq!(reason_for(&window, &missing, 0), reason);
        // What was silent before the window is excused.
        assert_eq!(reason_for(&window, &NetworkAfter::default(), 0), None);
    }
}

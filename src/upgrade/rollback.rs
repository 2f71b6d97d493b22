//! The rollback: brings the former driver back where COMMAND left the NIC or too many pods without network.

use std::time::Instant;

use crate::model::problem::{Cause, GatewayCause, PlanCause, RestoreCause, RollbackCause};
use crate::model::text::join;
use crate::model::window::{PhaseName, Rollback, RollbackReason, Run, WindowPod, command_line};
use crate::model::{IfName, Problem, State, Window};
use crate::upgrade::driver::Driver;
use crate::upgrade::preflight::Baseline;
use crate::window::event::Event;
use crate::window::findings::Area;

/// In a window that netfix rolled back before it died.
pub(crate) fn already_rolled_back() -> Problem {
    RollbackCause::AlreadyRan.error("rollback")
}

impl Driver<'_> {
    /// Runs the rollback where it is needed, at most once in a window; returns whether it ran. A wait that a signal ended
    /// does not show that the NIC stays away.
    pub(crate) fn roll_back(&mut self, baseline: &Baseline, is_interrupted: bool) -> bool {
        let window = &self.session.window;
        let Some(request) = self.request.rollback.filter(|_| window.rollback.is_none()) else {
            return false;
        };
        let network: Vec<&Problem> = self.findings.of(Area::Network).collect();
        let argv = ["sh", "-c", request.command].map(str::to_owned);
        // Without --wait netfix does not wait for carrier.
        let waited = !self.request.wait.is_zero();
        let Some(rollback) = wanted(window, &network, request.max_lost, waited, &argv) else {
            return false;
        };
        if is_interrupted || self.signals.interrupted() {
            let not_run = RollbackCause::NotRun.warning(request.command);
            self.session.log(&Event::Failed(not_run.clone()));
            self.findings.add(Area::Command, [not_run]);
            return false;
        }
        let problem = self.problem(&rollback, request.max_lost);
        // On disk before it starts: another process must not run it again.
        self.session.window.rollback = Some(rollback.clone());
        let event = Event::RollingBack(rollback);
        self.session.begin(PhaseName::Rollback, &event);
        self.findings.add(Area::Command, [problem]);
        self.run_rollback(&argv, baseline);
        true
    }

    fn run_rollback(&mut self, argv: &[String], baseline: &Baseline) {
        let begin = Instant::now();
        let failure = self.carry_out(argv, baseline, |window, run| {
            if let Some(rollback) = &mut window.rollback {
                rollback.run = run;
            }
        });
        let failure = failure.map(|cause| {
            let cause = RollbackCause::Failed { cause };
            cause.error(command_line(argv))
        });
        let elapsed = begin.elapsed();
        self.note_end(failure, Event::RolledBack { elapsed });
        self.acknowledge(RollbackCause::Interrupted);
    }

    /// Why the rollback runs.
    fn problem(&self, rollback: &Rollback, allowed: usize) -> Problem {
        let wait = self.request.wait;
        let nics = join(&rollback.nics, ", ");
        match rollback.reason {
            RollbackReason::NicMissing => RollbackCause::NicMissing { wait }.error(nics),
            RollbackReason::NoCarrier => RollbackCause::NoCarrier { wait }.error(nics),
            RollbackReason::PodsLost => {
                let lost = rollback.lost;
                RollbackCause::PodsLost { lost, allowed }.error("")
            }
        }
    }
}

/// The rollback that is needed after a restore; `network` are the problems of the restore. What is unknown needs none.
fn wanted(
    window: &Window,
    network: &[&Problem],
    max_lost: usize,
    waited: bool,
    argv: &[String],
) -> Option<Rollback> {
    let of_host = || network.iter().filter(|problem| problem.pod.is_none());
    let missing: Vec<IfName> = of_host()
        .filter(|problem| matches!(*problem.cause, Cause::Plan(PlanCause::DeviceMissing { .. })))
        .filter_map(|problem| problem.object.link().cloned())
        .collect();
    // The second attempt of a restore does not wait, so it only warns.
    let silent: Vec<IfName> = of_host()
        .filter(|_| waited)
        .filter(|problem| matches!(*problem.cause, Cause::Restore(RestoreCause::NoCarrier)))
        .filter_map(|problem| had_carrier(window, problem.object.link()?))
        .collect();
    let pods = window.pods.iter();
    let lost = pods.filter(|pod| is_lost(pod, network)).count();
    let (reason, nics) = match (missing.is_empty(), silent.is_empty()) {
        (false, _) => (RollbackReason::NicMissing, missing),
        (true, false) => (RollbackReason::NoCarrier, silent),
        (true, true) if lost > max_lost => (RollbackReason::PodsLost, Vec::new()),
        (true, true) => return None,
    };
    Some(Rollback {
        reason,
        nics,
        lost,
        run: Run::new(argv),
    })
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
fn is_lost(pod: &WindowPod, network: &[&Problem]) -> bool {
    let is_broken = |state: State| !state.is_good();
    let is_silent = |problem: &&Problem| {
        let cause = &*problem.cause;
        problem.is_error()
            && problem.pod.as_ref() == Some(&pod.info.id)
            && matches!(
                cause,
                Cause::Gateway(GatewayCause::NoAnswer { .. } | GatewayCause::InterfaceMissing)
            )
    };
    let mut gateways = pod.gateways.iter();
    pod.state.is_some_and(is_broken)
        || network.iter().copied().any(|problem| is_silent(&problem))
            && !gateways.any(|gateway| gateway.reachable == Some(true))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::model::problem::WindowCause;
    use crate::model::{GatewayAnswer, PodId};
    use crate::upgrade::rollback::*;

    /// A record of three pods that are all back, with two NICs.
    fn window() -> Window {
        let text = include_str!("../../testdata/windows/well.json");
        serde_json::from_str(text).unwrap()
    }

    fn reason_for(window: &Window, network: &[Problem], max_lost: usize) -> Option<RollbackReason> {
        let network: Vec<&Problem> = network.iter().collect();
        let rollback = wanted(window, &network, max_lost, true, &["true".to_owned()]);
        rollback.map(|rollback| rollback.reason)
    }

    fn no_answer(pod: &PodId) -> Problem {
        let timeout = Duration::from_secs(5);
        GatewayCause::NoAnswer { timeout }.error("10.3.0.1").of(pod)
    }

    fn silence(pod: &mut WindowPod, silent: &[usize]) {
        let gateways = pod.gateways.iter_mut().enumerate();
        for (_, gateway) in gateways.filter(|(at, _)| silent.contains(at)) {
            gateway.reachable = Some(false);
        }
    }

    #[test]
    fn nothing_asks_for_a_rollback_when_all_is_back() {
        assert_eq!(reason_for(&window(), &[], 0), None);
    }

    fn nic() -> IfName {
        "eth0".parse().unwrap()
    }

    #[test]
    fn a_missing_nic_asks_for_one_and_a_pods_own_missing_parent_does_not() {
        let missing = || PlanCause::DeviceMissing { hardware: None }.error(nic());
        let reason = reason_for(&window(), &[missing()], 99);
        assert_eq!(reason, Some(RollbackReason::NicMissing));
        let id = window().pods[0].info.id.clone();
        assert_eq!(reason_for(&window(), &[missing().of(&id)], 99), None);
    }

    #[test]
    fn a_nic_without_carrier_asks_for_one_if_it_had_carrier_before() {
        let mut window = window();
        let silent = [RestoreCause::NoCarrier.warning(nic())];
        let reason = reason_for(&window, &silent, 0);
        assert_eq!(reason, Some(RollbackReason::NoCarrier));
        let without_wait = wanted(&window, &[&silent[0]], 0, false, &[]);
        assert_eq!(without_wait, None);
        for nic in window.nics.iter_mut().flatten() {
            nic.before.as_mut().unwrap().carrier = false;
        }
        assert_eq!(reason_for(&window, &silent, 0), None);
        window.nics = None;
        let reason = reason_for(&window, &silent, 0);
        assert_eq!(reason, Some(RollbackReason::NoCarrier));
    }

    #[test]
    fn lost_pods_ask_for_one_above_the_number_that_is_accepted() {
        let mut window = window();
        window.pods[0].state = Some(State::Failed);
        window.pods[1].state = Some(State::Partial);
        let reason = Some(RollbackReason::PodsLost);
        assert_eq!(reason_for(&window, &[], 0), reason);
        assert_eq!(reason_for(&window, &[], 1), reason);
        assert_eq!(reason_for(&window, &[], 2), None);
        // A pod whose state is not known is not known to be lost.
        for pod in &mut window.pods {
            pod.state = None;
        }
        assert_eq!(reason_for(&window, &[], 0), None);
    }

    #[test]
    fn a_pod_is_lost_when_no_gateway_answers_that_answered_before() {
        let mut window = window();
        let pod = &mut window.pods[0];
        let id = pod.info.id.clone();
        let network = [no_answer(&id)];
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
        let missing = [GatewayCause::InterfaceMissing.error("10.3.0.1").of(&id)];
        assert_eq!(reason_for(&window, &missing, 0), reason);
        let excused = [WindowCause::SilentBefore.warning("10.3.0.1").of(&id)];
        assert_eq!(reason_for(&window, &excused, 0), None);
    }
}

//! What the gateways of one namespace answered, and what is wrong with it.

use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::question::Question;
use super::trial::ProbeAnswer;
use crate::kernel::Error;
use crate::model::GatewayAnswer;
use crate::model::problem::GatewayCause;

/// For how long a probe may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeLimits {
    /// How long the gateways may take to answer.
    pub answer: Duration,
    /// What the work on one pod may cost, without the wait for its answers.
    pub pod: Duration,
}

impl ProbeLimits {
    /// With the default budget of a pod.
    pub(crate) fn new(answer: Duration) -> Self {
        Self::within(Duration::from_secs(5), answer)
    }

    /// With this budget of a pod; a pod with one interface needs far less than the least one.
    pub(crate) fn within(pod: Duration, answer: Duration) -> Self {
        const LEAST: Duration = Duration::from_millis(250);
        let pod = pod.max(LEAST);
        Self { answer, pod }
    }
}

/// What the gateways of one namespace answered.
#[derive(Debug)]
pub(crate) struct Answers {
    pub state: Reachability,
    pub gateways: Vec<GatewayAnswer>,
    /// When the first of them answered.
    pub first: Option<Instant>,
}

/// Whether a namespace reaches its gateways; the worst of them decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reachability {
    NoGateway,
    /// All answered.
    Reachable,
    /// One could not be probed.
    Unknown,
    /// One did not answer.
    Unreachable,
    /// It has no interface and no checkpoint.
    NoCheckpoint,
    /// It could not be read.
    Failed,
}

/// What did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilenceKind {
    Gateway,
    /// A gateway that could not be probed.
    NotProbed,
    Target,
}

impl Answers {
    pub(super) fn none(state: Reachability) -> Self {
        Self {
            state,
            gateways: Vec::new(),
            first: None,
        }
    }

    /// Adds the answer of one gateway; returns what is wrong with it.
    pub(super) fn take(
        &mut self,
        question: &Question,
        answer: ProbeAnswer,
        limits: ProbeLimits,
    ) -> Option<(SilenceKind, GatewayCause)> {
        let mut view = GatewayAnswer {
            address: question.gateway,
            dev: question.dev.clone(),
            reachable: Some(false),
            rtt_us: None,
            lladdr: None,
        };
        let mut state = Reachability::Unreachable;
        let cause = match answer {
            ProbeAnswer::Reachable { rtt, lladdr, at } => {
                state = Reachability::Reachable;
                view.reachable = Some(true);
                view.rtt_us = rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok());
                view.lladdr = lladdr;
                self.first = Some(self.first.map_or(at, |first| first.min(at)));
                None
            }
            ProbeAnswer::Static => {
                state = Reachability::Unknown;
                view.reachable = None;
                Some(GatewayCause::PermanentNeighbour)
            }
            ProbeAnswer::Silent => Some(GatewayCause::NoAnswer {
                timeout: limits.answer,
            }),
            ProbeAnswer::Late => {
                state = Reachability::Unknown;
                view.reachable = None;
                Some(GatewayCause::OverBudget { budget: limits.pod })
            }
            ProbeAnswer::Refused(errno @ (Errno::ENOBUFS | Errno::ENOMEM)) => {
                state = Reachability::Unknown;
                view.reachable = None;
                let error = Error::from(errno).to_string();
                Some(GatewayCause::NoMemory { error })
            }
            ProbeAnswer::Refused(errno) => Some(GatewayCause::CannotProbe {
                error: Error::from(errno).to_string(),
            }),
            ProbeAnswer::Blocked(obstacle) => Some(obstacle.cause(question)),
            ProbeAnswer::NoInterface => Some(GatewayCause::InterfaceMissing),
        };
        self.state = self.state.max(state);
        let kind = match view.reachable {
            None => SilenceKind::NotProbed,
            Some(_) => SilenceKind::Gateway,
        };
        self.gateways.push(view);
        Some((kind, cause?))
    }
}

//! What the gateways of one namespace answered, and what is wrong with it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::question::Question;
use super::recorded::PastAnswer;
use super::trial::ProbeAnswer;
use super::way::Obstacle;
use crate::clock;
use crate::kernel::{Error, ability};
use crate::model::net::reach::destinations;
use crate::model::problem::GatewayCause;
use crate::model::{AnswerRecord, GatewayAnswer, IfName, Mac, NetState, PodId};

/// For how long a probe may last.
#[derive(Clone, Copy)]
pub(crate) struct ProbeLimits<'a> {
    /// How long the gateways may take to answer.
    pub answer: Duration,
    /// What the work on one pod may cost, without the wait for its answers.
    pub pod: Duration,
    /// Whether the pods without a good record that reach nothing are named; a window does that by its restore.
    pub names_cut_off: bool,
    /// Whether the network that is probed was lost meanwhile: then the wait for answers ends.
    pub is_lost: Option<&'a dyn Fn() -> bool>,
}

impl ProbeLimits<'_> {
    /// With the default budget of a pod.
    pub(crate) fn new(answer: Duration) -> Self {
        Self::within(Duration::from_secs(5), answer)
    }

    /// With this budget of a pod; a pod with one interface needs far less than the least one.
    pub(crate) fn within(pod: Duration, answer: Duration) -> Self {
        const LEAST: Duration = Duration::from_millis(250);
        let pod = pod.max(LEAST);
        Self {
            answer,
            pod,
            names_cut_off: false,
            is_lost: None,
        }
    }

    /// With the time that the probe really waited, where a loss of the network has ended it.
    pub(super) fn waited(self, time: Duration) -> Self {
        let is_lost = self.is_lost.is_some_and(|is_lost| is_lost());
        let answer = if is_lost {
            self.answer.min(time)
        } else {
            self.answer
        };
        Self { answer, ..self }
    }
}

/// What a gateway has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GatewayReply {
    /// From the request to the answer; `None` when it is not known which request was answered.
    pub rtt: Option<Duration>,
    /// The hardware address of the answer.
    pub lladdr: Option<Mac>,
    /// When the first answer came; where there is one to a ping, that one.
    pub at: Instant,
    /// Whether it answered ARP or neighbour discovery.
    pub arp: bool,
    /// Whether it answered a ping.
    pub ping: bool,
}

/// What the gateways of one namespace answered.
#[derive(Debug)]
pub(crate) struct Answers {
    pub state: Reachability,
    pub gateways: Vec<GatewayAnswer>,
    /// When the first of them answered.
    pub first: Option<Instant>,
    /// The same for the record, without the pod; and whether the kernel sees an answer to ARP.
    found: Vec<(AnswerRecord, bool)>,
}

/// Whether a namespace reaches its gateways; the worst of them decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reachability {
    NoGateway,
    /// None of them has ever answered.
    NeverAnswered,
    /// All answered, but for those that never did.
    Reachable,
    /// One could not be probed.
    Unknown,
    /// It reaches nothing, and no good checkpoint shows that it ever did more.
    CutOff,
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
    /// A gateway that answers no pings any more, and ARP.
    ArpOnly,
    /// A gateway that has never answered: nothing is known to be lost.
    NeverAnswered,
    /// A gateway that could not be probed.
    NotProbed,
    Target,
}

impl Answers {
    pub(crate) fn none(state: Reachability) -> Self {
        Self {
            state,
            gateways: Vec::new(),
            first: None,
            found: Vec::new(),
        }
    }

    /// What answered, for the record of this pod or of the host. A gateway without an answer is known as one that never answers where
    /// nothing has been lost yet, `is_before` a window, or where another one on its link answers: the link is not to blame.
    pub(super) fn for_record(
        &self,
        pod: Option<&PodId>,
        is_before: bool,
    ) -> impl Iterator<Item = AnswerRecord> {
        let has_answer = move |dev: &IfName| {
            let mut found = self.found.iter();
            found.any(|(one, _)| one.has_answered() && one.dev == *dev)
        };
        let found = self.found.iter().filter(move |(one, can_answer)| {
            let is_other = !can_answer && self.first.is_some();
            is_before || is_other || one.has_answered() || has_answer(&one.dev)
        });
        found.map(move |(one, _)| AnswerRecord {
            pod: pod.cloned(),
            ..one.clone()
        })
    }

    fn note(&mut self, question: &Question, reply: Option<GatewayReply>, can_answer: bool) {
        if question.is_any_router() {
            return;
        }
        let now = clock::whole_seconds();
        let is = |kind: fn(&GatewayReply) -> bool| reply.as_ref().is_some_and(kind);
        let record = AnswerRecord {
            pod: None,
            address: question.gateway,
            dev: question.dev.clone(),
            mac: reply.and_then(|reply| reply.lladdr),
            port: None,
            arp: is(|reply| reply.arp).then(|| now.clone()),
            ping: is(|reply| reply.ping).then_some(now),
        };
        self.found.push((record, can_answer));
    }

    /// Adds the answer of one gateway; returns what is wrong with it.
    pub(super) fn take(
        &mut self,
        question: &Question,
        answer: ProbeAnswer,
        limits: ProbeLimits<'_>,
    ) -> Option<(SilenceKind, GatewayCause)> {
        let reply = match answer {
            ProbeAnswer::Reachable(reply) | ProbeAnswer::ArpOnly(reply) => Some(reply),
            _ => None,
        };
        let silence = answer.silence(question, limits);
        match answer {
            // It was reached, and did not answer itself.
            ProbeAnswer::Reachable(GatewayReply {
                arp: false,
                ping: false,
                ..
            }) => {}
            ProbeAnswer::Reachable(_) | ProbeAnswer::ArpOnly(_) | ProbeAnswer::Silent => {
                self.note(question, reply, true);
            }
            ProbeAnswer::Static | ProbeAnswer::Redirected => self.note(question, None, false),
            _ => {}
        }
        let kind = silence.as_ref().map(|(kind, _)| *kind);
        let (state, reachable) = match kind {
            None => (Reachability::Reachable, Some(true)),
            Some(SilenceKind::NeverAnswered) => (Reachability::NeverAnswered, Some(false)),
            Some(SilenceKind::NotProbed) => (Reachability::Unknown, None),
            Some(SilenceKind::Gateway | SilenceKind::ArpOnly | SilenceKind::Target) => {
                (Reachability::Unreachable, Some(false))
            }
        };
        if let Some(reply) = reply.filter(|_| kind.is_none()) {
            self.first = Some(self.first.map_or(reply.at, |first| first.min(reply.at)));
        }
        let rtt = reply.and_then(|reply| reply.rtt);
        self.state = self.state.max(state);
        self.gateways.push(GatewayAnswer {
            address: question.gateway,
            dev: question.dev.clone(),
            reachable,
            never_answered: kind == Some(SilenceKind::NeverAnswered),
            rtt_us: rtt.and_then(|rtt| u64::try_from(rtt.as_micros()).ok()),
            lladdr: reply.and_then(|reply| reply.lladdr),
        });
        silence
    }
}

impl ProbeAnswer {
    /// The hardware address of a gateway that was reached.
    pub(super) fn lladdr(self) -> Option<Mac> {
        match self {
            Self::Reachable(reply) => reply.lladdr,
            _ => None,
        }
    }

    /// Whether it answered anything.
    pub(super) fn is_heard(self) -> bool {
        matches!(self, Self::Reachable(_) | Self::ArpOnly(_))
    }

    /// What is wrong with it.
    fn silence(
        self,
        question: &Question,
        limits: ProbeLimits<'_>,
    ) -> Option<(SilenceKind, GatewayCause)> {
        let (kind, cause) = match self {
            Self::Reachable(_) => return None,
            Self::ArpOnly(_) => (SilenceKind::ArpOnly, GatewayCause::ArpOnly),
            Self::Silent if question.before == PastAnswer::Never => {
                (SilenceKind::NeverAnswered, GatewayCause::NeverAnswered)
            }
            Self::Silent if !ability::may_ping() => {
                let error = Error::from(Errno::EPERM).to_string();
                (SilenceKind::NotProbed, GatewayCause::NotPermitted { error })
            }
            Self::Silent => {
                let timeout = limits.answer;
                (SilenceKind::Gateway, GatewayCause::NoAnswer { timeout })
            }
            Self::Static if question.before == PastAnswer::Never => {
                (SilenceKind::NeverAnswered, GatewayCause::NeverProbed)
            }
            Self::Static => (SilenceKind::NotProbed, GatewayCause::PermanentNeighbour),
            Self::Redirected => (SilenceKind::NotProbed, GatewayCause::Redirected),
            Self::Late => {
                let budget = limits.pod;
                (SilenceKind::NotProbed, GatewayCause::OverBudget { budget })
            }
            Self::Refused(errno) => {
                let error = Error::from(errno).to_string();
                match errno {
                    Errno::ENOBUFS | Errno::ENOMEM => {
                        (SilenceKind::NotProbed, GatewayCause::NoMemory { error })
                    }
                    Errno::EPERM => (SilenceKind::NotProbed, GatewayCause::NotPermitted { error }),
                    _ => (SilenceKind::Gateway, GatewayCause::CannotProbe { error }),
                }
            }
            Self::Blocked(obstacle) => (SilenceKind::Gateway, obstacle.cause(question)),
            Self::NoInterface => (SilenceKind::Gateway, GatewayCause::InterfaceMissing),
        };
        Some((kind, cause))
    }

    /// A gateway has answered, too, where one of the targets did through it alone, `beyond` it.
    pub(super) fn with_targets<'a>(
        self,
        question: &Question,
        state: &NetState,
        mut beyond: impl Iterator<Item = &'a IpAddr>,
    ) -> Self {
        let is_open = matches!(
            self,
            Self::ArpOnly(_)
                | Self::Silent
                | Self::Static
                | Self::Redirected
                | Self::Blocked(Obstacle::Refused(_))
        );
        let is_through = |to: &IpAddr| {
            let route = destinations::route_to(state, *to);
            let hops = route.map(|route| route.gateways().into_iter().collect::<Vec<_>>());
            hops.is_some_and(|hops| hops == [(question.gateway, &question.dev)])
        };
        if !is_open || !beyond.any(is_through) {
            return self;
        }
        Self::Reachable(match self {
            Self::ArpOnly(reply) => reply,
            _ => GatewayReply {
                rtt: None,
                lladdr: None,
                at: Instant::now(),
                arp: false,
                ping: false,
            },
        })
    }
}

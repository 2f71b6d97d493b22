//! Asks from inside the pods what they need beyond their gateways: an answer to a ping, a TCP connection.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::names::Resolver;
use crate::inventory::observe::Pod;
use crate::inventory::visit;
use crate::kernel::wire::icmp;
use crate::kernel::{Errno, words};
use crate::model::pod::identity::Holder;
use crate::model::pod::summary::{TargetAnswer, TargetKind};
use crate::model::problem::GatewayCause;

/// An address or name that every pod has to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyTarget {
    kind: TargetKind,
    host: String,
    /// 0 for a ping.
    port: u16,
}

impl VerifyTarget {
    /// Reads the argument of `--ping`.
    ///
    /// # Errors
    /// When it is no address and cannot be a host name.
    pub fn ping(text: &str) -> Result<Self, String> {
        let inside = text.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Self::new(TargetKind::Ping, inside.unwrap_or(text), 0)
    }

    /// Reads the argument of `--tcp`.
    ///
    /// # Errors
    /// When it is not `HOST:PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
    pub fn tcp(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').ok_or("not HOST:PORT")?;
        let port: u16 = port.parse().unwrap_or_default();
        let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if port == 0 {
            return Err("PORT is not a number from 1 to 65535".to_owned());
        }
        if inside.is_none() && host.contains(':') {
            return Err("an IPv6 address needs brackets: [ADDRESS]:PORT".to_owned());
        }
        Self::new(TargetKind::Tcp, inside.unwrap_or(host), port)
    }

    fn new(kind: TargetKind, host: &str, port: u16) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if host.parse::<IpAddr>().is_err() && (host.is_empty() || !host.chars().all(is_name)) {
            return Err("not an address or a host name".to_owned());
        }
        let host = host.to_owned();
        Ok(Self { kind, host, port })
    }

    /// Asks from the calling thread's namespace; returns the round trip, and which address answered. All addresses of a name share the time.
    fn probe(&self, from: &Origin, id: u16) -> Outcome {
        let addresses = match self.host.parse() {
            Ok(address) => vec![address],
            Err(_) => Resolver::of(from.holder, from.inode)?.resolve(&self.host, from.deadline)?,
        };
        let mut failure = from.no_answer();
        for (at, address) in addresses.iter().enumerate() {
            let left = from.deadline.saturating_duration_since(Instant::now());
            let rest = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            match self.reach(*address, id, left / rest) {
                Ok(Some(rtt)) => return Ok((rtt, *address)),
                Ok(None) => failure = from.no_answer(),
                Err(error) => failure = refused(error),
            }
        }
        Err(failure)
    }

    fn reach(&self, to: IpAddr, id: u16, limit: Duration) -> io::Result<Option<Duration>> {
        let begin = Instant::now();
        match self.kind {
            TargetKind::Ping => icmp::echo(to, id, begin + limit),
            TargetKind::Tcp if limit.is_zero() => Ok(None),
            TargetKind::Tcp => match TcpStream::connect_timeout(&(to, self.port).into(), limit) {
                Ok(_) => Ok(Some(begin.elapsed())),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
                Err(error) => Err(error),
            },
        }
    }
}

impl fmt::Display for VerifyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.host.parse()) {
            (TargetKind::Ping, _) => f.write_str(&self.host),
            (TargetKind::Tcp, Ok(address)) => SocketAddr::new(address, self.port).fmt(f),
            (TargetKind::Tcp, Err(_)) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The pod that queries.
#[derive(Debug, Clone)]
struct Origin {
    /// A process of the pod, whose files resolve host names.
    holder: Option<Holder>,
    /// The inode of its network namespace.
    inode: u64,
    deadline: Instant,
    timeout: Duration,
}

impl Origin {
    fn no_answer(&self) -> GatewayCause {
        let timeout = self.timeout;
        GatewayCause::TargetSilent { timeout }
    }
}

/// The round trip and the address that answered, or why none did.
type Outcome = Result<(Duration, IpAddr), GatewayCause>;

/// What one pod found, target by target, with the address that answered.
pub(super) type TargetAnswers = Vec<(TargetAnswer, Result<IpAddr, GatewayCause>)>;

/// Targets that are being queried: by a thread for each of each pod, so that no pod delays another.
#[derive(Debug)]
pub(super) struct Queries {
    targets: Arc<[VerifyTarget]>,
    /// The pods that query, by their place in the inventory; for each target its outcome, or `None` while it is not known.
    outcomes: Vec<(usize, Vec<Option<Outcome>>)>,
    /// Which pod of `outcomes`, which target.
    results: Receiver<(usize, usize, Outcome)>,
    deadline: Instant,
    timeout: Duration,
}

/// The pods at these places, in parts that can query all targets at once, beside a probe of the gateways.
pub(super) fn parts<'a>(
    places: &'a [usize],
    targets: &[VerifyTarget],
) -> impl Iterator<Item = &'a [usize]> {
    /// The namespace, a socket, and a file that resolves names; the probe may have as many.
    const FILES: usize = 2 * 3;
    places.chunks(visit::room_for(FILES * targets.len().max(1)))
}

impl Queries {
    /// Asks for all pods at these places at once.
    pub(super) fn start(
        pods: &mut [Pod],
        places: &[usize],
        targets: &[VerifyTarget],
        timeout: Duration,
    ) -> Self {
        let (sender, results) = mpsc::channel();
        let deadline = Instant::now() + timeout;
        let targets: Arc<[VerifyTarget]> = targets.into();
        let mut outcomes = Vec::new();
        for (at, &place) in places.iter().enumerate() {
            let pod = &mut pods[place];
            let origin = Origin {
                holder: pod.netns.holder,
                inode: pod.netns.key().1,
                deadline,
                timeout,
            };
            let of_pod = (0..targets.len()).map(|number| {
                let (sender, origin, targets) = (sender.clone(), origin.clone(), targets.clone());
                let work = move |entered: Result<(), Errno>| {
                    // Each thread in a namespace recognises the answers to its own requests by this number.
                    let id = u16::try_from(number).unwrap_or_default() ^ process_id();
                    let outcome = entered.map_err(refused);
                    let outcome = outcome.and_then(|()| targets[number].probe(&origin, id));
                    // The receiver is gone when the time is over.
                    let _ = sender.send((at, number, outcome));
                };
                let started = pod.netns.reopen().and_then(|netns| netns.spawn(work));
                started.map_err(refused).err().map(Err)
            });
            outcomes.push((place, of_pod.collect()));
            pod.release();
        }
        Self {
            targets,
            outcomes,
            results,
            deadline,
            timeout,
        }
    }

    /// What the pods found, in their order. A thread that hangs has found no answer.
    pub(super) fn finish(mut self) -> Vec<(usize, TargetAnswers)> {
        /// For the threads, which end at the deadline, to report it.
        const GRACE: Duration = Duration::from_millis(500);
        let last = self.deadline + GRACE;
        let all = self.outcomes.iter().flat_map(|(_, of_pod)| of_pod);
        let mut missing = all.filter(|outcome| outcome.is_none()).count();
        while missing > 0 {
            let left = last.saturating_duration_since(Instant::now());
            let Ok((at, number, outcome)) = self.results.recv_timeout(left) else {
                break;
            };
            self.outcomes[at].1[number] = Some(outcome);
            missing -= 1;
        }
        let timeout = self.timeout;
        let answer = |(target, outcome): (&VerifyTarget, Option<Outcome>)| {
            let outcome = outcome.unwrap_or(Err(GatewayCause::TargetSilent { timeout }));
            let rtt = outcome.as_ref().ok().map(|(rtt, _)| rtt.as_micros());
            let answer = TargetAnswer {
                kind: target.kind,
                target: target.to_string(),
                reachable: outcome.is_ok(),
                rtt_us: rtt.and_then(|rtt| u64::try_from(rtt).ok()),
            };
            (answer, outcome.map(|(_, address)| address))
        };
        let of_pods = self.outcomes.into_iter();
        of_pods
            .map(|(place, of_pod)| {
                let found = self.targets.iter().zip(of_pod).map(answer);
                (place, found.collect())
            })
            .collect()
    }
}

fn refused(error: impl Into<io::Error>) -> GatewayCause {
    let error = words(&error.into());
    GatewayCause::TargetRefused { error }
}

#[allow(clippy::cast_possible_truncation, reason = "any number will do")]
pub(super) fn process_id() -> u16 {
    std::process::id() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_target_is_a_host_and_a_port() {
        for text in ["db:5432", "10.0.0.1:80", "[fd00::1]:443", "db.shop.svc:1"] {
            assert_eq!(VerifyTarget::tcp(text).unwrap().to_string(), text);
        }
        for text in [
            "db",
            "db:",
            "db:0",
            "db:65536",
            ":80",
            "fd00::1:443",
            "a b:1",
            "[db]x:1",
        ] {
            assert!(VerifyTarget::tcp(text).is_err(), "{text}");
        }
        assert_eq!(
            VerifyTarget::ping("[fd00::1]").unwrap().to_string(),
            "fd00::1"
        );
        assert!(VerifyTarget::ping("").is_err());
        assert!(VerifyTarget::ping("10.0.0.1/24").is_err());
    }
}

//! What a rehearsal found, and how long it waits for the kernel before it says so.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::model::problem::{Object, RehearsalCause, Unrehearsed};
use crate::model::{PodId, Problem, Rehearsal, Severity};
use crate::rehearsal::compare::Difference;

/// So many objects of a pod, or of the host, are named.
const NAMED: usize = 3;

/// What a rehearsal found.
#[derive(Debug, Default)]
pub(crate) struct Rehearsed {
    /// The pods that come back as they are, or differ.
    pub pods: usize,
    /// How many of them come back as they are.
    pub identical: usize,
    /// How many come back as they are, but for what is left to daemons.
    pub but_for_daemons: usize,
    /// The others: those that were not rehearsed, and those of which only a part was and came back as it is.
    pub unproven: usize,
    /// Whether the links of the host were rehearsed.
    pub host: bool,
    /// How long the restore in the twin took.
    pub restore: Duration,
    /// How long the whole rehearsal took.
    pub took: Duration,
    pub problems: Vec<Problem>,
}

impl Rehearsed {
    /// The pods that are counted.
    pub(super) fn counted(&self) -> usize {
        self.pods + self.unproven
    }

    /// Its figures.
    pub(crate) fn figures(&self) -> Rehearsal {
        let ms = clock::milliseconds;
        Rehearsal {
            pods: self.pods,
            identical: self.identical,
            but_for_daemons: self.but_for_daemons,
            unproven: self.unproven,
            host: self.host,
            restore_ms: ms(self.restore),
            probe_ms: 0,
            reload_ms: None,
            took_ms: ms(self.took),
        }
    }

    /// Adds the differences of a pod, or of the host.
    pub(super) fn add(
        &mut self,
        pod: Option<&PodId>,
        severity: Severity,
        differences: Vec<Difference>,
    ) {
        let more = differences.len().saturating_sub(NAMED);
        let named = differences.into_iter().take(NAMED);
        let more = (more > 0).then(|| (String::new(), RehearsalCause::MoreDiffer { more }));
        for (object, cause) in named.chain(more) {
            let problem = Problem::new(severity, object, cause);
            self.problems.push(match pod {
                Some(pod) => problem.of(pod),
                None => problem,
            });
        }
    }

    /// Adds a note about what a restore leaves to daemons of a pod, or of the host.
    pub(super) fn leave_to_daemons(&mut self, pod: Option<&PodId>, left: Vec<Difference>) {
        let more = left.len().saturating_sub(1);
        let first = left.into_iter().next();
        let left = first.map(|(object, _)| (object, RehearsalCause::LeftToDaemon { more }));
        self.add(pod, Severity::Info, left.into_iter().collect());
    }

    /// Adds a pod that is not rehearsed.
    pub(super) fn leave_out(&mut self, pod: &PodId, object: &str, why: Unrehearsed) {
        self.unproven += 1;
        self.not_rehearsed(pod, object, why);
    }

    /// Adds the reason why an object of a pod is not rehearsed.
    pub(super) fn not_rehearsed(
        &mut self,
        pod: &PodId,
        object: impl Into<Object>,
        why: Unrehearsed,
    ) {
        let cause = RehearsalCause::NotRehearsed { why };
        self.problems.push(cause.info(object).of(pod));
    }
}

/// Whether a restore leaves the object to its daemon: no reason against a restore, and not identical.
pub(super) fn is_left_to_daemon((_, cause): &Difference) -> bool {
    matches!(cause, RehearsalCause::LeftToDaemon { .. })
}

/// The differences of a restore that leaves to daemons what they own, where those of one `with_daemons` are known: an object that
/// comes back in that one only is theirs, or needs one of theirs. What a restore tries in vain is not left.
pub(super) fn left_to_daemons(
    differences: Vec<Difference>,
    with_daemons: &[Difference],
) -> Vec<Difference> {
    let others: BTreeSet<&str> = with_daemons
        .iter()
        .map(|(object, _)| object.as_str())
        .collect();
    let differences = differences.into_iter().map(|(object, cause)| {
        let is_refused = matches!(cause, RehearsalCause::Refused { .. });
        let is_left = !is_refused && !others.contains(object.as_str());
        let left = RehearsalCause::LeftToDaemon { more: 0 };
        (object, if is_left { left } else { cause })
    });
    differences.collect()
}

/// The kernel declares a link operational up to a second after it got carrier (`linkwatch_schedule_work` in `net/core/link_watch.c`), and
/// gives it its link-local address then.
const LINKWATCH: Duration = Duration::from_millis(1200);

/// A namespace in which the kernel may still change something is compared again after this time.
const PAUSE: Duration = Duration::from_millis(50);

/// The time in which the kernel may still change something in a namespace that was just restored.
pub(super) struct SettlingTime {
    until: Instant,
    next_look: Instant,
}

impl SettlingTime {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self {
            until: now + LINKWATCH,
            next_look: now,
        }
    }

    /// Whether it is time for a look.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_look
    }

    /// Whether there is another look after this one.
    pub(super) fn goes_on(&mut self) -> bool {
        self.next_look = Instant::now() + PAUSE;
        self.next_look < self.until
    }

    /// Waits for the next look.
    pub(super) fn pause(&self) {
        thread::sleep(self.next_look.saturating_duration_since(Instant::now()));
    }
}

//! The twin of the host.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::{Error, reported};
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::RehearsalCause;
use crate::model::raw_object::RawObject;
use crate::model::{IfName, Link, LinkKind, Problem};
use crate::plan::daemons::has_daemons;
use crate::plan::{DaemonState, HostLinks};
use crate::records::survey::Surveyed;
use crate::rehearsal::compare::{self, Difference, Side};
use crate::rehearsal::findings::{SettlingTime, is_left_to_daemon, left_to_daemons};
use crate::rehearsal::stage::{self, Sink};
use crate::rehearsal::survivors::{self, HostLoss};
use crate::restore::rehearsed::restore_host;

/// The twin of the host: its namespace is that of the thread that built it.
pub(super) struct HostTwin {
    pub host: Host,
    pub sink: Sink,
    /// The links of the twin as pods can have them as parents.
    pub links: HostLinks,
    loss: HostLoss,
    /// The devices, by their name on the host.
    devices: BTreeSet<IfName>,
    /// What the kernel reports of the host.
    real: Vec<RawObject>,
    /// What the restore of the twin left.
    left: Vec<Problem>,
}

impl HostTwin {
    /// Builds what stays of the host, and a stand-in for each of its devices, as the driver would bring it back.
    pub(super) fn build(surveyed: &mut Surveyed) -> Result<Self, Error> {
        let real = reported::read(&mut surveyed.host.socket)?;
        let (now, mut devices) = (&surveyed.host.state, surveyed.baseline.devices.clone());
        let loss = HostLoss::of(&devices, now);
        // A bridge under pods is one of them if it has no port, and stays.
        devices.retain(|name| loss.links.contains(name));
        let mut stay = survivors::beyond(survivors::without(now, &loss.links));
        let has_addresses = |link: &Link| now.addresses.iter().any(|one| one.dev == link.name);
        stay.links.retain(|link| {
            let is_needed = has_addresses(link) || survivors::is_kept(link);
            is_needed || link.kind == LinkKind::Loopback
        });
        let names: BTreeSet<IfName> = stay.links.iter().map(|link| link.name.clone()).collect();
        stay.routes
            .retain(|route| route.devs().into_iter().all(|dev| names.contains(dev)));
        stay.neighbours.retain(|one| names.contains(&one.dev));
        let back = devices.iter().filter_map(|name| now.link(name));
        let back: Vec<Link> = back.map(as_new).collect();
        let mut host = Host::here()?;
        let mut sink = Sink::open()?;
        stage::add_to_host(&mut host, &back, &stay, &stage::link_data(&real), &sink)?;
        sink.give_carrier()?;
        let mut baseline = baseline(stay, names, &host);
        restore_host(&mut host, &mut baseline)?;
        Ok(Self {
            host,
            sink,
            links: HostLinks::default(),
            loss,
            devices,
            real,
            left: Vec::new(),
        })
    }

    /// Restores the host from its record; returns how long that took.
    pub(super) fn restore(
        &mut self,
        surveyed: &Surveyed,
        daemons: DaemonState,
    ) -> Result<Duration, Error> {
        let begin = Instant::now();
        let recorded = &surveyed.baseline.state;
        let record = survivors::record(recorded, &self.loss.links, &self.devices);
        let record = survivors::beyond(record);
        self.host.refresh()?;
        let mut baseline = baseline(record, self.devices.clone(), &self.host);
        baseline.daemons = daemons;
        let (links, left) = restore_host(&mut self.host, &mut baseline)?;
        self.host.refresh()?;
        (self.links, self.left) = (links, left);
        Ok(begin.elapsed())
    }

    /// The differences between the host and its twin. What comes back with what daemons own is left with that.
    pub(super) fn differences(&mut self, surveyed: &Surveyed) -> Result<Vec<Difference>, Error> {
        let daemons = surveyed.baseline.daemons;
        let found = self.settled(surveyed, daemons)?;
        let may_need_daemons = daemons == DaemonState::Leave
            && !found.iter().all(is_left_to_daemon)
            && has_daemons(&surveyed.baseline.state);
        if !may_need_daemons {
            return Ok(found);
        }
        self.restore(surveyed, DaemonState::Restore)?;
        let with_daemons = self.settled(surveyed, DaemonState::Restore)?;
        Ok(left_to_daemons(found, &with_daemons))
    }

    /// The differences once nothing changes in the twin any more.
    fn settled(
        &mut self,
        surveyed: &Surveyed,
        daemons: DaemonState,
    ) -> Result<Vec<Difference>, Error> {
        let mut moment = SettlingTime::begin();
        loop {
            let found = self.differences_now(surveyed, daemons)?;
            let mut left = self.left.iter().filter(|one| one.is_error()).peekable();
            let is_settled = found.iter().all(is_left_to_daemon) && left.peek().is_none();
            if is_settled || !moment.goes_on() {
                return Ok(left.map(refused).chain(found).collect());
            }
            moment.pause();
            // As a restore does once its pods are there.
            self.restore(surveyed, daemons)?;
        }
    }

    fn differences_now(
        &mut self,
        surveyed: &Surveyed,
        daemons: DaemonState,
    ) -> Result<Vec<Difference>, Error> {
        let twin = survivors::in_earnest(reported::read(&mut self.host.socket)?);
        let real = Side {
            reported: &self.real,
            state: &surveyed.host.state,
        };
        let twin = Side {
            reported: &twin,
            state: &self.host.state,
        };
        let lost = &self.loss.links;
        Ok(compare::differences(
            real,
            twin,
            lost,
            &self.devices,
            daemons,
        ))
    }

    /// The links of the host that pods lose with it.
    pub(super) fn lost(&self) -> &BTreeSet<IfName> {
        &self.loss.links
    }

    /// The links that cannot be rehearsed.
    pub(super) fn unrehearsed(&self) -> impl Iterator<Item = &IfName> {
        self.loss.unrehearsed.iter().map(|link| &link.name)
    }
}

/// A difference that the restore of a twin itself found.
pub(super) fn refused(problem: &Problem) -> Difference {
    let message = problem.message();
    (
        problem.object.to_string(),
        RehearsalCause::Refused { message },
    )
}

/// A device as its driver makes it: with its name, index, MAC and queues.
fn as_new(link: &Link) -> Link {
    Link {
        index: link.index.saturating_add(Link::FIRST_STAND_IN),
        mac: link.mac,
        queues: link.queues,
        ..Link::plain(link.name.clone(), LinkKind::other(Link::STAND_IN))
    }
}

fn baseline(state: crate::model::NetState, devices: BTreeSet<IfName>, host: &Host) -> HostBaseline {
    let mut baseline = HostBaseline::new(Some((state, 0)), &[], BTreeSet::new(), None, &host.state);
    baseline.devices = devices;
    baseline.daemons = DaemonState::Restore;
    baseline
}

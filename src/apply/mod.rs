//! Carrying out a plan: each step becomes its netlink requests, many to a send, or one write below `/proc/sys/net`.
//!
//! A step that fails does not stop those after it; what failed is returned, with the kernel's errno.

mod create;
mod request;

use std::collections::BTreeMap;

use netlink::{Errno, Error, Request, Socket};

use crate::kernel as netlink;
use crate::kernel::{link, sysctl};
use crate::model::{Code, IfName, Link, LinkKind, NetState, Parent, Problem};
use crate::plan::{Change, Step};

pub use create::{Creation, create};

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// Why.
    pub error: Error,
}

impl Failure {
    /// The failure as something to report.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let object = match &self.step {
            Step::SetLink { dev, change: Change::Up, .. } => format!("link {dev}"),
            other => other.to_string(),
        };
        let errno = self.error.errno();
        let busy = matches!(errno, Some(Errno::EADDRINUSE | Errno::EBUSY));
        let (code, hint) = match &self.step {
            Step::SetLink { change: Change::Up, .. } if busy => {
                (Code::MacConflict, "cannot go up beside another link of this MAC on the same parent: ")
            }
            Step::AddLink(_) if errno == Some(Errno::ENODEV) => (Code::ParentMissing, "the parent is gone: "),
            Step::AddLink(_) if errno == Some(Errno::EEXIST) => {
                (Code::LinkConflict, "something else is in its place: ")
            }
            Step::AddRoute { .. } if errno == Some(Errno::EEXIST) => {
                (Code::Failed, "another route has its place and is left alone: ")
            }
            _ => (Code::Failed, ""),
        };
        Problem::error(code, object, format!("{hint}{}", self.error))
    }
}

/// Carries out steps in the calling thread's namespace, through a socket opened in it.
///
/// `state` is what the namespace held when the steps were planned.
pub fn run(socket: &mut Socket, state: &NetState, steps: &[Step]) -> Vec<Failure> {
    let indexes = state.links.iter().map(|link| (link.name.clone(), link.index)).collect();
    let mut runner = Runner { socket, indexes, pending: Vec::new(), failures: Vec::new() };
    for step in steps {
        runner.step(step);
    }
    runner.flush();
    runner.failures
}

struct Runner<'a> {
    socket: &'a mut Socket,
    indexes: BTreeMap<IfName, u32>,
    /// Requests not sent yet, each with its step.
    pending: Vec<(Step, Request)>,
    failures: Vec<Failure>,
}

impl Runner<'_> {
    fn step(&mut self, step: &Step) {
        match step {
            Step::AddLink(link) => {
                self.flush();
                if let Err(error) = self.add_link(link) {
                    self.fail(step, error);
                }
            }
            Step::Sysctl { dev, folder, key, value, now: _ } => {
                // Settings count only if they are there before the link goes up.
                self.flush();
                if let Err(error) = sysctl::write(*folder, dev, key, value) {
                    self.fail(step, error);
                }
            }
            other => match request::of(other, |name| self.indexes.get(name).copied()) {
                Ok(request) => self.pending.push((step.clone(), request)),
                Err(_) => self.fail(step, Errno::ENODEV),
            },
        }
    }

    fn flush(&mut self) {
        let (steps, requests): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending).into_iter().unzip();
        match self.socket.run(&requests) {
            Ok(results) => {
                for (step, result) in steps.into_iter().zip(results) {
                    if let Err(errno) = result {
                        self.fail(&step, errno);
                    }
                }
            }
            Err(error) => {
                let again = || match &error {
                    Error::Kernel(errno) => Error::Kernel(*errno),
                    Error::Decode(why) => Error::Decode(why.clone()),
                    Error::Raced => Error::Raced,
                };
                let lost = |step| Failure { step, error: again() };
                self.failures.extend(steps.into_iter().map(lost));
            }
        }
    }

    /// Creates a link that stands on one of the same namespace, and learns its index.
    fn add_link(&mut self, link: &Link) -> Result<(), Error> {
        let parent = match &link.parent {
            Some(Parent::Own(name)) => Some(*self.indexes.get(name).ok_or(Errno::ENODEV)?),
            _ => None,
        };
        let wanted = Some(link.index).filter(|index| *index != 0);
        let place = |index| link::Placement { name: &link.name, index, netns: None, parent };
        let mut result = self.run_one(link::add(link, place(wanted)).ok_or(Errno::EOPNOTSUPP)?);
        if wanted.is_some() && matches!(result, Err(Error::Kernel(Errno::EEXIST | Errno::EBUSY))) {
            // The old index is taken by now; the link matters more than its number.
            result = self.run_one(link::add(link, place(None)).ok_or(Errno::EOPNOTSUPP)?);
        }
        result?;
        let index = link::index_of(self.socket, &link.name)?;
        self.indexes.insert(link.name.clone(), index);
        Ok(())
    }

    fn run_one(&mut self, request: Request) -> Result<(), Error> {
        let results = self.socket.run(&[request])?;
        results.into_iter().try_for_each(|result| result).map_err(Error::from)
    }

    fn fail(&mut self, step: &Step, error: impl Into<Error>) {
        self.failures.push(Failure { step: step.clone(), error: error.into() });
    }
}

/// Removes links that this very run has created and that could not be taken up, so that nothing half done stays.
///
/// Returns the names of those that are gone.
pub fn take_back(
    socket: &mut Socket,
    state: &NetState,
    failures: &[Failure],
    created: &[IfName],
) -> Vec<IfName> {
    let cannot_go_up = failures.iter().filter_map(|failure| match &failure.step {
        Step::SetLink { dev, change: Change::Up, .. } if created.contains(dev) => Some(dev),
        _ => None,
    });
    let is_macvlan =
        |name: &&IfName| state.link(name).is_some_and(|l| matches!(l.kind, LinkKind::Macvlan(_)));
    let useless: Vec<_> = cannot_go_up.filter(is_macvlan).filter_map(|name| state.link(name)).collect();
    let requests: Vec<_> = useless.iter().map(|link| link::del(link.index)).collect();
    let results = socket.run(&requests).unwrap_or_default();
    let gone = useless.iter().zip(results).filter(|(_, result)| result.is_ok());
    gone.map(|(link, _)| link.name.clone()).collect()
}

//! Asking the container runtimes whose the namespaces are, and what to do with an answer that cannot be true.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::select::Selection;
use super::session::Session;
use super::{Early, Exit, Outcome};
use crate::kernel::netns;
use crate::model::{Link, Parent, Problem};
use crate::observe::Pod;
use crate::runtime::{self, Answer, Introduction, Resident, Select, Unfound};

/// How often, and after which pause, the machine is looked at and the runtimes are asked again when the two do not fit:
/// pods come and go meanwhile, and a runtime that is being started may not know its pods yet.
const LOOKS_AGAIN: usize = 2;
const PAUSE: Duration = Duration::from_millis(400);

/// What the runtimes said, held against what the kernel shows.
struct Comparison {
    answer: Answer,
    /// Chosen sandboxes whose namespace is not there.
    unfound: Vec<Unfound>,
    /// Chosen namespaces that cannot be there if the answer is true.
    suspects: Vec<PathBuf>,
    problems: Vec<Problem>,
}

impl Comparison {
    fn fits(&self) -> bool {
        self.unfound.is_empty() && self.suspects.is_empty()
    }
}

impl Session {
    /// Asks the container runtimes whose the namespaces are. One that cannot be asked ends the command, and so does an
    /// answer that cannot be true; before that, everything is looked at again.
    pub(super) fn ask(&mut self, config: &runtime::Config, selection: &Selection) -> Result<(), Early> {
        let until = Instant::now() + runtime::LIMIT;
        let mut last = self.compare(config, selection, until)?;
        let mut unfound_before: Option<Vec<Unfound>> = None;
        for _ in 0..LOOKS_AGAIN {
            if last.fits() || Instant::now() + PAUSE >= until {
                break;
            }
            thread::sleep(PAUSE);
            *self = Self::open(selection)?;
            let next = self.compare(config, selection, until)?;
            unfound_before = Some(std::mem::replace(&mut last, next).unfound);
        }
        let Comparison { answer, mut unfound, suspects, problems } = last;
        if !suspects.is_empty() {
            return Err(refused(vec![answer.contradicted_by(&suspects)]));
        }
        let twice = |now: &Unfound| {
            unfound_before.as_ref().is_none_or(|before| before.iter().any(|then| then.is_same(now)))
        };
        unfound.retain(twice);
        self.problems.extend(problems);
        self.problems.extend(unfound.iter().map(Unfound::problem));
        self.answer = Some(answer);
        Ok(())
    }

    fn compare(
        &mut self,
        config: &runtime::Config,
        selection: &Selection,
        until: Instant,
    ) -> Result<Comparison, Early> {
        let answer = runtime::ask_until(config, until).map_err(refused)?;
        let mut residents: Vec<Resident<'_>> = self.pods.iter_mut().map(Pod::resident).collect();
        let Introduction { mut unfound, problems } = answer.introduce(&mut residents);
        let doubts = answer.doubts(&residents);
        unfound.retain(|sandbox| {
            let inode = sandbox.inode.unwrap_or_default();
            selection.wants(&sandbox.paths, inode) && selection.wants_pod(&sandbox.info)
        });
        let suspects = self.on_host_links(&doubts, selection);
        Ok(Comparison { answer, unfound, suspects, problems })
    }

    /// Those of these pods that the user chose and that have a link that stands on the host's.
    fn on_host_links(&mut self, doubts: &[usize], selection: &Selection) -> Vec<PathBuf> {
        let Self { pods, host, .. } = self;
        let pods = pods.iter_mut().enumerate().filter(|(at, _)| doubts.contains(at)).map(|(_, pod)| pod);
        let mut pods: Vec<&mut Pod> = pods.filter(|pod| selection.wants_pod(&pod.info)).collect();
        let on_host = |link: &Link| matches!(link.parent, Some(Parent::Host(_)));
        let stands = netns::visit(
            &mut pods,
            |pod| &pod.netns,
            |pod| pod.observe_links_inside(host).is_ok_and(|state| state.links.iter().any(on_host)),
        );
        let paths = pods.iter().map(|pod| pod.netns.path.clone());
        paths.zip(stands).filter(|(_, stands)| matches!(stands, Ok(true))).map(|(path, _)| path).collect()
    }
}

fn refused(problems: Vec<Problem>) -> Early {
    Box::new(Outcome { exit: Exit::Refused, problems, ..Outcome::default() })
}

//! The engine of a restore alone, for the benchmark: it creates links and carries out plans that are ready, in namespaces that are
//! open, and reads nothing before or after that.

use std::mem;
use std::path::PathBuf;

use super::apply::{self, Failure};
use super::host::plan_of;
use super::job::Job;
use super::pods::work_on_created;
use super::turns::Turn;
use crate::inventory::node;
use crate::inventory::observe::Host;
use crate::inventory::visit::visit;
use crate::kernel::{Error, netns, state};
use crate::matching::Selection;
use crate::model::Bytes;
use crate::model::text::join;
use crate::plan::{HostLinks, Step};
use crate::records::contest::CNI_CACHE;
use crate::records::prepare::{RecordSource, SurveyRequest, prepare};
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::runtime::{RuntimeConfig, Which};
use crate::store::Store;

/// The host and pods, with what is missing in each.
pub struct Ready {
    host: Host,
    host_steps: Vec<Step>,
    jobs: Vec<Job>,
}

impl Ready {
    /// Plans a restore of the pods whose namespace matches the glob `netns`, from the checkpoints in a state directory.
    ///
    /// # Errors
    /// Why it cannot be planned.
    pub fn prepare(state_dir: PathBuf, netns: &str) -> Result<Self, String> {
        netns::raise_file_limit();
        let Surveyed {
            host,
            baseline,
            matched,
            ..
        } = survey(state_dir, netns).map_err(|refusal| join(&refusal.problems, "\n"))?;
        let (host_plan, mut links) = plan_of(&host, &baseline);
        links.confirm(&host.state);
        let mut jobs: Vec<Job> = matched.into_iter().map(Job::new).collect();
        for planned in visit(&mut jobs, |job| plan(job, &host, &links)) {
            planned
                .and_then(|planned| planned)
                .map_err(|error| error.to_string())?;
        }
        if jobs.iter().any(|job| job.matched.pod.netns.is_transient) {
            return Err("the limit of open files is too low".to_owned());
        }
        Ok(Self {
            host,
            host_steps: host_plan.steps,
            jobs,
        })
    }

    /// Carries out what is planned, in the way of a restore without probes.
    ///
    /// # Errors
    /// A step that was not carried out.
    pub fn restore(&mut self) -> Result<(), String> {
        let steps = mem::take(&mut self.host_steps);
        let applied = apply::run(&mut self.host.socket, &self.host.state, steps);
        check(&applied.failures)?;
        let mut jobs: Vec<&mut Job> = self.jobs.iter_mut().collect();
        work_on_created(&mut jobs, Turn::Small.limit(), &self.host, Job::act)
            .map_err(|error| error.to_string())?;
        for job in jobs {
            check(&job.failures)?;
            let planned = job.last.as_ref().map_or(0, |(_, plan)| plan.steps.len());
            if job.done.len() != planned {
                let (done, id) = (job.done.len(), job.id());
                return Err(format!("{id}: {done} of {planned} steps carried out"));
            }
        }
        Ok(())
    }
}

fn survey(state_dir: PathBuf, netns: &str) -> Result<Surveyed, Refusal> {
    node::know_node()?;
    let request = SurveyRequest {
        selection: Selection::new(&[(Bytes::from(netns), None)], &[])?,
        source: RecordSource::Checkpoints { generation: None },
        parent: None,
        runtimes: RuntimeConfig {
            which: Which::None,
            endpoint: None,
            containers: false,
        },
        cni_cache: CNI_CACHE.into(),
    };
    prepare(&request, &Store::new(state_dir))
}

/// Plans one pod as a restore does once its links are created: with what a new link of the pod has. The calling thread is inside
/// the pod's namespace.
fn plan(job: &mut Job, host: &Host, links: &HostLinks) -> Result<(), Error> {
    let matched = &mut job.matched;
    let mut state = matched.observe_inside(host)?;
    let new_link = state::new_link_settings(matched.pod.socket()?)?;
    let plan = matched.plan(&state, Some(&new_link), links, &[]);
    job.missing = matched.missing(&state, links);
    // The steps find the index of a new link here: it is the recorded one.
    state.links.extend(job.missing.iter().cloned());
    job.last = Some((state, plan));
    Ok(())
}

fn check(failures: &[Failure]) -> Result<(), String> {
    let first = failures.first();
    first.map_or(Ok(()), |Failure { step, error }| {
        Err(format!("{step}: {error}"))
    })
}

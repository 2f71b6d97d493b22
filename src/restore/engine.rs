//! The engine of a restore alone, for the benchmark: it creates links and carries out plans that are ready, in namespaces that are
//! open, and reads nothing before or after that.

use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use crate::inventory::node;
use crate::inventory::observe::Host;
use crate::inventory::visit::visit;
use crate::kernel::{Error, netns, state};
use crate::matching::Selection;
use crate::model::Bytes;
use crate::model::text::join;
use crate::plan::{HostLinks, Step};
use crate::records::fallback::Fallback;
use crate::records::prepare::{SurveyRequest, prepare};
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::restore::apply::{self, FailedStep};
use crate::restore::permit::Permit;
use crate::restore::pods::batch::work_on_created;
use crate::restore::pods::pod::{PodJob, PodState, View};
use crate::restore::pods::round::apply_plan;
use crate::restore::turns::Turn;
use crate::runtime::{RuntimeConfig, Which};
use crate::situation::plan_of;
use crate::store::Store;

/// The host and pods, with what is missing in each.
pub struct Ready {
    host: Host,
    host_steps: Vec<Step>,
    pods: Vec<PodJob>,
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
        let mut pods = PodJob::all(matched);
        for planned in visit(&mut pods, |pod| plan(pod, &host, &links)) {
            planned
                .and_then(|planned| planned)
                .map_err(|error| error.to_string())?;
        }
        if pods.iter().any(|pod| pod.matched.pod.netns.is_transient) {
            return Err("the limit of open files is too low".to_owned());
        }
        Ok(Self {
            host,
            host_steps: host_plan.steps,
            pods,
        })
    }

    /// Carries out what is planned, in the way of a restore without probes.
    ///
    /// # Errors
    /// A step that was not carried out.
    pub fn restore(&mut self) -> Result<(), String> {
        let steps = mem::take(&mut self.host_steps);
        let permit = Permit::Benchmark;
        let Host { socket, state, .. } = &mut self.host;
        let applied = apply::run(permit, socket, state, steps, Duration::ZERO);
        check(&applied.failures)?;
        let mut pods: Vec<&mut PodJob> = self.pods.iter_mut().collect();
        work_on_created(&mut pods, Turn::Small.limit(), &self.host, permit, |pod| {
            apply_plan(pod, permit)
        })
        .map_err(|error| error.to_string())?;
        for pod in pods {
            check(&pod.failures)?;
            let planned = pod.view().map_or(0, |view| view.plan.steps.len());
            if pod.done.len() != planned {
                let (done, id) = (pod.done.len(), pod.id());
                return Err(format!("{id}: {done} of {planned} steps carried out"));
            }
        }
        Ok(())
    }
}

fn survey(state_dir: PathBuf, netns: &str) -> Result<Surveyed, Refusal> {
    node::know_node()?;
    let selection = Selection::new(&[(Bytes::from(netns), None)], &[])?;
    let runtimes = RuntimeConfig {
        which: Which::None,
        endpoint: None,
        containers: None,
    };
    let request = SurveyRequest {
        fallback: Fallback::Nothing,
        with_daemons: true,
        ..SurveyRequest::new(selection, runtimes)
    };
    prepare(&request, &Store::new(state_dir))
}

/// Plans one pod as a restore does once its links are created: with what a new link of the pod has. The calling thread is inside
/// the pod's namespace.
fn plan(pod: &mut PodJob, host: &Host, links: &HostLinks) -> Result<(), Error> {
    let matched = &mut pod.matched;
    let mut state = matched.observe_inside(host)?;
    let new_link = state::new_link_settings(matched.pod.socket()?)?;
    let plan = matched.plan(&state, Some(&new_link), links, &[]);
    pod.missing = matched.missing(&state, links);
    // The steps find the index of a new link here: it is the recorded one.
    state.links.extend(pod.missing.iter().cloned());
    pod.state = PodState::Working(View::new(state, plan));
    Ok(())
}

fn check(failures: &[FailedStep]) -> Result<(), String> {
    let first = failures.first();
    first.map_or(Ok(()), |FailedStep { step, error, .. }| {
        Err(format!("{step}: {error}"))
    })
}

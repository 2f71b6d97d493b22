//! What a window would do, and which pods it may cut off; changes nothing.

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::observe;
use crate::maintenance::window::still_open;
use crate::maintenance::{Request, kubelet_pause};
use crate::model::problem::WindowCause;
use crate::model::{NetState, NodeIdentity, Parent, PodSummary, Problem, interfaces};
use crate::refusal::Refusal;

/// What a window would find.
pub(crate) struct Preview {
    pub node: NodeIdentity,
    /// The unit that it would pause.
    pub unit: Option<String>,
    /// The pods with a link on one of the host's.
    pub pods: Vec<PodSummary>,
    pub problems: Vec<Problem>,
}

/// Reads the state of the pods, kubelet and the state directory.
pub(crate) fn run(request: &Request<'_>, context: &Context) -> Result<Preview, Refusal> {
    let bus = kubelet_pause::systemd()?;
    let (unit, note) = kubelet_pause::find(bus.as_ref(), request.unit)?;
    let mut session = Inventory::open(&request.selection)?;
    session.attribute(&request.runtimes, &request.selection)?;
    session
        .pods
        .retain(|pod| request.selection.wants_pod(&pod.info));
    let mut problems = std::mem::take(&mut session.problems);
    problems.extend(note);
    let open = context.store.open_window()?;
    problems.extend(open.map(|open| still_open(&open).demoted()));
    let states = observe::observe_pods(&mut session.pods, &session.host);
    let mut pods = Vec::new();
    for (pod, state) in session.pods.iter().zip(states) {
        match state {
            Ok(state) if is_on_host(&state) => pods.push(PodSummary {
                interfaces: interfaces(&state),
                ..PodSummary::bare(&pod.info, Some(&pod.netns.path))
            }),
            Ok(_) => {}
            Err(error) => {
                let error = error.to_string();
                let cause = WindowCause::NamespaceUnreadable { error };
                problems.push(cause.error(pod.netns.path.display()).of(&pod.info.id));
            }
        }
    }
    pods.sort_by(|a: &PodSummary, b| a.info.id.cmp(&b.info.id));
    Ok(Preview {
        node: session.node,
        unit,
        pods,
        problems,
    })
}

fn is_on_host(state: &NetState) -> bool {
    let mut links = state.links.iter();
    links.any(|link| matches!(link.parent, Some(Parent::Host(_))))
}

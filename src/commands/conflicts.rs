//! Who has what a pod needs: asked only when there is a conflict, for it looks at every namespace of the machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::{IfName, LinkKind, Mac, Parent};
use crate::observe::{self, Host};
use crate::runtime::{self, Select};

/// Every macvlan of the machine by MAC and parent, in words.
pub(super) fn owners_of_macs(host: &Host) -> BTreeMap<(Mac, IfName), String> {
    let mut owners = BTreeMap::new();
    for link in &host.state.links {
        if let (LinkKind::Macvlan(_), Some(Parent::Own(parent)), Some(mac)) =
            (&link.kind, &link.parent, link.mac)
        {
            owners.insert((mac, parent.clone()), format!("the host's link {}", link.name));
        }
    }
    let Ok((found, _)) = runtime::discover(&Everything) else { return owners };
    let mut pods: Vec<_> = observe::open_pods(found, host).into_iter().filter_map(Result::ok).collect();
    let states = observe::observe_pods(&mut pods, host);
    for (pod, state) in pods.iter().zip(states) {
        for link in state.map(|state| state.links).unwrap_or_default() {
            if let (Some(Parent::Host(parent)), Some(mac)) = (&link.parent, link.mac) {
                let owner =
                    format!("link {} of pod {} ({})", link.name, pod.info.id, pod.netns.path.display());
                owners.insert((mac, parent.clone()), owner);
            }
        }
    }
    owners
}

/// No selector at all.
struct Everything;

impl Select for Everything {
    fn wants(&self, _: &[PathBuf], _: u64) -> bool {
        true
    }

    fn wants_all(&self) -> bool {
        true
    }
}

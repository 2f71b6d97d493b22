//! Finds the owner of a contested MAC. Used only on a conflict, because it reads every namespace of the machine.

use std::collections::BTreeMap;

use crate::inventory::discover;
use crate::inventory::observe::{self, Host};
use crate::matching::Selection;
use crate::model::problem::Holder;
use crate::model::{IfName, Mac, Parent};

/// Every macvlan of the machine by MAC and parent.
pub(super) fn owners_of_macs(host: &Host) -> BTreeMap<(Mac, IfName), Holder> {
    let mut owners = BTreeMap::new();
    for link in &host.state.links {
        if let (true, Some(Parent::Own(parent)), Some(mac)) =
            (link.kind.is_macvlan(), &link.parent, link.mac)
        {
            let owner = Holder {
                pod: None,
                netns: String::new(),
                link: Some(link.name.clone()),
            };
            owners.insert((mac, parent.clone()), owner);
        }
    }
    let Ok((found, _)) = discover::discover(&Selection::everything()) else {
        return owners;
    };
    let (mut pods, _) = observe::open_pods(found, host, &mut Vec::new());
    let states = observe::observe_claims(&mut pods, host);
    for (pod, state) in pods.iter().zip(states) {
        for link in state.map(|state| state.links).unwrap_or_default() {
            if let (Some(Parent::Host(parent)), Some(mac)) = (&link.parent, link.mac) {
                let owner = Holder {
                    pod: Some(pod.info.id.clone()),
                    netns: pod.netns.shown(),
                    link: Some(link.name),
                };
                owners.insert((mac, parent.clone()), owner);
            }
        }
    }
    owners
}

//! A host whose devices have other names than in its record: as if they still had the recorded ones.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::net::way::WayExit;
use crate::model::{IfName, NetState, Parent};

/// `now` with the names that the devices have in the record. What took such a name meanwhile has none of the record's.
pub(super) fn as_recorded<'a>(good: &NetState, now: &'a NetState) -> Cow<'a, NetState> {
    let devices = good.links.iter().filter_map(|then| {
        let device = then.hardware.as_ref().filter(|device| device.is_known())?;
        let found = now.present(&then.name, Some(device))?;
        (found.name != then.name).then(|| (found.name.clone(), then.name.clone()))
    });
    let mut names: BTreeMap<IfName, IfName> = devices.collect();
    if names.is_empty() {
        return Cow::Borrowed(now);
    }
    let wanted: BTreeSet<IfName> = names.values().cloned().collect();
    for link in &now.links {
        // No name of a link has this form.
        let other = IfName::try_from(format!("{}:?", link.index)).ok();
        if wanted.contains(&link.name) && !names.contains_key(&link.name) {
            names.extend(other.map(|other| (link.name.clone(), other)));
        }
    }
    let mut state = now.clone();
    rename(&mut state, &names);
    Cow::Owned(state)
}

fn rename(state: &mut NetState, names: &BTreeMap<IfName, IfName>) {
    let of = |name: &IfName| names.get(name).unwrap_or(name).clone();
    for link in &mut state.links {
        link.name = of(&link.name);
        link.master = link.master.as_ref().map(of);
        if let Some(Parent::Own(parent)) = &mut link.parent {
            *parent = of(parent);
        }
    }
    for address in &mut state.addresses {
        address.dev = of(&address.dev);
    }
    for route in state.routes.iter_mut().chain(&mut state.advertised) {
        *route = route.clone().renamed(of);
    }
    for neighbour in &mut state.neighbours {
        neighbour.dev = of(&neighbour.dev);
    }
    for nexthop in &mut state.nexthops {
        nexthop.dev = nexthop.dev.as_ref().map(of);
    }
    for way in &mut state.ways {
        if let WayExit::Link { dev, .. } | WayExit::Local { local: dev } = &mut way.exit {
            *dev = of(dev);
        }
    }
}

//! Qdiscs, classes and filters: what must be there before them, and what has their place.

use netfix::model::net::traffic::{ObjectKind, TrafficObject};
use netfix::model::{IfName, Link};

use super::{Errno, Kernel};

/// `TC_H_ROOT`, `TC_H_INGRESS`.
const TOPS: [u32; 2] = [0xffff_ffff, 0xffff_fff1];

impl Kernel {
    pub(super) fn add_traffic(
        &mut self,
        dev: &IfName,
        object: &TrafficObject,
    ) -> Result<(), Errno> {
        let link = self.link_mut(dev)?;
        if present(link, object).is_some() {
            return Err(Errno::EEXIST);
        }
        let objects = &mut link.traffic.objects;
        let is_qdisc = |one: &&TrafficObject| one.object == ObjectKind::Qdisc;
        let mut qdiscs = objects.iter().filter(is_qdisc);
        if object.object == ObjectKind::Qdisc && qdiscs.any(|one| one.parent == object.parent) {
            return Err(Errno::EEXIST);
        }
        let handle = match object.object {
            ObjectKind::Class => object.handle,
            ObjectKind::Qdisc | ObjectKind::Filter => object.parent,
        };
        let above = handle & 0xffff_0000;
        let is_above = |one: &TrafficObject| one.object == ObjectKind::Qdisc && one.handle == above;
        let is_top = TOPS.contains(&object.parent) && object.object == ObjectKind::Qdisc;
        if !is_top && !objects.iter().any(is_above) {
            return Err(Errno::ENOENT);
        }
        objects.push(object.clone());
        Ok(())
    }

    pub(super) fn change_traffic(
        &mut self,
        dev: &IfName,
        object: &TrafficObject,
    ) -> Result<(), Errno> {
        let link = self.link_mut(dev)?;
        let at = present(link, object).ok_or(Errno::ENOENT)?;
        link.traffic.objects[at].clone_from(object);
        Ok(())
    }
}

fn present(link: &Link, object: &TrafficObject) -> Option<usize> {
    let key = |one: &TrafficObject| (one.object, one.handle, one.parent, one.info);
    let mut objects = link.traffic.objects.iter();
    objects.position(|one| key(one) == key(object))
}

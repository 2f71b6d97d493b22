//! Nexthop objects.

use netfix::model::{Nexthop, Route};

use super::{Errno, Kernel};

impl Kernel {
    pub(super) fn add_nexthop(&mut self, wanted: &Nexthop) -> Result<(), Errno> {
        if self.nexthop(wanted.id).is_some() {
            return Err(Errno::EEXIST);
        }
        self.check_nexthop(wanted)?;
        self.state.nexthops.push(wanted.clone());
        self.state.nexthops.sort_by_key(|nexthop| nexthop.id);
        Ok(())
    }

    /// `ip nexthop replace`.
    pub(super) fn change_nexthop(&mut self, wanted: &Nexthop) -> Result<(), Errno> {
        self.check_nexthop(wanted)?;
        let mut nexthops = self.state.nexthops.iter_mut();
        let now = nexthops.find(|nexthop| nexthop.id == wanted.id);
        *now.ok_or(Errno::ENOENT)? = wanted.clone();
        Ok(())
    }

    /// With the routes over it; groups lose it.
    pub fn delete_nexthop(&mut self, id: u32) {
        let state = &mut self.state;
        state.nexthops.retain(|nexthop| nexthop.id != id);
        for nexthop in &mut state.nexthops {
            nexthop.group.retain(|member| member.id != id);
        }
        state.routes.retain(|route| route.nexthop != Some(id));
    }

    fn nexthop(&self, id: u32) -> Option<&Nexthop> {
        self.state.nexthops.iter().find(|nexthop| nexthop.id == id)
    }

    fn check_nexthop(&self, wanted: &Nexthop) -> Result<(), Errno> {
        let dev = wanted.dev.as_ref().map(|dev| self.link(dev)).transpose()?;
        if dev.is_some_and(|dev| !dev.flags.up) {
            return Err(Errno::ENETDOWN);
        }
        let mut members = wanted.group.iter();
        if members.any(|member| self.nexthop(member.id).is_none()) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// A route needs its object.
    pub(super) fn check_reference(&self, wanted: &Route) -> Result<(), Errno> {
        let is_missing = wanted.nexthop.is_some_and(|id| self.nexthop(id).is_none());
        if is_missing {
            Err(Errno::EINVAL)
        } else {
            Ok(())
        }
    }
}

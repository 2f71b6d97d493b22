//! Virtual functions: writes to the files of the bus.

use std::io;

use crate::kernel::{Errno, sriov};
use crate::model::problem::RestoreCause;
use crate::plan::{Change, NetlinkStep, SriovChange, SriovStep, Step};

/// Carries out a step.
pub(super) fn write(step: &SriovStep) -> io::Result<()> {
    let bus = step.bus.as_str();
    match &step.change {
        SriovChange::Autoprobe(is_on) => sriov::set_autoprobe(bus, *is_on),
        SriovChange::Number(vfs) => sriov::set_number(bus, *vfs),
        SriovChange::Override(index, driver) => sriov::set_override(bus, *index, driver),
        SriovChange::Bind(index) => sriov::bind(bus, *index),
        SriovChange::Rebind(index) => sriov::rebind(bus, *index),
        // It comes with a step for the host.
        SriovChange::Await(_) => Err(Errno::ENODEV.into()),
    }
}

/// Whether a step is about a virtual function.
pub(super) fn is_about_one(step: &Step) -> bool {
    match step {
        Step::Sriov(_) => true,
        Step::Netlink(NetlinkStep::SetLink { change, .. }) => {
            matches!(change, Change::Function(..))
        }
        _ => false,
    }
}

/// Whether a step failed because the functions could not be made.
pub(super) fn needs_functions(step: &Step, failed: &Step) -> bool {
    let Step::Sriov(SriovStep {
        dev,
        change: SriovChange::Number(_),
        ..
    }) = failed
    else {
        return false;
    };
    step != failed && is_about_one(step) && step.devs() == [dev]
}

/// What became of a step that is still missing: the driver's `error`, if it refused it.
pub(super) fn cause(error: Option<String>) -> RestoreCause {
    error.map_or(RestoreCause::FunctionUnchanged, |error| {
        RestoreCause::FunctionRefused { error }
    })
}

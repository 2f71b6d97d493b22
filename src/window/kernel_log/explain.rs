//! Which problems come from a cause that the kernel's log names. Pure.

use crate::model::net::link::nic::NicGroup;
use crate::model::problem::{LogCause, Object};
use crate::model::window::{KernelCause, LoggedCause};
use crate::model::{Code, IfName, PodId, Problem, Severity};

/// Gives each problem the cause that the kernel's log names for it; returns a problem for each cause, as bad as the worst that it
/// explains. `is_on` tells which pods have links on a device.
pub(crate) fn explain<'a>(
    problems: impl Iterator<Item = &'a mut Problem>,
    causes: impl Iterator<Item = LoggedCause>,
    is_on: impl Fn(&PodId, &IfName) -> bool,
) -> Vec<Problem> {
    let known = causes.map(|one| (severity(one.cause), one));
    let mut known: Vec<(Severity, LoggedCause)> = known.collect();
    for problem in problems {
        let cause = known
            .iter_mut()
            .find(|(_, logged)| is_of(logged, problem, &is_on));
        if let Some((worst, logged)) = cause {
            *worst = problem.severity.max(*worst);
            problem.because = Some(logged.clone());
        }
    }
    let problems = known.into_iter().map(|(severity, logged)| {
        let object = logged
            .device
            .as_ref()
            .map_or(Object::from(""), Object::from);
        let cause = LogCause::Named {
            cause: logged.cause,
        };
        Problem {
            because: Some(logged),
            ..Problem::new(severity, object, cause)
        }
    });
    problems.collect()
}

/// How bad a cause is that explains no problem.
fn severity(cause: KernelCause) -> Severity {
    match cause {
        KernelCause::SafeMode | KernelCause::RecoveryMode => Severity::Error,
        KernelCause::PromiscuousForced | KernelCause::RdmaActive | KernelCause::UnknownSymbol => {
            Severity::Info
        }
        KernelCause::MacFilterLimit
        | KernelCause::AddressesDropped
        | KernelCause::FilterFailure
        | KernelCause::UnsupportedModule
        | KernelCause::FunctionsAssigned
        | KernelCause::ReferenceLeaked
        | KernelCause::FunctionLoops => Severity::Warning,
    }
}

/// Whether a problem of the cause's device, or of a pod on it, comes from it.
fn is_of(
    logged: &LoggedCause,
    problem: &Problem,
    is_on: &impl Fn(&PodId, &IfName) -> bool,
) -> bool {
    let is_of_setting = matches!(problem.code(), Code::SettingRefused | Code::SettingUnknown);
    let is_absent = matches!(problem.code(), Code::ParentMissing | Code::NoCarrier);
    // The settings show it too (`plan/link/nic.rs`).
    let is_same = problem.code() == Code::DriverReload;
    let is_explained = match logged.cause {
        KernelCause::SafeMode => is_of_setting || is_same,
        KernelCause::RecoveryMode => is_of_setting || is_same || is_absent,
        KernelCause::RdmaActive => {
            is_of_setting && problem.object.group() == Some(NicGroup::Channels)
        }
        KernelCause::UnsupportedModule => is_absent,
        // Its physical function, by which a function without a device is named, is there.
        KernelCause::FunctionLoops | KernelCause::ReferenceLeaked => {
            problem.code() == Code::ParentMissing
        }
        KernelCause::MacFilterLimit
        | KernelCause::AddressesDropped
        | KernelCause::FilterFailure => {
            problem.pod.is_some() && problem.code() == Code::GatewayUnreachable
        }
        KernelCause::PromiscuousForced
        | KernelCause::UnknownSymbol
        | KernelCause::FunctionsAssigned => false,
    };
    // The link of a pod may have the name of the device.
    let is_of_device = |device| match &problem.pod {
        Some(pod) => is_on(pod, device),
        None => problem.object.device() == Some(device),
    };
    is_explained && logged.device.as_ref().is_some_and(is_of_device)
}

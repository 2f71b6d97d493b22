//! Finds kubelet's unit.

use crate::model::problem::SystemdCause;
use crate::systemd::bus::{Bus, UnitState};
use crate::systemd::mask;

/// The units that run kubelet: plain, k3s, RKE2, `MicroK8s`, k0s.
const UNITS: [&str; 8] = [
    "kubelet.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "snap.microk8s.daemon-kubelite.service",
    "k0sworker.service",
    "k0scontroller.service",
];

/// kubelet's unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeletUnit {
    /// Running; can be paused.
    Running(String),
    /// Not running; left unchanged.
    Stopped(String),
    /// Masked before netfix ran; left unchanged.
    Masked(String),
    /// This machine has none.
    Nothing,
}

/// Finds kubelet's unit; `named` is the user's choice. Fails when the named unit does not exist, when several run, and
/// when the running one is masked: netfix could stop it, and nothing could start it again.
pub fn find(bus: &Bus, named: Option<&str>) -> Result<KubeletUnit, SystemdCause> {
    let mut all = Vec::new();
    for name in named.map_or_else(
        || UNITS.map(str::to_owned).to_vec(),
        |name| vec![full_name(name)],
    ) {
        let state = bus.unit(&name)?;
        if state.exists() {
            all.push((name, state));
        } else if named.is_some() {
            return Err(SystemdCause::NoSuchUnit { unit: name });
        }
    }
    choose(all)
}

/// The units of kubelet that are stopped and masked until the next boot, as netfix does it.
pub fn paused_units(bus: &Bus) -> Result<Vec<String>, SystemdCause> {
    let mut paused = Vec::new();
    for name in UNITS {
        if mask::is_masked_here(name) && bus.unit(name)?.is_held() {
            paused.push(name.to_owned());
        }
    }
    Ok(paused)
}

fn choose(all: Vec<(String, UnitState)>) -> Result<KubeletUnit, SystemdCause> {
    let (mut running, idle): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, state)| !state.is_stopped());
    if running.len() > 1 {
        let units = running.into_iter().map(|(name, _)| name).collect();
        return Err(SystemdCause::SeveralRun { units });
    }
    if let Some((name, state)) = running.pop() {
        if state.is_masked() {
            return Err(SystemdCause::RunsMasked { unit: name });
        }
        return Ok(KubeletUnit::Running(name));
    }
    let masked = idle.iter().find(|(_, state)| state.is_masked());
    Ok(match (masked, idle.first()) {
        (Some((name, _)), _) => KubeletUnit::Masked(name.clone()),
        (None, Some((name, _))) => KubeletUnit::Stopped(name.clone()),
        (None, None) => KubeletUnit::Nothing,
    })
}

/// A unit's name with its suffix, as systemctl(1) completes it.
fn full_name(name: &str) -> String {
    let has_suffix = ["service", "target", "scope", "slice", "socket"]
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix))
        .any(|rest| rest.ends_with('.') && rest.len() > 1);
    if has_suffix {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, load: &str, active: &str) -> (String, UnitState) {
        (
            name.to_owned(),
            UnitState {
                load: load.to_owned(),
                active: active.to_owned(),
                sub: String::new(),
            },
        )
    }

    #[test]
    fn a_unit_in_a_restart_loop_is_running() {
        let all = vec![unit("kubelet.service", "loaded", "activating")];
        assert_eq!(
            choose(all).unwrap(),
            KubeletUnit::Running("kubelet.service".to_owned())
        );
    }

    #[test]
    fn a_unit_that_is_not_running_is_reported_as_such() {
        assert_eq!(choose(Vec::new()).unwrap(), KubeletUnit::Nothing);
        let failed = vec![unit("k3s.service", "loaded", "failed")];
        assert_eq!(
            choose(failed).unwrap(),
            KubeletUnit::Stopped("k3s.service".to_owned())
        );
        let masked = vec![unit("kubelet.service", "masked", "inactive")];
        assert_eq!(
            choose(masked).unwrap(),
            KubeletUnit::Masked("kubelet.service".to_owned())
        );
    }

    #[test]
    fn several_running_units_and_a_masked_one_are_refused() {
        let two = vec![
            unit("kubelet.service", "loaded", "active"),
            unit("k3s.service", "loaded", "active"),
        ];
        let units = ["kubelet.service", "k3s.service"].map(str::to_owned);
        let units = units.to_vec();
        assert_eq!(choose(two), Err(SystemdCause::SeveralRun { units }));
        let masked = vec![unit("kubelet.service", "masked", "active")];
        let unit = "kubelet.service".to_owned();
        assert_eq!(choose(masked), Err(SystemdCause::RunsMasked { unit }));
    }

    #[test]
    fn a_name_gets_its_suffix_as_by_systemctl() {
        assert_eq!(full_name("kubelet"), "kubelet.service");
        assert_eq!(full_name("kubelet.service"), "kubelet.service");
        assert_eq!(
            full_name("snap.microk8s.daemon-kubelite"),
            "snap.microk8s.daemon-kubelite.service"
        );
    }
}

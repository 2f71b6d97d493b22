//! The host's network managers: which links each brings back after a driver reload, and whether it has finished with one.
//! Only a manager that runs counts; no query starts one.

pub(crate) mod configured;
mod ifupdown;
mod network_manager;
mod networkd;
pub(crate) mod settings;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use self::ifupdown::Interfaces;
use self::network_manager::Profiles;
use self::networkd::Networks;
use crate::dbus::{self, BusError, SystemBus};
use crate::model::manager::Manager;
use crate::model::{IfName, Link};

/// How long all questions together may take at least: while a driver is loaded, a host has other work.
const LIMIT: Duration = Duration::from_secs(5);
/// The system bus.
const BUS: &str = "/run/dbus/system_bus_socket";

/// Which links the running managers own, by their configuration.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    networks: Option<Networks>,
    profiles: Option<(SystemBus, Profiles)>,
    interfaces: Option<Interfaces>,
    /// The managers that could not be queried, with the reason; `None`: the bus.
    pub unknown: Vec<(Option<Manager>, String)>,
}

/// Whether a manager may run here. Reads only whether files exist, so that a host without managers loses no time.
pub(crate) fn may_run() -> bool {
    [networkd::STATE, network_manager::STATE, ifupdown::STATE]
        .iter()
        .any(|path| Path::new(path).exists())
}

/// The devices among these links that ifupdown brings up when they appear.
pub(crate) fn brought_up_by_ifupdown(links: &[Link]) -> BTreeSet<IfName> {
    let Some(interfaces) = ifupdown::read() else {
        return BTreeSet::new();
    };
    let links = links.iter().filter(|link| interfaces.are_brought_up(link));
    links.map(|link| link.name.clone()).collect()
}

/// A glob of the units with which systemd has a manager bring devices up, and down when they vanish; `None` where there are
/// none.
pub(crate) fn units_of_devices() -> Option<&'static str> {
    Path::new(ifupdown::STATE)
        .exists()
        .then_some(ifupdown::UNITS)
}

/// Questions that are being answered.
pub(crate) struct OwnerQuery {
    answer: Receiver<Owners>,
    begin: Instant,
    limit: Duration,
}

/// Begins to query the managers, which have this `grace` for all that they do, beside the caller's work.
pub(crate) fn query(grace: Duration) -> OwnerQuery {
    let (sender, answer) = channel();
    let limit = grace.max(LIMIT);
    // Without a thread there is no sender, and so no answer.
    let _ = thread::Builder::new().spawn(move || sender.send(Owners::read(limit)).is_ok());
    OwnerQuery {
        answer,
        begin: Instant::now(),
        limit,
    }
}

impl OwnerQuery {
    /// The answer; a manager that hangs costs this time from the question on.
    pub(crate) fn owners(self) -> Owners {
        let left = self.limit.saturating_sub(self.begin.elapsed());
        let answer = self.answer.recv_timeout(left);
        answer.unwrap_or_else(|_| Owners::without_bus(dbus::no_answer(self.limit)))
    }
}

impl Owners {
    /// Queries every manager that runs. One call may take a part of the limit: a manager that hangs must not take all.
    fn read(limit: Duration) -> Self {
        let mut owners = Self {
            interfaces: ifupdown::read(),
            ..Self::default()
        };
        let exists = |path| Path::new(path).exists();
        // A connection can start the bus, which ifupdown does not need.
        if !exists(BUS) || !(exists(networkd::STATE) || exists(network_manager::STATE)) {
            return owners;
        }
        match owners.read_bus(limit * 3 / 5) {
            Ok(()) => owners,
            Err(error) => Self::without_bus(error.to_string()),
        }
    }

    /// What files alone contain. Only the bus knows whether networkd runs: it is taken to, which costs a wait at most.
    fn without_bus(error: String) -> Self {
        let networkd = Path::new(networkd::STATE).exists();
        Self {
            networks: networkd.then(Networks::read),
            profiles: None,
            interfaces: ifupdown::read(),
            unknown: vec![(None, error)],
        }
    }

    fn read_bus(&mut self, call_limit: Duration) -> Result<(), BusError> {
        let bus = SystemBus::connect(call_limit)?;
        if bus.has_owner(networkd::SERVICE)? {
            self.networks = Some(Networks::read());
        }
        if bus.has_owner(network_manager::SERVICE)? {
            match Profiles::read(&bus) {
                Ok(profiles) => self.profiles = Some((bus, profiles)),
                Err(error) => {
                    let unknown = (Some(Manager::NetworkManager), error.to_string());
                    self.unknown.push(unknown);
                }
            }
        }
        Ok(())
    }

    /// The manager that brings back this link of the checkpoint, or its addresses if it is a device.
    pub(crate) fn of(&self, link: &Link) -> Option<Manager> {
        let profiles = self.profiles.as_ref().map(|(_, profiles)| profiles);
        if profiles.is_some_and(|profiles| profiles.have(link)) {
            Some(Manager::NetworkManager)
        } else if self.networks.as_ref().is_some_and(|files| files.have(link)) {
            Some(Manager::Networkd)
        } else if self
            .interfaces
            .as_ref()
            .is_some_and(|all| all.are_brought_up(link))
        {
            Some(Manager::Ifupdown)
        } else {
            None
        }
    }

    /// What `NetworkManager` sets on a device by its profile.
    pub(crate) fn settings_of(&self, name: &IfName) -> settings::Groups {
        let profiles = self.profiles.as_ref();
        profiles.map_or_else(settings::Groups::new, |(_, profiles)| {
            profiles.settings_of(name)
        })
    }

    /// Whether the manager has finished with a link that exists, so that nothing more comes of it.
    pub(crate) fn has_finished(&self, manager: Manager, name: &IfName, ifindex: u32) -> bool {
        match (manager, &self.profiles) {
            (Manager::Networkd, _) => networkd::has_finished(ifindex),
            (Manager::NetworkManager, Some((bus, _))) => network_manager::has_finished(bus, name),
            (Manager::NetworkManager, None) | (Manager::Ifupdown, _) => false,
        }
    }

    /// Whether the manager is configuring a link at this moment.
    pub(crate) fn is_at_work(&self, manager: Manager, name: &IfName, ifindex: u32) -> bool {
        match (manager, &self.profiles) {
            (Manager::Networkd, _) => networkd::is_at_work(ifindex),
            (Manager::NetworkManager, Some((bus, _))) => network_manager::is_at_work(bus, name),
            (Manager::NetworkManager, None) | (Manager::Ifupdown, _) => false,
        }
    }

    /// Whether the manager waits for a person to activate the link's profile.
    pub(crate) fn waits_for_a_person(&self, name: &IfName) -> bool {
        let profiles = self.profiles.as_ref().map(|(_, profiles)| profiles);
        profiles.is_some_and(|profiles| profiles.are_manual(name))
    }

    /// Tells `NetworkManager` to activate its profile of a link.
    pub(crate) fn activate(&self, name: &IfName) -> Result<(), String> {
        match &self.profiles {
            Some((bus, profiles)) => profiles.activate(bus, name),
            None => Ok(()),
        }
    }
}

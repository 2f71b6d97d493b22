//! `NetworkManager` over D-Bus: its profiles, the state of its devices, and the activation of a profile.

use std::collections::HashMap;

use zbus::{OwnedObjectPath, OwnedVariant};

use super::bus::{Bus, Method};
use crate::fault;
use crate::model::{IfName, Link};

/// It keeps the state of its devices here while it runs.
pub(super) const STATE: &str = "/run/NetworkManager";
pub(super) const SERVICE: &str = "org.freedesktop.NetworkManager";

const PATH: &str = "/org/freedesktop/NetworkManager";
const SETTINGS: &str = "/org/freedesktop/NetworkManager/Settings";
/// `NM_DEVICE_STATE_ACTIVATED` and `NM_DEVICE_STATE_FAILED`.
const ACTIVATED: u32 = 100;
const FAILED: u32 = 120;

/// The settings of a profile: sections of keys and values.
type Settings = HashMap<String, HashMap<String, OwnedVariant>>;

/// Its profiles of links with a name.
#[derive(Debug, Default)]
pub(super) struct Profiles(Vec<Profile>);

#[derive(Debug)]
struct Profile {
    path: OwnedObjectPath,
    link: String,
    /// Whether `NetworkManager` activates it without being told (`autoconnect`).
    is_automatic: bool,
}

impl Profiles {
    /// Queries all of them.
    pub(super) fn read(bus: &Bus) -> Result<Self, String> {
        let list = Method {
            service: SERVICE,
            path: SETTINGS,
            interface: "org.freedesktop.NetworkManager.Settings",
            name: "ListConnections",
        };
        let paths: Vec<OwnedObjectPath> = bus.call(&list, &())?;
        let mut profiles = Vec::new();
        for path in paths {
            let get = Method {
                service: SERVICE,
                path: path.as_str(),
                interface: "org.freedesktop.NetworkManager.Settings.Connection",
                name: "GetSettings",
            };
            let settings: Settings = bus.call(&get, &())?;
            profiles.extend(Profile::of(path, &settings));
        }
        // An automatic profile of a link comes before one that a person activates.
        profiles.sort_by_key(|profile| !profile.is_automatic);
        Ok(Self(profiles))
    }

    fn of(&self, name: &IfName) -> Option<&Profile> {
        self.0.iter().find(|profile| profile.link == name.as_str())
    }

    /// Whether a link comes with a profile: a device only with an automatic one, because a person may have left it without.
    pub(super) fn have(&self, link: &Link) -> bool {
        let profile = self.of(&link.name);
        profile.is_some_and(|profile| profile.is_automatic || link.kind.can_be_made())
    }

    /// Whether only a person activates the link's profile.
    pub(super) fn are_manual(&self, name: &IfName) -> bool {
        self.of(name).is_some_and(|profile| !profile.is_automatic)
    }

    /// Asks for the activation of a link's profile; its end is not awaited.
    pub(super) fn activate(&self, bus: &Bus, name: &IfName) -> Result<(), String> {
        let Some(profile) = self.of(name) else {
            return Ok(());
        };
        fault::point("manager call").map_err(|error| error.to_string())?;
        let method = Method {
            service: SERVICE,
            path: PATH,
            interface: SERVICE,
            name: "ActivateConnection",
        };
        // "/" lets NetworkManager choose the device, and make it.
        let nothing = OwnedObjectPath::try_from("/").map_err(|error| error.to_string())?;
        let body = (&profile.path, &nothing, &nothing);
        bus.call::<_, OwnedObjectPath>(&method, &body).map(|_| ())
    }
}

impl Profile {
    fn of(path: OwnedObjectPath, settings: &Settings) -> Option<Self> {
        let connection = settings.get("connection")?;
        let link = connection.get("interface-name")?.try_clone().ok()?;
        let automatic = connection.get("autoconnect");
        let is_manual = automatic
            .and_then(|value| bool::try_from(value.try_clone().ok()?).ok())
            .is_some_and(|automatic| !automatic);
        Some(Self {
            path,
            link: String::try_from(link).ok()?,
            is_automatic: !is_manual,
        })
    }
}

/// Whether the device's profile is active, or its activation failed.
pub(super) fn is_active(bus: &Bus, name: &IfName) -> bool {
    let find = Method {
        service: SERVICE,
        path: PATH,
        interface: SERVICE,
        name: "GetDeviceByIpIface",
    };
    let Ok(device) = bus.call::<_, OwnedObjectPath>(&find, &(name.as_str(),)) else {
        return false;
    };
    let get = Method {
        service: SERVICE,
        path: device.as_str(),
        interface: "org.freedesktop.DBus.Properties",
        name: "Get",
    };
    let body = ("org.freedesktop.NetworkManager.Device", "State");
    let state = bus.call::<_, OwnedVariant>(&get, &body);
    let state = state.ok().and_then(|state| u32::try_from(state).ok());
    matches!(state, Some(ACTIVATED | FAILED))
}

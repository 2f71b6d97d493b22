//! `NetworkManager` over D-Bus: its profiles, the state of its devices, and the activation of a profile.

use std::collections::HashMap;

use zbus::{OwnedObjectPath, OwnedVariant};

use crate::dbus::{BusError, RemoteObject, SystemBus};
use crate::managers::settings::{Groups, in_profile};
use crate::model::{IfName, Link};

/// It keeps the state of its devices here while it runs.
pub(super) const STATE: &str = "/run/NetworkManager";
pub(super) const SERVICE: &str = "org.freedesktop.NetworkManager";

/// Its first object.
const MANAGER: RemoteObject<'_> = object("/org/freedesktop/NetworkManager", SERVICE);
const SETTINGS: RemoteObject<'_> = object(
    "/org/freedesktop/NetworkManager/Settings",
    "org.freedesktop.NetworkManager.Settings",
);
const PROFILE: &str = "org.freedesktop.NetworkManager.Settings.Connection";
const DEVICE: &str = "org.freedesktop.NetworkManager.Device";
const ACTIVE: &str = "org.freedesktop.NetworkManager.Connection.Active";
/// `NM_DEVICE_STATE_PREPARE`, the first of those of an activation, `NM_DEVICE_STATE_ACTIVATED`, `NM_DEVICE_STATE_DEACTIVATING`
/// and `NM_DEVICE_STATE_FAILED`.
const PREPARE: u32 = 40;
const ACTIVATED: u32 = 100;
const DEACTIVATING: u32 = 110;
const FAILED: u32 = 120;
/// `NM_ACTIVATION_STATE_FLAG_IP4_READY` and `NM_ACTIVATION_STATE_FLAG_IP6_READY`.
const IP_READY: u32 = 0x8 | 0x10;

const fn object<'a>(path: &'a str, interface: &'a str) -> RemoteObject<'a> {
    RemoteObject {
        service: SERVICE,
        path,
        interface,
    }
}

/// The settings of a profile: sections of keys and values.
type ProfileSettings = HashMap<String, HashMap<String, OwnedVariant>>;

/// Its profiles of links with a name.
#[derive(Debug, Default)]
pub(super) struct Profiles(Vec<Profile>);

#[derive(Debug)]
struct Profile {
    path: OwnedObjectPath,
    link: String,
    /// Whether `NetworkManager` activates it without a request (`autoconnect`).
    is_automatic: bool,
    /// What it sets on the device.
    settings: Groups,
}

impl Profiles {
    /// Queries all of them.
    pub(super) fn read(bus: &SystemBus) -> Result<Self, BusError> {
        let paths: Vec<OwnedObjectPath> = bus.call(SETTINGS, "ListConnections", &())?;
        let mut profiles = Vec::new();
        for path in paths {
            let settings: ProfileSettings =
                bus.call(object(path.as_str(), PROFILE), "GetSettings", &())?;
            profiles.extend(Profile::of(path, &settings));
        }
        // An automatic profile of a link comes before one that a person activates.
        profiles.sort_by_key(|profile| !profile.is_automatic);
        Ok(Self(profiles))
    }

    fn of(&self, name: &IfName) -> Option<&Profile> {
        self.0.iter().find(|profile| name.is(&profile.link))
    }

    /// Whether a link comes with a profile: a device only with an automatic one, because a person may have left it without.
    pub(super) fn have(&self, link: &Link) -> bool {
        let profile = self.of(&link.name);
        profile.is_some_and(|profile| profile.is_automatic || link.can_be_made())
    }

    /// Whether only a person activates the link's profile.
    pub(super) fn are_manual(&self, name: &IfName) -> bool {
        self.of(name).is_some_and(|profile| !profile.is_automatic)
    }

    /// What the profile of a device sets on it.
    pub(super) fn settings_of(&self, name: &IfName) -> Groups {
        self.of(name)
            .map(|profile| profile.settings.clone())
            .unwrap_or_default()
    }

    /// Asks for the activation of a link's profile; its end is not awaited.
    pub(super) fn activate(&self, bus: &SystemBus, name: &IfName) -> Result<(), String> {
        let Some(profile) = self.of(name) else {
            return Ok(());
        };
        // "/" lets NetworkManager choose the device, and make it.
        let nothing = OwnedObjectPath::try_from("/").map_err(|error| error.to_string())?;
        let body = (&profile.path, &nothing, &nothing);
        let activated = bus.call::<_, OwnedObjectPath>(MANAGER, "ActivateConnection", &body);
        activated.map(|_| ()).map_err(|error| error.to_string())
    }
}

impl Profile {
    fn of(path: OwnedObjectPath, settings: &ProfileSettings) -> Option<Self> {
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
            settings: settings
                .iter()
                .flat_map(|(section, keys)| in_profile(section, keys.keys()))
                .collect(),
        })
    }
}

/// Whether the device's profile is active with all its addresses, or its activation failed. A device is active with its IPv6
/// addresses while its DHCP client still waits for an answer.
pub(super) fn has_finished(bus: &SystemBus, name: &IfName) -> bool {
    match state(bus, name) {
        Some((_, FAILED)) => true,
        Some((device, ACTIVATED)) => {
            let active = property::<OwnedObjectPath>(bus, &device, DEVICE, "ActiveConnection");
            let flags = active.and_then(|path| property::<u32>(bus, &path, ACTIVE, "StateFlags"));
            flags.is_some_and(|flags| flags & IP_READY == IP_READY)
        }
        _ => false,
    }
}

/// Whether the device's profile is being activated or deactivated.
pub(super) fn is_at_work(bus: &SystemBus, name: &IfName) -> bool {
    let state = state(bus, name);
    state.is_some_and(|(_, state)| (PREPARE..ACTIVATED).contains(&state) || state == DEACTIVATING)
}

/// A device with its state (`NMDeviceState`).
fn state(bus: &SystemBus, name: &IfName) -> Option<(OwnedObjectPath, u32)> {
    let name = name.as_str()?;
    let device: OwnedObjectPath = bus.call(MANAGER, "GetDeviceByIpIface", &(name,)).ok()?;
    let state = property(bus, &device, DEVICE, "State")?;
    Some((device, state))
}

fn property<T: TryFrom<OwnedVariant, Error: ToString>>(
    bus: &SystemBus,
    path: &OwnedObjectPath,
    interface: &str,
    name: &str,
) -> Option<T> {
    bus.property(object(path.as_str(), interface), name).ok()
}

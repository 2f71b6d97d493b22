//! D-Bus calls to systemd's manager.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::zvariant::{DynamicType, Type as Signature};
use zbus::{OwnedObjectPath, OwnedVariant};

use crate::dbus::{BusError, RemoteObject, SystemBus};
use crate::model::problem::SystemdCause;

const MANAGER: RemoteObject<'_> = RemoteObject {
    service: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};
const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// How long systemd may take to answer one call.
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// How long to try for a new connection in place of a broken one, and how often.
const RECONNECT_LIMIT: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

impl From<BusError> for SystemdCause {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Unreachable(why) => Self::Unreachable { why },
            BusError::Refused { call, why } => Self::Refused { call, why },
            BusError::TimedOut { call, limit } => Self::TimedOut { call, limit },
        }
    }
}

/// A connection to systemd's manager.
#[derive(Debug)]
pub struct Bus(RefCell<SystemBus>);

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// `loaded`, `masked`, `not-found`, …
    pub load: String,
    /// `active`, `inactive`, `failed`, …
    pub active: String,
    /// `running`, `dead`, `auto-restart`, …
    pub sub: String,
}

impl UnitState {
    /// Whether the unit is stopped; a unit may fail while it stops.
    pub fn is_stopped(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }

    /// Whether the unit is masked: nothing can start it.
    pub fn is_masked(&self) -> bool {
        self.load == "masked"
    }

    /// Whether it is stopped and masked.
    pub fn is_held(&self) -> bool {
        self.is_stopped() && self.is_masked()
    }

    /// Whether systemd knows the unit.
    pub fn exists(&self) -> bool {
        self.load != "not-found"
    }
}

impl Bus {
    /// Connects to the system bus, and checks that systemd is on it.
    pub fn connect() -> Result<Self, SystemdCause> {
        Ok(Self(RefCell::new(connect()?)))
    }

    /// Makes a call, and repeats it on a new connection if the old one broke: a driver's package may restart the bus.
    fn request<A>(
        &self,
        request: impl Fn(&SystemBus) -> Result<A, BusError>,
    ) -> Result<A, SystemdCause> {
        let now = || request(&self.0.borrow());
        let answer = match now() {
            Err(BusError::Unreachable(_)) => {
                self.reconnect()?;
                now()
            }
            answer => answer,
        };
        Ok(answer?)
    }

    /// Connects again. A restart of the bus takes a moment.
    fn reconnect(&self) -> Result<(), SystemdCause> {
        let until = Instant::now() + RECONNECT_LIMIT;
        loop {
            match connect() {
                Ok(bus) => {
                    self.0.replace(bus);
                    return Ok(());
                }
                Err(error) if Instant::now() >= until => return Err(error.into()),
                Err(_) => thread::sleep(RECONNECT_PAUSE),
            }
        }
    }

    /// Calls a method of the manager.
    pub(super) fn call<B, A>(&self, method: &str, body: &B) -> Result<A, SystemdCause>
    where
        B: Serialize + DynamicType,
        A: DeserializeOwned + Signature,
    {
        self.request(|bus| bus.call(MANAGER, method, body))
    }

    /// Starts a job, such as `StopUnit`, and waits for its end; returns systemd's result: `done`, `failed`, ….
    pub(super) fn job<B>(
        &self,
        method: &str,
        body: &B,
        limit: Duration,
    ) -> Result<String, SystemdCause>
    where
        B: Serialize + DynamicType,
    {
        type Removed = (u32, OwnedObjectPath, String, String);
        let end_of =
            |job: &OwnedObjectPath, (_, path, _, result): Removed| (path == *job).then_some(result);
        self.request(|bus| bus.call_until(MANAGER, (method, body), "JobRemoved", limit, end_of))
    }

    /// A property of a unit, by the interface of units or that of its kind.
    pub(super) fn property<A>(
        &self,
        unit: &str,
        interface: &str,
        name: &str,
    ) -> Result<A, SystemdCause>
    where
        A: TryFrom<OwnedVariant, Error: ToString>,
    {
        let path: OwnedObjectPath = self.call("LoadUnit", &(unit,))?;
        self.property_of(&path, interface, name)
    }

    fn property_of<A>(
        &self,
        path: &OwnedObjectPath,
        interface: &str,
        name: &str,
    ) -> Result<A, SystemdCause>
    where
        A: TryFrom<OwnedVariant, Error: ToString>,
    {
        let object = RemoteObject {
            path: path.as_str(),
            interface,
            ..MANAGER
        };
        self.request(|bus| bus.property(object, name))
    }

    /// The state of a unit; an unknown one is `not-found`.
    pub fn unit(&self, name: &str) -> Result<UnitState, SystemdCause> {
        let path: OwnedObjectPath = self.call("LoadUnit", &(name,))?;
        let get = |property| self.property_of(&path, UNIT, property);
        Ok(UnitState {
            load: get("LoadState")?,
            active: get("ActiveState")?,
            sub: get("SubState")?,
        })
    }

    /// When the unit last became active, in milliseconds since the machine's boot; `None`: never.
    pub fn active_since(&self, name: &str) -> Result<Option<u64>, SystemdCause> {
        let microseconds: u64 = self.property(name, UNIT, "ActiveEnterTimestampMonotonic")?;
        Ok(Some(microseconds / 1000).filter(|since| *since > 0))
    }

    /// The names of all loaded units that match a glob.
    pub(super) fn names(&self, glob: &str) -> Result<Vec<String>, SystemdCause> {
        let units = self.units(glob)?;
        Ok(units.into_iter().map(|unit| unit.0).collect())
    }

    /// Whether a unit that matches a glob is being started or stopped, waits for that, or has a process: `ifup@.service` is active while
    /// ifup still works, and its process has exited then.
    pub(crate) fn is_busy(&self, glob: &str) -> Result<bool, SystemdCause> {
        const BUSY: [&str; 3] = ["activating", "deactivating", "reloading"];
        let units = self.units(glob)?;
        let mut units = units.iter();
        Ok(units.any(|unit| unit.7 != 0 || BUSY.contains(&unit.3.as_str()) || unit.4 == "running"))
    }

    fn units(&self, glob: &str) -> Result<Vec<ListedUnit>, SystemdCause> {
        self.call("ListUnitsByPatterns", &(Vec::<&str>::new(), vec![glob]))
    }
}

/// A row of `ListUnits`: name, description, load state, active state, sub state, followed unit, path, job (0: none), its kind
/// and path.
type ListedUnit = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

/// Connects, and subscribes: systemd sends signals to subscribers only.
fn connect() -> Result<SystemBus, BusError> {
    let bus = SystemBus::connect(CALL_LIMIT)?;
    bus.call::<_, ()>(MANAGER, "Subscribe", &())?;
    Ok(bus)
}

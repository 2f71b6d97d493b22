//! D-Bus calls to systemd's manager.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::zvariant::{DynamicType, Type as Signature};
use zbus::{OwnedObjectPath, OwnedVariant};

use crate::dbus::{self, Object};
use crate::model::text::duration;

const SERVICE: &str = "org.freedesktop.systemd1";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const MANAGER: Object<'_> = Object {
    service: SERVICE,
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};

/// How long systemd may take to answer one call.
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// How long to try for a new connection in place of a broken one, and how often.
const RECONNECT_LIMIT: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Why a call to systemd failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no system bus, or no systemd on it.
    #[error("systemd cannot be reached over D-Bus: {0}")]
    Unreachable(String),
    #[error("{what}: {why}")]
    Refused { what: String, why: String },
    /// systemd did not answer, or the job did not end, in time.
    #[error("{what}: no answer from systemd within {}", duration(*.limit))]
    TimedOut { what: String, limit: Duration },
    /// The unit is not in the expected state.
    #[error("{0}")]
    State(String),
}

impl Error {
    fn refused(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Refused {
            what: what.to_owned(),
            why: why.to_string(),
        }
    }
}

impl From<dbus::Error> for Error {
    fn from(error: dbus::Error) -> Self {
        match error {
            dbus::Error::Unreachable(why) => Self::Unreachable(why),
            dbus::Error::Refused { what, why } => Self::Refused { what, why },
            dbus::Error::TimedOut { what, limit } => Self::TimedOut { what, limit },
        }
    }
}

/// A connection to systemd's manager.
#[derive(Debug)]
pub struct Bus(RefCell<dbus::Bus>);

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
    pub fn connect() -> Result<Self, Error> {
        Ok(Self(RefCell::new(connect()?)))
    }

    /// Makes a call, and repeats it on a new connection if the old one broke: a driver's package may restart the bus.
    fn request<A>(
        &self,
        request: impl Fn(&dbus::Bus) -> Result<A, dbus::Error>,
    ) -> Result<A, Error> {
        let now = || request(&self.0.borrow());
        let answer = match now() {
            Err(dbus::Error::Unreachable(_)) => {
                self.reconnect()?;
                now()
            }
            answer => answer,
        };
        Ok(answer?)
    }

    /// Connects again. A restart of the bus takes a moment.
    fn reconnect(&self) -> Result<(), Error> {
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
    pub(crate) fn call<B, A>(&self, method: &str, body: &B) -> Result<A, Error>
    where
        B: Serialize + DynamicType,
        A: DeserializeOwned + Signature,
    {
        self.request(|bus| bus.call(MANAGER, method, body))
    }

    /// Starts a job, such as `StopUnit`, and waits for its end; returns systemd's result: `done`, `failed`, ….
    pub(crate) fn job<B>(&self, method: &str, body: &B, limit: Duration) -> Result<String, Error>
    where
        B: Serialize + DynamicType,
    {
        type Removed = (u32, OwnedObjectPath, String, String);
        let end_of =
            |job: &OwnedObjectPath, (_, path, _, result): Removed| (path == *job).then_some(result);
        self.request(|bus| bus.call_until(MANAGER, (method, body), "JobRemoved", limit, end_of))
    }

    /// The state of a unit; an unknown one is `not-found`.
    pub fn unit(&self, name: &str) -> Result<UnitState, Error> {
        let path: OwnedObjectPath = self.call("LoadUnit", &(name,))?;
        let get = |property: &str| {
            let value = self.value(&path, UNIT, property)?;
            String::try_from(value).map_err(|error| Error::refused(property, error))
        };
        Ok(UnitState {
            load: get("LoadState")?,
            active: get("ActiveState")?,
            sub: get("SubState")?,
        })
    }

    /// A property of a unit.
    pub(crate) fn value(
        &self,
        path: &OwnedObjectPath,
        interface: &str,
        name: &str,
    ) -> Result<OwnedVariant, Error> {
        let object = Object {
            path: path.as_str(),
            interface,
            ..MANAGER
        };
        self.request(|bus| bus.property(object, name))
    }

    /// When the unit last became active, in milliseconds since the machine's boot; `None`: never.
    pub fn active_since(&self, name: &str) -> Result<Option<u64>, Error> {
        const SINCE: &str = "ActiveEnterTimestampMonotonic";
        let path: OwnedObjectPath = self.call("LoadUnit", &(name,))?;
        let value = self.value(&path, UNIT, SINCE)?;
        let microseconds = u64::try_from(value).map_err(|error| Error::refused(SINCE, error))?;
        Ok(Some(microseconds / 1000).filter(|since| *since > 0))
    }

    /// The names of all loaded units that match a glob.
    pub(crate) fn names(&self, glob: &str) -> Result<Vec<String>, Error> {
        let rows = self.units(glob)?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Whether a unit that matches a glob is being started or stopped, or waits for that.
    pub(crate) fn is_busy(&self, glob: &str) -> Result<bool, Error> {
        const BUSY: [&str; 3] = ["activating", "deactivating", "reloading"];
        let rows = self.units(glob)?;
        let is_busy = |row: &Unit| row.7 != 0 || BUSY.contains(&row.3.as_str());
        Ok(rows.iter().any(is_busy))
    }

    fn units(&self, glob: &str) -> Result<Vec<Unit>, Error> {
        self.call("ListUnitsByPatterns", &(Vec::<&str>::new(), vec![glob]))
    }
}

/// A row of `ListUnits`: name, description, load state, active state, sub state, followed unit, path, job (0: none), its kind
/// and path.
type Unit = (
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
fn connect() -> Result<dbus::Bus, dbus::Error> {
    let bus = dbus::Bus::connect(CALL_LIMIT)?;
    bus.call::<_, ()>(MANAGER, "Subscribe", &())?;
    Ok(bus)
}

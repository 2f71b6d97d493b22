//! D-Bus calls to systemd's manager.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use zbus::message::Type;
use zbus::zvariant::{DynamicType, Type as Signature};
use zbus::{Connection, MatchRule, MessageStream, OwnedObjectPath, OwnedVariant};

use crate::fault;
use crate::model::text::duration;

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const PATH: &str = "/org/freedesktop/systemd1";

/// How long systemd may take to answer one call.
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// How long to try for a new connection in place of a broken one, and how often.
const RECONNECT_LIMIT: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How many unread signals the connection holds.
const QUEUE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

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

/// A connection to systemd's manager.
#[derive(Debug)]
pub struct Bus {
    runtime: Runtime,
    connection: RefCell<Connection>,
}

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
        let unreachable = |error: &dyn ToString| Error::Unreachable(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| unreachable(&error))?;
        let connection = runtime
            .block_on(connect())
            .map_err(|error| unreachable(&error))?;
        Ok(Self {
            runtime,
            connection: RefCell::new(connection),
        })
    }

    /// Makes a call, and repeats it on a new connection if the old one broke: a driver's package may restart the bus.
    fn ask<A>(&self, ask: impl AsyncFn(Connection) -> Result<A, Error>) -> Result<A, Error> {
        let now = || self.runtime.block_on(ask(self.connection.borrow().clone()));
        match now() {
            Err(Error::Unreachable(_)) => {
                self.reconnect()?;
                now()
            }
            answer => answer,
        }
    }

    /// Connects again. A restart of the bus takes a moment.
    fn reconnect(&self) -> Result<(), Error> {
        let until = Instant::now() + RECONNECT_LIMIT;
        loop {
            match self.runtime.block_on(connect()) {
                Ok(connection) => {
                    *self.connection.borrow_mut() = connection;
                    return Ok(());
                }
                Err(error) if Instant::now() >= until => return Err(error),
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
        self.ask(async |connection| call(&connection, PATH, MANAGER, method, body).await)
    }

    /// Starts a job, such as `StopUnit`, and waits for its end; returns systemd's result: `done`, `failed`, ….
    pub(crate) fn job<B>(&self, method: &str, body: &B, limit: Duration) -> Result<String, Error>
    where
        B: Serialize + DynamicType,
    {
        self.ask(async |connection| {
            let listen = async {
                MessageStream::for_match_rule(removals()?, &connection, Some(QUEUE)).await
            };
            let mut removed = listen.await.map_err(|error| failed(method, &error))?;
            let job: OwnedObjectPath = call(&connection, PATH, MANAGER, method, body).await?;
            let end = async {
                while let Some(message) = removed.next().await {
                    let message = message.map_err(|error| failed(method, &error))?;
                    let body = message.body();
                    let told: Result<(u32, OwnedObjectPath, String, String), _> =
                        body.deserialize();
                    if let Ok((_, path, _, result)) = told
                        && path == job
                    {
                        return Ok(result);
                    }
                }
                Err(Error::Unreachable("the connection ended".to_owned()))
            };
            let timed_out = |_| Error::TimedOut {
                what: method.to_owned(),
                limit,
            };
            tokio::time::timeout(limit, end).await.map_err(timed_out)?
        })
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
        const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
        let body = (interface, name);
        self.ask(async |connection| {
            call(&connection, path.as_str(), PROPERTIES, "Get", &body).await
        })
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
        type Row = (
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
        let rows: Vec<Row> = self.call("ListUnitsByPatterns", &(Vec::<&str>::new(), vec![glob]))?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

/// The signals for the end of jobs.
fn removals() -> zbus::Result<MatchRule<'static>> {
    let rule = MatchRule::builder().msg_type(Type::Signal);
    rule.interface(MANAGER)
        .member("JobRemoved")
        .path(PATH)
        .build()
}

async fn call<B, A>(
    connection: &Connection,
    path: &str,
    interface: &str,
    method: &str,
    body: &B,
) -> Result<A, Error>
where
    B: Serialize + DynamicType,
    A: DeserializeOwned + Signature,
{
    let broken = |error: std::io::Error| failed(method, &error.into());
    fault::point("dbus call").map_err(broken)?;
    let call = connection.call_method(Some(SERVICE), path, Some(interface), method, body);
    let timed_out = |_| Error::TimedOut {
        what: method.to_owned(),
        limit: CALL_LIMIT,
    };
    let reply = tokio::time::timeout(CALL_LIMIT, call)
        .await
        .map_err(timed_out)?;
    let reply = reply.map_err(|error| failed(method, &error))?;
    reply
        .body()
        .deserialize()
        .map_err(|error| Error::refused(method, error))
}

/// A refusal, or the end of the connection.
fn failed(method: &str, error: &zbus::Error) -> Error {
    match error {
        zbus::Error::MethodError(name, Some(text), _) => {
            Error::refused(method, format!("{text} ({})", name.as_str()))
        }
        zbus::Error::InputOutput(error) => Error::Unreachable(error.to_string()),
        other => Error::refused(method, other),
    }
}

/// Connects, and subscribes: systemd sends signals to subscribers only.
async fn connect() -> Result<Connection, Error> {
    let unreachable = |error: &dyn ToString| Error::Unreachable(error.to_string());
    fault::point("dbus connect").map_err(|error| unreachable(&error))?;
    let connected = tokio::time::timeout(CALL_LIMIT, Connection::system()).await;
    let connection = connected
        .map_err(|_| unreachable(&"no answer"))?
        .map_err(|error| unreachable(&error))?;
    call::<_, ()>(&connection, PATH, MANAGER, "Subscribe", &()).await?;
    Ok(connection)
}

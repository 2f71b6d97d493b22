//! D-Bus calls to network managers, each with a short limit: a manager that hangs must not hold up a restore.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use zbus::Connection;
use zbus::zvariant::{DynamicType, Type};

use crate::model::text::duration;

/// How long one call may take.
const CALL_LIMIT: Duration = Duration::from_secs(3);
const DBUS: &str = "org.freedesktop.DBus";

/// A connection to the system bus.
#[derive(Debug)]
pub(super) struct Bus {
    runtime: Runtime,
    connection: Connection,
}

/// A method of an object.
pub(super) struct Method<'a> {
    pub service: &'a str,
    pub path: &'a str,
    pub interface: &'a str,
    pub name: &'a str,
}

impl Bus {
    pub(super) fn connect() -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let connection = runtime
            .block_on(async { tokio::time::timeout(CALL_LIMIT, Connection::system()).await })
            .map_err(|_| no_answer(CALL_LIMIT))?
            .map_err(|error| error.to_string())?;
        Ok(Self {
            runtime,
            connection,
        })
    }

    /// Whether a service runs; a call to one that does not could start it.
    pub(super) fn has_owner(&self, service: &str) -> Result<bool, String> {
        let method = Method {
            service: DBUS,
            path: "/org/freedesktop/DBus",
            interface: DBUS,
            name: "NameHasOwner",
        };
        self.call(&method, &(service,))
    }

    /// Calls a method.
    pub(super) fn call<B, A>(&self, method: &Method<'_>, body: &B) -> Result<A, String>
    where
        B: Serialize + DynamicType,
        A: DeserializeOwned + Type,
    {
        let Method {
            service,
            path,
            interface,
            name,
        } = *method;
        let call = async {
            let call =
                self.connection
                    .call_method(Some(service), path, Some(interface), name, body);
            tokio::time::timeout(CALL_LIMIT, call).await
        };
        let reply = self
            .runtime
            .block_on(call)
            .map_err(|_| format!("{name}: {}", no_answer(CALL_LIMIT)))?
            .map_err(|error| format!("{name}: {error}"))?;
        let answer = reply.body().deserialize();
        answer.map_err(|error| format!("{name}: {error}"))
    }
}

/// The reason of a failure for want of time.
pub(super) fn no_answer(limit: Duration) -> String {
    format!("no answer within {}", duration(limit))
}

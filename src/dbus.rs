//! Blocking calls on the system bus, each with a limit.

use std::num::NonZeroUsize;
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use zbus::message::Type;
use zbus::zvariant::{DynamicType, Type as Signature};
use zbus::{Connection, DBusError, MatchRule, Message, MessageStream, OwnedVariant};

use crate::fault;
use crate::model::text::duration;

/// The interface of every object with properties.
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// With these errors the bus answers in place of a service that is not on it, or has just left it
/// (D-Bus specification, "Message Bus Errors").
const GONE: [&str; 4] = [
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.ServiceUnknown",
];

/// How many unread signals a connection holds. While a driver is loaded, systemd sends many, and a full queue holds up the answers
/// to calls too.
const QUEUE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BusError {
    /// There is no bus, or no such service on it.
    #[error("{0}")]
    Unreachable(String),
    #[error("{call}: {why}")]
    Refused { call: String, why: String },
    #[error("{call}: {}", no_answer(*.limit))]
    TimedOut { call: String, limit: Duration },
}

/// The reason of a failure for want of time.
pub(crate) fn no_answer(limit: Duration) -> String {
    format!("no answer within {}", duration(limit))
}

impl BusError {
    fn refused(call: &str, why: &impl ToString) -> Self {
        Self::Refused {
            call: call.to_owned(),
            why: why.to_string(),
        }
    }

    /// A refusal of the service, or the end of its connection or of this one.
    fn failed(call: &str, error: &zbus::Error) -> Self {
        let (name, text) = match error {
            zbus::Error::MethodError(name, text, _) => (name.as_ref(), text.as_deref()),
            zbus::Error::FDO(error) => (error.name(), error.description()),
            zbus::Error::InputOutput(error) => return Self::Unreachable(error.to_string()),
            other => return Self::refused(call, other),
        };
        match text {
            _ if GONE.contains(&name.as_str()) => {
                Self::Unreachable(text.unwrap_or_else(|| name.as_str()).to_owned())
            }
            Some(text) => Self::refused(call, &format!("{text} ({name})")),
            None => Self::refused(call, &name),
        }
    }
}

/// An interface of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemoteObject<'a> {
    pub service: &'a str,
    pub path: &'a str,
    pub interface: &'a str,
}

/// A connection to the system bus.
#[derive(Debug)]
pub(crate) struct SystemBus {
    runtime: Runtime,
    connection: Connection,
    /// How long one call may take.
    limit: Duration,
}

impl SystemBus {
    pub(crate) fn connect(limit: Duration) -> Result<Self, BusError> {
        fault::point("dbus connect").map_err(|error| BusError::Unreachable(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| BusError::Unreachable(error.to_string()))?;
        let connect = async { tokio::time::timeout(limit, Connection::system()).await };
        let connection = runtime
            .block_on(connect)
            .map_err(|_| BusError::Unreachable(no_answer(limit)))?
            .map_err(|error| BusError::Unreachable(error.to_string()))?;
        Ok(Self {
            runtime,
            connection,
            limit,
        })
    }

    /// Calls a method.
    pub(crate) fn call<B, A>(
        &self,
        object: RemoteObject<'_>,
        method: &str,
        body: &B,
    ) -> Result<A, BusError>
    where
        B: Serialize + DynamicType,
        A: DeserializeOwned + Signature,
    {
        let reply = self.runtime.block_on(self.send(object, method, body))?;
        read(&reply, method)
    }

    /// A property of an object.
    pub(crate) fn property<A>(&self, object: RemoteObject<'_>, name: &str) -> Result<A, BusError>
    where
        A: TryFrom<OwnedVariant, Error: ToString>,
    {
        let properties = RemoteObject {
            interface: PROPERTIES,
            ..object
        };
        let value: OwnedVariant = self.call(properties, "Get", &(object.interface, name))?;
        A::try_from(value).map_err(|error| BusError::refused(name, &error))
    }

    /// Whether a service runs; a call to one that does not could start it.
    pub(crate) fn has_owner(&self, service: &str) -> Result<bool, BusError> {
        let bus = RemoteObject {
            service: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
        };
        self.call(bus, "NameHasOwner", &(service,))
    }

    /// Calls a method, and waits for a signal of the same object that `is_end` accepts.
    pub(crate) fn call_until<B, A, S, R>(
        &self,
        object: RemoteObject<'_>,
        (method, body): (&str, &B),
        signal: &str,
        limit: Duration,
        is_end: impl Fn(&A, S) -> Option<R>,
    ) -> Result<R, BusError>
    where
        B: Serialize + DynamicType,
        A: DeserializeOwned + Signature,
        S: DeserializeOwned + Signature,
    {
        self.runtime.block_on(async {
            let listen = async {
                let rule = MatchRule::builder()
                    .msg_type(Type::Signal)
                    .interface(object.interface)
                    .member(signal)
                    .path(object.path);
                MessageStream::for_match_rule(rule.build()?, &self.connection, Some(QUEUE)).await
            };
            let failed = |error| BusError::failed(method, &error);
            let mut signals = listen.await.map_err(failed)?;
            let answer = read(&self.send(object, method, body).await?, method)?;
            let end = async {
                while let Some(message) = signals.next().await {
                    let body = message.map_err(failed)?.body().deserialize();
                    if let Some(end) = body.ok().and_then(|body| is_end(&answer, body)) {
                        return Ok(end);
                    }
                }
                Err(BusError::Unreachable("the connection ended".to_owned()))
            };
            tokio::time::timeout(limit, end)
                .await
                .map_err(|_| BusError::TimedOut {
                    call: method.to_owned(),
                    limit,
                })?
        })
    }

    async fn send<B>(
        &self,
        object: RemoteObject<'_>,
        method: &str,
        body: &B,
    ) -> Result<Message, BusError>
    where
        B: Serialize + DynamicType,
    {
        let failed = |error| BusError::failed(method, &error);
        fault::point("dbus call").map_err(|error| failed(error.into()))?;
        let RemoteObject {
            service,
            path,
            interface,
        } = object;
        let connection = &self.connection;
        let call = connection.call_method(Some(service), path, Some(interface), method, body);
        tokio::time::timeout(self.limit, call)
            .await
            .map_err(|_| BusError::TimedOut {
                call: method.to_owned(),
                limit: self.limit,
            })?
            .map_err(failed)
    }
}

fn read<A: DeserializeOwned + Signature>(reply: &Message, method: &str) -> Result<A, BusError> {
    let answer = reply.body().deserialize();
    answer.map_err(|error| BusError::refused(method, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_leaves_the_bus_is_unreachable_and_one_that_refuses_is_not() {
        let call = Message::method_call("/", "Get").build(&()).unwrap();
        // As a reply from the bus is read.
        let of = |name: &str| {
            let reply = Message::error(&call.header(), name);
            let error = zbus::Error::from(reply.build(&"why").unwrap());
            BusError::failed("Get", &error)
        };
        // A restart of the bus ends systemd's connection before this one.
        for name in GONE {
            assert!(matches!(of(name), BusError::Unreachable(why) if why == "why"));
        }
        for name in [
            "org.freedesktop.DBus.Error.AccessDenied",
            "org.freedesktop.systemd1.NoSuchUnit",
        ] {
            assert_eq!(of(name).to_string(), format!("Get: why ({name})"));
        }
    }
}

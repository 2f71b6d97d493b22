//! gRPC's unary call over HTTP/2 on a Unix socket, as CRI uses it: no TLS, no compression, no streams.
//!
//! The protocol: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::error::Error;
use std::fmt;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderMap, TE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode_str;
use prost::Message;
use tokio::net::UnixStream;

use super::call::cause;
use super::http::bounded;

/// Before each message: one byte for compression, four for the length.
const PREFIX: usize = 5;

/// The codes of <https://grpc.io/docs/guides/status-codes/>, each at its number.
const CODES: [&str; 17] = [
    "Ok",
    "Cancelled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
const OK: usize = 0;
/// The server has no such object.
pub(super) const NOT_FOUND: usize = 5;
/// The server does not offer the method.
pub(super) const UNIMPLEMENTED: usize = 12;

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum GrpcError {
    /// The server's status, an index of [`CODES`], and its message.
    Status(usize, String),
    /// The errno or error of the connection, or an answer that is not gRPC.
    Broken(String),
}

impl fmt::Display for GrpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code, message) => {
                let code = CODES.get(*code).unwrap_or(&"Unknown");
                write!(f, "{code}: {message}")
            }
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl GrpcError {
    fn by(error: &(dyn Error + 'static)) -> Self {
        Self::Broken(cause(error))
    }
}

/// A connection; its copies share it.
#[derive(Debug, Clone)]
pub(super) struct Channel(SendRequest<Full<Bytes>>);

impl Channel {
    /// Connects; the tokio runtime keeps the connection going.
    pub async fn connect(socket: &str) -> Result<Self, String> {
        let stream = UnixStream::connect(socket)
            .await
            .map_err(|error| cause(&error))?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| cause(&error))?;
        // Each pending call returns the connection's error too.
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// One call of `path`, which is `/SERVICE/METHOD`.
    pub async fn unary<A: Message + Default>(
        &self,
        path: &str,
        question: &impl Message,
    ) -> Result<A, GrpcError> {
        let request = Request::post(format!("http://localhost{path}"))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(Full::new(framed(question)))
            .map_err(|error| GrpcError::by(&error))?;
        let mut sender = self.0.clone();
        sender
            .ready()
            .await
            .map_err(|error| GrpcError::by(&error))?;
        let response = sender.send_request(request).await;
        answer(response.map_err(|error| GrpcError::by(&error))?).await
    }
}

async fn answer<A: Message + Default>(response: Response<Incoming>) -> Result<A, GrpcError> {
    if response.status() != StatusCode::OK {
        return Err(GrpcError::Broken(format!("HTTP {}", response.status())));
    }
    let (head, body) = response.into_parts();
    let body = bounded(body).await;
    let body = body.map_err(|error| GrpcError::by(error.as_ref()))?;
    // A call that fails at once has its status in the head and no trailers.
    check(body.trailers().unwrap_or(&head.headers))?;
    unframed(&body.to_bytes())
}

fn check(headers: &HeaderMap) -> Result<(), GrpcError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").and_then(|status| status.parse().ok()) {
        Some(OK) => Ok(()),
        Some(status) => {
            // Some bytes are written as `%41`.
            let message = percent_decode_str(text("grpc-message").unwrap_or_default());
            let message = message.decode_utf8_lossy().into_owned();
            Err(GrpcError::Status(status, message))
        }
        None => Err(GrpcError::Broken(
            "the answer has no grpc-status".to_owned(),
        )),
    }
}

/// The message behind its prefix.
fn framed(message: &impl Message) -> Bytes {
    let length = u32::try_from(message.encoded_len()).unwrap_or(u32::MAX);
    let mut frame = vec![0];
    frame.extend(length.to_be_bytes());
    frame.extend(message.encode_to_vec());
    frame.into()
}

/// The one message of a body.
pub(super) fn unframed<A: Message + Default>(body: &[u8]) -> Result<A, GrpcError> {
    let broken = |why: &str| GrpcError::Broken(format!("the answer is no gRPC message: {why}"));
    let Some(([compressed, length @ ..], message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(broken("it is empty"));
    };
    if *compressed != 0 {
        return Err(broken("it is compressed"));
    }
    if usize::try_from(u32::from_be_bytes(*length)) != Ok(message.len()) {
        return Err(broken("its length is wrong"));
    }
    A::decode(message).map_err(|error| broken(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cri_api::VersionRequest;

    #[test]
    fn a_body_that_is_no_message_is_refused() {
        let bodies: [&[u8]; 4] = [
            b"",
            b"<html>",
            &[1, 0, 0, 0, 1, 0],
            &[0, 0, 0, 0, 2, 0x0a, 9],
        ];
        for body in bodies {
            let refused = unframed::<VersionRequest>(body).unwrap_err().to_string();
            assert!(
                refused.starts_with("the answer is no gRPC message"),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_status_is_shown_by_name_and_message() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                let value = value.parse().unwrap();
                (hyper::header::HeaderName::from_static(name), value)
            });
            pairs.collect::<HeaderMap>()
        };
        let refused = |pairs: &[_]| check(&headers(pairs)).map_err(|error| error.to_string());
        assert_eq!(refused(&[("grpc-status", "0")]), Ok(()));
        let failed = [("grpc-status", "13"), ("grpc-message", "disk%20on fire%")];
        assert_eq!(refused(&failed), Err("Internal: disk on fire%".to_owned()));
        let unknown = [("grpc-status", "99")];
        assert_eq!(refused(&unknown), Err("Unknown: ".to_owned()));
        let none = "the answer has no grpc-status";
        assert_eq!(refused(&[]), Err(none.to_owned()));
    }
}

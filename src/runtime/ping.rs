//! Who answers on a socket of Docker's API.
//!
//! `/_ping` tells at once. `/version` does not: podman looks up the packages of its helpers for it, which takes seconds
//! where the disk is slow or the files are not in memory.

use std::error::Error;
use std::pin::pin;

use futures_util::future::{Either, select};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, SERVER};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// What an engine calls itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub name: String,
    pub version: String,
}

/// Asks who is there.
///
/// # Errors
/// When nobody answers, or not as Docker's API does.
pub(super) async fn product(socket: &str) -> Result<Product, Box<dyn Error + Send + Sync>> {
    let stream = TokioIo::new(UnixStream::connect(socket).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let request = Request::get("/_ping").header(HOST, "localhost").body(Empty::<Bytes>::new())?;
    // The connection carries the answer, and does not end before it.
    let (answer, connection) = (pin!(sender.send_request(request)), pin!(connection));
    let response = match select(answer, connection).await {
        Either::Left((response, _)) => response?,
        Either::Right((ended, answer)) => {
            ended?;
            answer.await?
        }
    };
    if response.status() != StatusCode::OK {
        return Err(format!("the answer is {}", response.status()).into());
    }
    named(&response).ok_or_else(|| "the answer does not say from whom it is".into())
}

/// The first word of the header `Server`, as in `Docker/20.10.24 (linux)` or `Libpod/4.3.1 (linux)`.
fn named<T>(response: &Response<T>) -> Option<Product> {
    let server = response.headers().get(SERVER)?.to_str().ok()?;
    let (name, version) = server.split_whitespace().next()?.split_once('/')?;
    Some(Product { name: name.to_owned(), version: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product_of(server: &str) -> Option<(String, String)> {
        let response = Response::builder().header(SERVER, server).body(()).unwrap();
        named(&response).map(|Product { name, version }| (name, version))
    }

    #[test]
    fn engines_name_themselves_in_the_header_of_their_answer() {
        let told = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(product_of("Docker/20.10.24+dfsg1 (linux)"), told("Docker", "20.10.24+dfsg1"));
        assert_eq!(product_of("Libpod/4.3.1 (linux)"), told("Libpod", "4.3.1"));
    }

    #[test]
    fn a_server_without_a_version_is_no_engine() {
        for server in ["", "nginx", " (linux)"] {
            assert_eq!(product_of(server), None, "{server:?}");
        }
        assert_eq!(named(&Response::new(())), None);
    }
}

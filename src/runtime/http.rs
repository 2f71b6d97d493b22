//! One GET of a Unix socket, for Docker's API, and the body of any runtime's answer, of bounded size.

use std::error::Error;
use std::pin::pin;

use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Collected, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// Any failure between the socket and the body.
pub(super) type Failed = Box<dyn Error + Send + Sync>;

/// The largest body that is read, in bytes: kubelet's limit for a message of CRI, and the message's prefix.
const MAX_BODY: usize = (16 << 20) + 5;

/// Requests `target` on a connection of its own. An HTTP status is no error, a body that is too large is.
pub(super) async fn get(socket: &str, target: &str) -> Result<Response<Bytes>, Failed> {
    let stream = TokioIo::new(UnixStream::connect(socket).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let request = Request::get(target)
        .header(HOST, "localhost")
        .body(Empty::<Bytes>::new())?;
    let answer = async move { whole(sender.send_request(request).await?).await };
    // The connection moves the bytes: it is polled until the answer is complete.
    match select(pin!(answer), pin!(connection)).await {
        Either::Left((response, _)) => response,
        Either::Right((ended, answer)) => {
            ended?;
            answer.await
        }
    }
}

async fn whole(response: Response<Incoming>) -> Result<Response<Bytes>, Failed> {
    let (head, body) = response.into_parts();
    let body = bounded(body).await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// The whole body and its trailers.
///
/// # Errors
/// It is too large, or the connection ended.
pub(super) async fn bounded(body: Incoming) -> Result<Collected<Bytes>, Failed> {
    Limited::new(body, MAX_BODY).collect().await
}

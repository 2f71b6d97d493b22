//! One GET of a Unix socket, for Docker's API.

use std::pin::pin;

use futures_util::future::{Either, select};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::body::{Failed, bounded};

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

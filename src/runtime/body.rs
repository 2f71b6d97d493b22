//! The body of a runtime's answer, of bounded size.

use std::error::Error;

use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::{Bytes, Incoming};

/// Any failure between the socket and the body.
pub(super) type Failed = Box<dyn Error + Send + Sync>;

/// The largest body that is read, in bytes: kubelet's limit for a message of CRI, and the message's prefix.
const MAX_BODY: usize = (16 << 20) + 5;

/// The whole body and its trailers.
///
/// # Errors
/// It is too large, or the connection ended.
pub(super) async fn bounded(body: Incoming) -> Result<Collected<Bytes>, Failed> {
    Limited::new(body, MAX_BODY).collect().await
}

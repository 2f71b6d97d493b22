//! Waiting for link events of the host's namespace, instead of asking again and again.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rtnetlink::{MulticastGroup, new_multicast_connection};

use super::Error;

/// Calls `ready` now and after every link event of the calling thread's namespace, until it says yes.
///
/// Returns whether it did before `limit` was over. The subscription is made before the first call, so no
/// event between the two is missed.
///
/// # Errors
/// When the kernel refuses the subscription, or `ready` fails.
pub fn wait_for_link<E: From<Error>>(
    limit: Duration,
    mut ready: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let deadline = Instant::now() + limit;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map_err(Error::from)?.block_on(async {
        let (connection, _handle, mut events) =
            new_multicast_connection(&[MulticastGroup::Link]).map_err(Error::from)?;
        tokio::spawn(connection);
        loop {
            if ready()? {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, events.next()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err(E::from(Error::Decode("the event stream ended".to_owned()))),
                Err(_) => return ready(),
            }
        }
    })
}

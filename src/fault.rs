//! Failure points: where a test can make the program die, or one call fail, at any instant.
//!
//! They exist with the feature `failpoints` only; without it [`point`] is nothing. With it, the environment has what
//! happens: `NETFIX_FAILPOINT=NUMBER:ACTION` makes the process die at the point of that number (`kill`), its thread panic
//! there if that is a thread inside a pod (`panic`), or the call there fail once (`EAGAIN`, `ENOMEM`, `EBUSY`, `EINTR`,
//! `ENOBUFS`, `ENOSPC`, `EIO`); `NETFIX_FAILPOINT_LOG=FILE` gets a line a
//! point: its number and name, and the action where it was carried out.

use std::io;

/// Somewhere a call into the kernel, to the disk or to systemd is about to be made. `what` names the sort of call.
///
/// # Errors
/// The errno that the test has set at this point.
#[inline]
#[cfg_attr(
    not(feature = "failpoints"),
    allow(
        clippy::missing_const_for_fn,
        clippy::unnecessary_wraps,
        reason = "it does something with the feature"
    )
)]
pub fn point(what: &'static str) -> io::Result<()> {
    #[cfg(feature = "failpoints")]
    armed::point(what)?;
    let _ = what;
    Ok(())
}

/// Makes a call, and repeats it while signals interrupt it. Its point is part of the call.
///
/// # Errors
/// Those of the call, except `EINTR`.
pub fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::env;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::thread;

    use nix::errno::Errno;
    use nix::sys::signal::{Signal, raise};

    #[derive(Clone, Copy, PartialEq)]
    enum Action {
        Kill,
        Panic,
        Fail(Errno),
    }

    struct Order {
        number: u64,
        action: Action,
    }

    struct Points {
        passed: u64,
        /// The text that is no order, where there is one.
        order: Result<Option<Order>, String>,
        log: io::Result<Option<File>>,
    }

    static POINTS: LazyLock<Mutex<Points>> =
        LazyLock::new(|| Mutex::new(Points::from_environment()));

    impl Points {
        fn from_environment() -> Self {
            let order = env::var("NETFIX_FAILPOINT")
                .ok()
                .map(|text| parse(&text).ok_or(text))
                .transpose();
            Self {
                passed: 0,
                order,
                log: env::var_os("NETFIX_FAILPOINT_LOG")
                    .map(|file| OpenOptions::new().create(true).append(true).open(file))
                    .transpose(),
            }
        }

        /// Counts and logs one point; returns what is to happen there.
        fn pass(&mut self, what: &str) -> io::Result<Option<Action>> {
            self.passed += 1;
            let order = self.order.as_ref().map_err(|text| {
                io::Error::other(format!(
                    "NETFIX_FAILPOINT={text} is not NUMBER:ACTION, see src/fault.rs"
                ))
            })?;
            let action = order
                .as_ref()
                .filter(|order| order.number == self.passed)
                .map(|order| order.action);
            let log = self
                .log
                .as_mut()
                .map_err(|error| io::Error::other(error.to_string()))?;
            if let Some(log) = log {
                let done = match action {
                    None => String::new(),
                    Some(Action::Kill) => ": kill".to_owned(),
                    Some(Action::Panic) => ": panic".to_owned(),
                    Some(Action::Fail(errno)) => format!(": {errno:?}"),
                };
                log.write_all(format!("{} {what}{done}\n", self.passed).as_bytes())?;
            }
            Ok(action)
        }
    }

    fn parse(text: &str) -> Option<Order> {
        let (number, action) = text.split_once(':')?;
        let action = match action {
            "kill" => Action::Kill,
            "panic" => Action::Panic,
            "EAGAIN" => Action::Fail(Errno::EAGAIN),
            "ENOMEM" => Action::Fail(Errno::ENOMEM),
            "EBUSY" => Action::Fail(Errno::EBUSY),
            "EINTR" => Action::Fail(Errno::EINTR),
            "ENOBUFS" => Action::Fail(Errno::ENOBUFS),
            "ENOSPC" => Action::Fail(Errno::ENOSPC),
            "EIO" => Action::Fail(Errno::EIO),
            _ => return None,
        };
        Some(Order {
            number: number.parse().ok()?,
            action,
        })
    }

    pub(super) fn point(what: &str) -> io::Result<()> {
        match POINTS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pass(what)?
        {
            // The main thread has a name.
            Some(Action::Panic) if thread::current().name().is_none() => {
                panic!("NETFIX_FAILPOINT")
            }
            None | Some(Action::Panic) => Ok(()),
            Some(Action::Fail(errno)) => Err(errno.into()),
            // The signal needs no return to take effect.
            Some(Action::Kill) => Err(raise(Signal::SIGKILL).err().unwrap_or(Errno::EIO).into()),
        }
    }
}

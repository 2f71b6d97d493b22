//! Why the kernel did not do something, with its errno.

use std::any::Any;
use std::io;

use nix::errno::Errno;

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The kernel's answer.
    #[error("{0}")]
    Kernel(Errno),
    /// The kernel's answer with its reason in words (`NLMSGERR_ATTR_MSG`).
    #[error("{words} ({errno})")]
    Refused {
        /// The errno.
        errno: Errno,
        /// The words.
        words: String,
    },
    /// The kernel's answer could not be decoded.
    #[error("the kernel's answer cannot be decoded: {0}")]
    Decode(String),
    /// The time for it is over, see [`Socket::limit`](super::Socket::limit).
    #[error("the time for it is over")]
    Late,
    /// A table has more entries than are read, see [`Socket::read_at_most`](super::Socket::read_at_most).
    #[error("a table has more than {0} entries")]
    TooMany(usize),
    /// The tables changed during every attempt to read them.
    #[error("the tables kept changing while they were read (NLM_F_DUMP_INTR)")]
    Raced,
    /// netfix itself is wrong: the text of a panic.
    #[error("internal error of netfix: {0}")]
    Panic(String),
}

impl Error {
    /// What a thread left that panicked.
    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        const MOST: usize = 200;
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panic(text.unwrap_or("panic").chars().take(MOST).collect())
    }

    /// The errno, where the kernel gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel(errno) | Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Kernel(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }
}

/// Why a setting was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", words.as_deref().unwrap_or_else(|| errno.desc()))]
pub struct SetError {
    /// The errno.
    pub errno: Errno,
    /// The kernel's explanation.
    pub words: Option<String>,
}

impl From<Errno> for SetError {
    fn from(errno: Errno) -> Self {
        Self { errno, words: None }
    }
}

impl From<SetError> for Error {
    fn from(SetError { errno, words }: SetError) -> Self {
        match words {
            Some(words) => Self::Refused { errno, words },
            None => Self::Kernel(errno),
        }
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// The errno in an answer of netlink, which has it negated.
pub(super) fn errno(code: i32) -> Errno {
    Errno::from_raw(code.saturating_neg())
}

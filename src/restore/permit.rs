//! The right to change the host and the pods.

use std::marker::PhantomData;

use crate::store::Guard;

/// Why the host and the pods may be changed. Everything that changes them takes this as a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Permit<'lock> {
    /// The lock of the state directory is held.
    Locked(PhantomData<&'lock Guard>),
    /// There is no state directory, so there is no lock: a restore from libcni's cache needs none.
    NoStateDirectory,
    /// An open window released the lock for `netfix resume`, and could not take it again. Its pods are restored anyway.
    LockNotRegained,
    /// A rehearsal, in namespaces that it created and nobody else can reach. Nothing is logged, nothing outside of namespaces is
    /// changed, and no address is probed.
    Rehearsal,
    /// A benchmark, in namespaces that it created.
    #[cfg(feature = "engine")]
    Benchmark,
}

impl<'lock> Permit<'lock> {
    /// The permit of the lock's holder.
    pub(crate) fn locked(_: &'lock Guard) -> Self {
        Self::Locked(PhantomData)
    }

    /// Whether a network that is in use is changed.
    pub(crate) fn is_in_earnest(self) -> bool {
        !matches!(self, Self::Rehearsal)
    }

    /// The permit of an open window, with the lock that it has.
    pub(crate) fn of_window(guard: Option<&'lock Guard>) -> Self {
        guard.map_or(Self::LockNotRegained, Self::locked)
    }
}

//! The right to change the host and the pods.

use std::marker::PhantomData;

use crate::store::Guard;

/// Why the host and the pods may be changed. What changes them takes it as a parameter, so it cannot be reached without.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Permit<'lock> {
    /// The lock of the state directory is held.
    Locked(PhantomData<&'lock Guard>),
    /// There is no state directory, and no lock in it: a restore from libcni's cache needs none.
    NoStateDirectory,
    /// An open window gave the lock away for `netfix resume`, and could not take it again. Its pods get their network all the
    /// same.
    LockNotRegained,
    /// A benchmark, in namespaces that it made.
    #[cfg(feature = "engine")]
    Benchmark,
}

impl<'lock> Permit<'lock> {
    /// The permit of the lock's holder.
    pub(crate) fn locked(_: &'lock Guard) -> Self {
        Self::Locked(PhantomData)
    }
}

//! Settings of links that are no attributes of a link message: `/proc/sys/net`, sysfs, and the dumps that have the same values.

pub(crate) mod devconf;
pub(crate) mod files;
pub(in crate::kernel) mod module;
pub(crate) mod ntable;
pub mod sysctl;
pub mod sysfs;

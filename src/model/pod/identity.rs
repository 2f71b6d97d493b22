//! Identities of machines, boots, network namespaces and pods. A name, a path or a pid is not an identity.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Bytes;
use crate::model::text::Invalid;

/// The machine and the boot that a file was written on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// `/etc/machine-id`; `None` where the machine has none.
    pub machine_id: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// The host name, for display only; never compared.
    pub hostname: Option<String>,
}

impl NodeIdentity {
    /// Whether both are the same boot of the same machine; `false` when unknown.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.machine_id == other.machine_id
            && self.boot_id.is_some()
            && self.boot_id == other.boot_id
    }
}

/// The process through which a namespace was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)).
    pub start_time: u64,
}

/// The identity of a network namespace within a boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsIdentity {
    /// `SO_NETNS_COOKIE` (Linux 5.14): unique within a boot.
    pub cookie: Option<u64>,
    /// Device number of the nsfs file.
    pub device: u64,
    /// Inode of the nsfs file: the kernel reuses it once the namespace is gone.
    pub inode: u64,
    /// When the nsfs inode was created, in microseconds since 1970, if the namespace is mounted: the mount prevents reuse of
    /// the inode.
    #[serde(default)]
    pub made: Option<i64>,
    /// The oldest process in the namespace, if there is one.
    pub holder: Option<Holder>,
}

impl NetnsIdentity {
    /// Whether both can be the same namespace: by their cookies or, where the kernel has none, by device and inode. This is
    /// no proof, because the kernel reuses inodes.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        if let (Some(mine), Some(theirs)) = (self.cookie, other.cookie) {
            return mine == theirs;
        }
        self.device == other.device && self.inode == other.inode
    }

    /// At least one of them is among those of each identity that may be of the same namespace.
    pub(crate) fn signs(&self) -> impl Iterator<Item = NetnsSign> {
        let cookie = self.cookie.map(NetnsSign::Cookie);
        cookie.into_iter().chain([NetnsSign::Inode(self.inode)])
    }

    /// Whether both are surely the same namespace: by cookie, by a mount that never went away, or by a process that still
    /// runs.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let proves_cookie = is_known(self.cookie, other.cookie);
        let proven =
            proves_cookie || is_known(self.made, other.made) || is_known(self.holder, other.holder);
        proven && self.may_be(other)
    }
}

/// What identities have in common that may be of one namespace ([`NetnsIdentity::may_be`]): by these they are found among many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NetnsSign {
    Cookie(u64),
    Inode(u64),
}

/// Whether both are known and the same.
fn is_known<T: Copy + PartialEq>(mine: Option<T>, theirs: Option<T>) -> bool {
    mine.is_some() && mine == theirs
}

/// The name of a pod's checkpoint file: 1 to 64 of `[A-Za-z0-9._-]`, not starting with a dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PodId(String);

const MAX_ID: usize = 64;

impl PodId {
    /// A safe id from any text: other characters become `_`.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let safe = text.chars().map(|c| {
            if c.is_ascii_alphanumeric() || ".-_".contains(c) {
                c
            } else {
                '_'
            }
        });
        let mut id: String = safe.take(MAX_ID).collect();
        if id.is_empty() || id.starts_with('.') {
            id.insert(0, '_');
            id.truncate(MAX_ID);
        }
        Self(id)
    }

    /// The same from any bytes: one that is not UTF-8 is named by its number.
    pub(crate) fn from_bytes(name: &Bytes) -> Self {
        let chunks = name.as_slice().utf8_chunks().map(|chunk| {
            let numbers = chunk.invalid().iter().map(|byte| format!("_x{byte:02x}"));
            chunk.valid().to_owned() + &numbers.collect::<String>()
        });
        Self::from_text(&chunks.collect::<String>())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PodId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        if Self::from_text(&text).0 == text {
            Ok(Self(text))
        } else {
            Err(Invalid::new(
                &text,
                "a pod id (1 to 64 of letters, digits, '.', '_' and '-')",
            ))
        }
    }
}

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::pod::identity::*;

    fn identity(cookie: Option<u64>, inode: u64) -> NetnsIdentity {
        NetnsIdentity {
            cookie,
            device: 4,
            inode,
            made: None,
            holder: None,
        }
    }

    #[test]
    fn identities_that_may_be_of_one_namespace_have_a_sign_in_common() {
        let all = [
            (None, 1),
            (Some(5), 1),
            (Some(5), 2),
            (Some(6), 2),
            (None, 2),
        ];
        let all = all.map(|(cookie, inode)| identity(cookie, inode));
        for one in &all {
            for other in &all {
                let is_found = one.signs().any(|sign| other.signs().any(|its| its == sign));
                assert!(is_found || !one.may_be(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn an_id_is_always_a_plain_file_name() {
        assert_eq!(
            PodId::from_text("../../etc/passwd").as_str(),
            "_.._.._etc_passwd"
        );
        assert_eq!(PodId::from_text("").as_str(), "_");
        assert!(PodId::try_from("..".to_owned()).is_err());
    }
}

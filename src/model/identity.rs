//! Who is who: machines, boots, network namespaces and pods. A name, a path or a pid is never an identity.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The machine and the boot that a file was written on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// `/etc/machine-id`; `None` where the machine has none.
    pub machine_id: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// The host name, for people only; never compared.
    pub hostname: Option<String>,
}

impl NodeIdentity {
    /// Whether both are the same boot of the same machine; unknown is never the same.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.machine_id == other.machine_id && self.boot_id.is_some() && self.boot_id == other.boot_id
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

/// What tells one network namespace from every other of the same boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsIdentity {
    /// `SO_NETNS_COOKIE` (Linux 5.14): never given twice within a boot.
    pub cookie: Option<u64>,
    /// Device number of the nsfs file.
    pub device: u64,
    /// Inode of the nsfs file: reused as soon as a namespace is gone.
    pub inode: u64,
    /// The oldest process in the namespace, if one lives there.
    pub holder: Option<Holder>,
}

impl NetnsIdentity {
    /// Whether both describe the same namespace: by cookie, or where the kernel has none, by device, inode
    /// and, if both know one, the process that held it.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        if let (Some(mine), Some(theirs)) = (self.cookie, other.cookie) {
            return mine == theirs;
        }
        let holder_differs = matches!((self.holder, other.holder), (Some(a), Some(b)) if a != b);
        self.device == other.device && self.inode == other.inode && !holder_differs
    }

    /// Whether that is beyond doubt: by cookie, or by the same living process. An inode alone is reused at once.
    #[must_use]
    pub fn is_surely(&self, other: &Self) -> bool {
        let same_holder = self.holder.is_some() && self.holder == other.holder;
        self.is_same(other) && (self.cookie.is_some() && self.cookie == other.cookie || same_holder)
    }
}

/// The name of a pod's checkpoint file: 1 to 64 of `[A-Za-z0-9._-]`, not starting with a dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PodId(String);

/// Why a text is not a pod id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a pod id (1 to 64 of letters, digits, '.', '_' and '-')")]
pub struct InvalidPodId(String);

const MAX_ID: usize = 64;

impl PodId {
    /// A safe id from any text: other characters become `_`.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
        let mut id: String = text.chars().map(safe).take(MAX_ID).collect();
        if id.is_empty() || id.starts_with('.') {
            id.insert(0, '_');
            id.truncate(MAX_ID);
        }
        Self(id)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PodId {
    type Error = InvalidPodId;

    fn try_from(text: String) -> Result<Self, InvalidPodId> {
        if Self::from_text(&text).0 == text { Ok(Self(text)) } else { Err(InvalidPodId(text)) }
    }
}

impl From<PodId> for String {
    fn from(id: PodId) -> Self {
        id.0
    }
}

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(cookie: Option<u64>, inode: u64, pid: Option<u32>) -> NetnsIdentity {
        let holder = pid.map(|pid| Holder { pid, start_time: 7 });
        NetnsIdentity { cookie, device: 4, inode, holder }
    }

    #[test]
    fn a_reused_inode_is_another_namespace_when_the_cookie_differs() {
        assert!(!identity(Some(1), 10, None).is_same(&identity(Some(2), 10, None)));
        assert!(identity(Some(1), 10, Some(5)).is_same(&identity(Some(1), 10, None)));
    }

    #[test]
    fn without_cookies_inode_and_holder_decide() {
        assert!(identity(None, 10, Some(5)).is_same(&identity(None, 10, Some(5))));
        assert!(!identity(None, 10, Some(5)).is_same(&identity(None, 10, Some(6))));
        assert!(!identity(None, 10, None).is_same(&identity(None, 11, None)));
    }

    #[test]
    fn an_id_is_always_a_plain_file_name() {
        assert_eq!(PodId::from_text("../../etc/passwd").as_str(), "_.._.._etc_passwd");
        assert_eq!(PodId::from_text("").as_str(), "_");
        assert!(PodId::try_from("..".to_owned()).is_err());
    }
}

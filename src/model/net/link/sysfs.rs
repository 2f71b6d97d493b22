//! Settings of a link that only `/sys/class/net/<interface>` has: packet steering and NAPI.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::text::Invalid;

/// The settings that are not the kernel's default, which is zero.
pub type SysfsSettings = BTreeMap<SysfsKey, SysfsValue>;

/// The path of a setting below `/sys/class/net/<interface>`: one of those in `OF_LINK` and `OF_QUEUE`, so that no
/// checkpoint can make netfix write to another file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SysfsKey(String);

/// A number or a mask of processors or queues: hexadecimal digits and commas.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SysfsValue(String);

/// Settings of a whole link (Documentation/ABI/testing/sysfs-class-net).
pub(crate) const OF_LINK: [&str; 3] = ["gro_flush_timeout", "napi_defer_hard_irqs", "threaded"];

/// Settings of a queue by the beginning of its folder's name (Documentation/networking/scaling.rst).
pub(crate) const OF_QUEUE: [(&str, [&str; 2]); 2] = [
    ("rx-", ["rps_cpus", "rps_flow_cnt"]),
    ("tx-", ["xps_cpus", "xps_rxqs"]),
];

impl TryFrom<String> for SysfsKey {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let of_queue = || {
            let (queue, setting) = text.strip_prefix("queues/")?.split_once('/')?;
            OF_QUEUE.iter().find(|(prefix, settings)| {
                queue.strip_prefix(prefix).is_some_and(is_number) && settings.contains(&setting)
            })
        };
        if OF_LINK.contains(&text.as_str()) || of_queue().is_some() {
            Ok(Self(text))
        } else {
            Err(Invalid::new(&text, "a setting in /sys/class/net"))
        }
    }
}

impl TryFrom<String> for SysfsValue {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b',') {
            Ok(Self(text))
        } else {
            Err(Invalid::new(&text, "a number or a mask"))
        }
    }
}

impl SysfsKey {
    /// The direction and the number of the queue to which it belongs.
    pub(crate) fn queue(&self) -> Option<(&str, u64)> {
        let (queue, _) = self.0.strip_prefix("queues/")?.split_once('/')?;
        let (direction, number) = queue.split_once('-')?;
        Some((direction, number.parse().ok()?))
    }
}

impl SysfsValue {
    /// Whether it is the value of a new link.
    pub(crate) fn is_default(&self) -> bool {
        self.0.bytes().all(|b| matches!(b, b'0' | b','))
    }

    /// As it is written to the file.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SysfsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SysfsValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::link::sysfs::*;

    #[test]
    fn a_key_is_one_of_the_known_files() {
        let is_key = |text: &str| SysfsKey::try_from(text.to_owned()).is_ok();
        for text in ["threaded", "queues/rx-0/rps_cpus", "queues/tx-12/xps_rxqs"] {
            assert!(is_key(text), "{text}");
        }
        for text in [
            "",
            "mtu",
            "queues/rx-0/xps_cpus",
            "queues/rx-/rps_cpus",
            "queues/rx-../rps_cpus",
            "queues/rx-0/../rps_cpus",
            "queues/rps_cpus",
            "../eth1/threaded",
        ] {
            assert!(!is_key(text), "{text}");
        }
    }

    #[test]
    fn a_value_is_a_number_or_a_mask() {
        let value = |text: &str| SysfsValue::try_from(text.to_owned());
        assert!(!value("00000000,00000003").unwrap().is_default());
        assert!(value("00000000,00000000").unwrap().is_default());
        assert!(value("").is_err());
        assert!(value("3\n4").is_err());
    }
}

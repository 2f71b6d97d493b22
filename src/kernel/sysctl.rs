//! Per-interface sysctls through `/proc/sys/net`, which shows the namespace of the calling thread.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::path::PathBuf;

use crate::model::IfName;
use crate::model::sysctl::{Family, Settings, SysctlKey, Sysctls};

/// The folder whose values a new interface starts with.
const DEFAULT: &str = "default";

fn folder(family: Family, dev: &str) -> PathBuf {
    ["/proc/sys/net", family.as_str(), "conf", dev].iter().collect()
}

/// Writes one setting of an interface of the calling thread's namespace.
///
/// # Errors
/// The errno of open(2) or write(2).
pub fn write(family: Family, dev: &IfName, key: &SysctlKey, value: &str) -> io::Result<()> {
    let path = folder(family, dev.as_str()).join(key.as_str());
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// The interface's secret for stable privacy addresses (RFC 7217), if one is set.
#[must_use]
pub fn stable_secret(dev: &IfName) -> Option<Ipv6Addr> {
    let path = folder(Family::Ipv6, dev.as_str()).join("stable_secret");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What a new interface of the calling thread's namespace starts with (`conf/default`).
///
/// # Errors
/// The errno of reading the folder; a single file that cannot be read is left out.
pub fn defaults() -> io::Result<Sysctls> {
    Ok(Sysctls { ipv4: read_all(Family::Ipv4)?, ipv6: read_all(Family::Ipv6)?, stable_secret: None })
}

fn read_all(family: Family) -> io::Result<Settings> {
    let mut settings = Settings::new();
    let folder = folder(family, DEFAULT);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(settings),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Ok(key) = SysctlKey::try_from(entry.file_name().to_string_lossy().into_owned()) else { continue };
        if let Some(value) = fs::read_to_string(entry.path()).ok().and_then(|text| text.trim().parse().ok()) {
            settings.insert(key, value);
        }
    }
    Ok(settings)
}

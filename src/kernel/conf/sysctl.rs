//! Per-interface sysctls through `/proc/sys/net`, which shows the namespace of the calling thread.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::fault::point;
use crate::kernel::conf::devconf;
use crate::kernel::conf::files::Files;
use crate::model::IfName;
use crate::model::net::link::sysctl::{Folder, Settings, SysctlKey, Sysctls};

/// The folder with the initial values of a new interface.
const DEFAULT: &[u8] = b"default";

const PROC: &str = "/proc";

fn path(folder: Folder, dev: &[u8]) -> PathBuf {
    Path::new(PROC).join(below_proc(folder, dev))
}

fn below_proc(folder: Folder, dev: &[u8]) -> PathBuf {
    let folder = Path::new("sys/net").join(folder.as_str());
    folder.join(OsStr::from_bytes(dev))
}

/// Writes one setting of an interface of the calling thread's namespace.
pub fn write(folder: Folder, dev: &IfName, key: &SysctlKey, value: &str) -> io::Result<()> {
    let file = path(folder, dev.as_bytes()).join(key.as_str());
    let mut file = OpenOptions::new().write(true).open(file)?;
    point("sysctl write")?;
    file.write_all(value.as_bytes())
}

/// Not restored: only the kernel changes the first, and the second is no number.
const NOT_SETTINGS: [SysctlKey; 2] = [
    SysctlKey::known("mc_forwarding"),
    SysctlKey::known(STABLE_SECRET),
];
/// The interface's secret for stable privacy addresses (RFC 7217); without one it cannot be read.
const STABLE_SECRET: &str = "stable_secret";

/// Adds what this kernel has and its link dump lacks, from files; the secret only on request.
pub(crate) fn complete(settings: &mut Sysctls, dev: &IfName, with_secret: bool) {
    for folder in [Folder::Ipv4Conf, Folder::Ipv6Conf] {
        if settings.folder_mut(folder).is_empty() {
            continue;
        }
        let (undumped, has_secret) = (
            devconf::undumped(folder),
            with_secret && folder == Folder::Ipv6Conf,
        );
        if undumped.is_empty() && !has_secret {
            continue;
        }
        let Ok(files) = files_of(folder, dev) else {
            continue;
        };
        let values: Vec<_> = undumped
            .iter()
            .filter_map(|key| {
                let number = files.read::<LONGEST, _>(key.as_str(), |text| text.parse().ok())?;
                Some((*key, number))
            })
            .collect();
        settings.folder_mut(folder).extend(values);
        if has_secret {
            settings.stable_secret =
                files.read::<LONGEST, _>(STABLE_SECRET, |text| text.parse().ok());
        }
    }
}

/// Longer than a number or an IPv6 address.
const LONGEST: usize = 128;

thread_local! {
    /// A `/proc` of this thread's own, and for how many interfaces it was used.
    static OWN: RefCell<Option<(Files, usize)>> = const { RefCell::new(None) };
}

/// The files of an interface of the calling thread's namespace.
///
/// In one `/proc` the kernel compares a name with those of all namespaces that were ever read there (`proc_sys_compare` in
/// `fs/proc/proc_sysctl.c`), which costs more than all else that is read of a pod. A new instance knows no name yet. Where none can be
/// mounted, it is that of all.
fn files_of(folder: Folder, dev: &IfName) -> nix::Result<Files> {
    /// More cost the comparison again, fewer the mount.
    const USES: usize = 16;
    OWN.with_borrow_mut(|own| {
        let (proc, uses) = match own.take() {
            Some((proc, uses)) if uses < USES => (proc, uses),
            _ => (
                Files::mount("proc").or_else(|_| Files::of(Path::new(PROC)))?,
                0,
            ),
        };
        let files = proc.below(&below_proc(folder, dev.as_bytes()));
        *own = Some((proc, uses + 1));
        files
    })
}

/// Whether a new interface starts with these settings, as far as its link dump lacks them, unless its namespace was told otherwise
/// (`ipv6_devconf` in net/ipv6/addrconf.c).
pub fn are_initial(settings: &Sysctls) -> bool {
    const INITIAL: [(SysctlKey, i64); 3] = [
        (SysctlKey::known("ra_honor_pio_life"), 0),
        (SysctlKey::known("ra_honor_pio_pflag"), 0),
        (SysctlKey::known("regen_min_advance"), 2),
    ];
    [
        (Folder::Ipv4Conf, &settings.ipv4),
        (Folder::Ipv6Conf, &settings.ipv6),
    ]
    .into_iter()
    .all(|(folder, settings)| {
        let mut undumped = devconf::undumped(folder).iter();
        undumped.all(|key| {
            let value = settings.get(key);
            value.is_none_or(|value| INITIAL.contains(&(*key, *value)))
        })
    })
}

/// The initial `conf` of a new interface in the calling thread's namespace (`conf/default`). A file that cannot be read
/// is left out.
pub fn defaults() -> io::Result<Sysctls> {
    Ok(Sysctls {
        ipv4: read_all(Folder::Ipv4Conf)?,
        ipv6: read_all(Folder::Ipv6Conf)?,
        ..Sysctls::default()
    })
}

fn read_all(folder: Folder) -> io::Result<Settings> {
    let mut settings = Vec::new();
    let folder = path(folder, DEFAULT);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Settings::new()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Ok(key) = SysctlKey::try_from(entry.file_name().to_string_lossy().into_owned()) else {
            continue;
        };
        // The kernel spins in a read of it while another thread holds the lock of links (`addrconf_sysctl_stable_secret`).
        if key.as_str() == STABLE_SECRET {
            continue;
        }
        if let Some(value) = fs::read_to_string(entry.path())
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            settings.push((key, value));
        }
    }
    Ok(settings.into_iter().collect())
}

/// The settings that this kernel has and that can be restored, from the folder `all`.
pub(crate) fn known_keys(folder: Folder) -> &'static BTreeSet<SysctlKey> {
    static IPV4: OnceLock<BTreeSet<SysctlKey>> = OnceLock::new();
    static IPV6: OnceLock<BTreeSet<SysctlKey>> = OnceLock::new();
    let list = || {
        fs::read_dir(path(folder, b"all"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter_map(|name| SysctlKey::try_from(name).ok())
            .filter(|key| !NOT_SETTINGS.contains(key))
            .collect()
    };
    match folder {
        Folder::Ipv4Conf | Folder::Ipv4Neigh => IPV4.get_or_init(list),
        Folder::Ipv6Conf | Folder::Ipv6Neigh => IPV6.get_or_init(list),
    }
}

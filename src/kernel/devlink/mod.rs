//! devlink(8): parameters of a device and the mode of its embedded switch (`linux/devlink.h`), which belong to the whole device
//! and not to one of its network devices.
//!
//! All functions are about devices whose devlink instance is in the calling thread's namespace: that is the host's, also while a
//! network device of it is in a pod.

mod eswitch;
mod params;

use crate::kernel::Errno;
use crate::kernel::codec::nested::Nested;
use crate::kernel::error::SetError;
use crate::kernel::plain::genl::{DEVLINK, Genl};
use crate::model::net::link::nic::{NicKey, NicSettings, NicValue};
use crate::model::{Link, LinkKind};

/// `DEVLINK_CMD_GET`, and the two names by which a device is known: `DEVLINK_ATTR_BUS_NAME`, `DEVLINK_ATTR_DEV_NAME`.
const GET: u8 = 1;
const BUS_NAME: u16 = 1;
const DEV_NAME: u16 = 2;

/// A device by the name of its bus and its address there, such as `pci/0000:01:00.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DevlinkHandle {
    bus: Vec<u8>,
    device: Vec<u8>,
}

impl DevlinkHandle {
    fn of(object: &Nested) -> Option<Self> {
        let name = |number| {
            let name = object.get(number)?;
            Some(name.strip_suffix(&[0]).unwrap_or(name).to_vec())
        };
        Some(Self {
            bus: name(BUS_NAME)?,
            device: name(DEV_NAME)?,
        })
    }

    fn is_at(&self, address: &str) -> bool {
        self.device == address.as_bytes()
    }

    /// The attributes of a request about it.
    fn request(&self) -> Nested {
        let mut request = Nested::default();
        request.push(BUS_NAME, [self.bus.as_slice(), &[0]].concat());
        request.push(DEV_NAME, [self.device.as_slice(), &[0]].concat());
        request
    }
}

/// The parameters of all devices of a namespace, read at once.
pub(super) struct DevlinkReader {
    objects: Vec<Nested>,
    error: Option<Errno>,
}

impl DevlinkReader {
    /// Reads them. A kernel or driver without parameters has none.
    pub fn open_here() -> Self {
        let dump = Genl::open_here(&DEVLINK).map(|genl| genl.dump(params::GET));
        let (objects, error) = match dump {
            Some(Ok(objects)) => (objects, None),
            // Before Linux 4.19.
            None | Some(Err(Errno::EOPNOTSUPP | Errno::EINVAL)) => (Vec::new(), None),
            Some(Err(errno)) => (Vec::new(), Some(errno)),
        };
        Self { objects, error }
    }

    /// The parameters of the device at a bus address; and what of them cannot be read, in words.
    pub fn read(&self, address: &str) -> (NicSettings, Vec<String>) {
        let mut settings = NicSettings::new();
        let error = self.error;
        let error =
            error.map(|error| format!("devlink parameters of {address} cannot be read: {error}"));
        let all = self.objects.iter();
        let own = all.filter(|one| DevlinkHandle::of(one).is_some_and(|own| own.is_at(address)));
        let unreadable = own.filter_map(|one| params::add_to(&mut settings, one));
        let unreadable =
            unreadable.map(|what| format!("devlink parameter {what} of {address} cannot be read"));
        let unreadable = error.into_iter().chain(unreadable).collect();
        (settings, unreadable)
    }
}

/// Sets a parameter that a device takes while it runs.
pub(super) fn set(address: &str, key: &NicKey, value: &NicValue) -> Result<(), SetError> {
    let mut genl = Genl::open_here(&DEVLINK).ok_or(Errno::EOPNOTSUPP)?;
    let objects = genl.dump(params::GET)?;
    let mut own = objects.iter().filter_map(|one| {
        let handle = DevlinkHandle::of(one).filter(|own| own.is_at(address))?;
        params::change(one, key, value).map(|change| (handle, change))
    });
    let (handle, change) = own.next().ok_or(Errno::ENOENT)?;
    let mut request = handle.request();
    for (number, bytes) in change {
        request.push(number, bytes);
    }
    genl.set((params::SET, request))
}

/// The devices with an embedded switch that forwards by rules and through representors, in words: a driver that is loaded again
/// begins without.
pub(super) fn switches(links: &[Link]) -> Vec<String> {
    let mut devices = links.iter().filter(|link| {
        let hardware = link.hardware.as_ref();
        link.kind == LinkKind::Physical && hardware.is_some_and(|own| own.bus.is_some())
    });
    if devices.next().is_none() {
        return Vec::new();
    }
    let Some(mut genl) = Genl::open_here(&DEVLINK) else {
        return Vec::new();
    };
    let handles: Vec<DevlinkHandle> = match genl.dump(GET) {
        Ok(objects) => objects.iter().filter_map(DevlinkHandle::of).collect(),
        Err(_) => return Vec::new(),
    };
    let requests = handles.iter();
    let requests: Vec<_> = requests
        .map(|handle| (eswitch::GET, handle.request()))
        .collect();
    let answers = genl.get(&requests).unwrap_or_default();
    let answers = answers.into_iter().flatten();
    answers
        .filter_map(|answer| {
            let handle = DevlinkHandle::of(&answer)?;
            let address = String::from_utf8(handle.device).ok()?;
            eswitch::words(&answer, &address, links)
        })
        .collect()
}

/// What the answers in datagrams say about the device at an address.
#[cfg(feature = "fuzzing")]
pub(crate) fn settings_in(bytes: &[u8], address: &str, links: &[Link]) -> NicSettings {
    let mut settings = NicSettings::new();
    for (_, answer) in crate::kernel::plain::genl::answers_in(bytes) {
        let Ok(answer) = answer else {
            continue;
        };
        params::add_to(&mut settings, &answer);
        eswitch::words(&answer, address, links);
        for group in settings.values() {
            for (key, value) in group {
                params::change(&answer, key, value);
            }
        }
    }
    settings
}

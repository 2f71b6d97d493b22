//! Sets something on a device.

use super::device::DriverInfo;
use super::ioctl::{IoctlDevice, flows, private, rss, tunables, words};
use super::{features, irqs, link_modes, message, queues};
use crate::fault::point;
use crate::kernel::codec::nested::{Nested, set_word};
use crate::kernel::conf::sysfs::Sysfs;
use crate::kernel::error::SetError;
use crate::kernel::link::hwmode;
use crate::kernel::plain::genl::{ETHTOOL, Genl};
use crate::kernel::{Errno, devlink};
use crate::model::IfName;
use crate::model::net::link::nic::{NicGroup, NicKey, NicValue};

/// Sets values of one group on a device of the calling thread's namespace: together where the kernel has one request for all of
/// them, else one after another.
///
/// # Errors
/// The first refusal; later values are set nevertheless where each has its own request.
pub(crate) fn set(
    dev: &IfName,
    group: NicGroup,
    values: &[(NicKey, NicValue)],
) -> Result<(), SetError> {
    let is_together = !matches!(
        group,
        NicGroup::Devlink
            | NicGroup::Private
            | NicGroup::Tunables
            | NicGroup::FlowHash
            | NicGroup::Rules
            | NicGroup::Irqs
            | NicGroup::Queues
    );
    let size = if is_together { values.len().max(1) } else { 1 };
    let device = IoctlDevice::open(dev)?;
    let results = values.chunks(size).map(|some| {
        point("ethtool write").map_err(|error| errno(&error))?;
        set_some(&device, group, some)
    });
    results.fold(Ok(()), Result::and)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

fn set_some(
    device: &IoctlDevice<'_>,
    group: NicGroup,
    values: &[(NicKey, NicValue)],
) -> Result<(), SetError> {
    let dev = device.name;
    let done = match (group, values) {
        (NicGroup::Devlink, [(key, value)]) => {
            let address = bus(device).ok_or(Errno::ENODEV)?;
            return devlink::set(&address, key, value);
        }
        (NicGroup::Bridge, [(_, NicValue::Text(mode))]) => return hwmode::write(dev, mode),
        (NicGroup::Rss, values) => rss::write(device, values),
        (NicGroup::Tunables, [(key, NicValue::Number(number))]) => {
            tunables::write(device, key, *number)
        }
        (NicGroup::FlowHash, [(key, NicValue::Text(letters))]) => {
            flows::write_hash(device, key, letters)
        }
        (NicGroup::Rules, [(key, NicValue::Text(rule))]) => flows::write_rule(device, key, rule),
        (NicGroup::Queues, [(key, value)]) => {
            let sysfs = Sysfs::here().map_err(|error| errno(&error))?;
            queues::write(&sysfs.files(dev)?, key, value)
        }
        (NicGroup::Irqs, [(key, NicValue::Text(list))]) => {
            let files = bus(device).as_deref().and_then(irqs::IrqFiles::of);
            let files = files.ok_or(Errno::ENOENT)?;
            irqs::write(&files, dev, key, list)
        }
        _ => return by_message(device, group, values),
    };
    Ok(done?)
}

fn bus(device: &IoctlDevice<'_>) -> Option<String> {
    DriverInfo::of(device)?.bus()
}

/// By a message; where the kernel has none, by ioctl(2).
fn by_message(
    device: &IoctlDevice<'_>,
    group: NicGroup,
    values: &[(NicKey, NicValue)],
) -> Result<(), SetError> {
    let refused = match Genl::open_here(&ETHTOOL) {
        Some(mut genl) => match send(&mut genl, device.name, group, values) {
            Err(error) if error.errno == Errno::EOPNOTSUPP => error,
            result => return result,
        },
        None => Errno::EOPNOTSUPP.into(),
    };
    by_ioctl(device, group, values).map_err(|errno| match errno {
        Errno::EOPNOTSUPP | Errno::EINVAL => refused,
        errno => errno.into(),
    })
}

fn send(
    genl: &mut Genl,
    dev: &IfName,
    group: NicGroup,
    values: &[(NicKey, NicValue)],
) -> Result<(), SetError> {
    let mut request = message::change(dev);
    let (get, added) = match group {
        NicGroup::Features => (features::GET, features::add_to(&mut request, values)),
        NicGroup::Link => {
            let query = (link_modes::GET, message::request(dev, 0));
            let now = genl.get(&[query])?.pop();
            let now = now.unwrap_or_else(|| Ok(Nested::default()))?;
            let added = link_modes::add_to(&mut request, values, &now);
            (link_modes::GET, added)
        }
        _ => {
            let message = message::of(group).ok_or(Errno::EINVAL)?;
            (message.get, message.add_to(&mut request, values))
        }
    };
    added.ok_or(Errno::EINVAL)?;
    genl.set((get + 1, request))
}

fn by_ioctl(
    device: &IoctlDevice<'_>,
    group: NicGroup,
    values: &[(NicKey, NicValue)],
) -> Result<(), Errno> {
    match (group, values) {
        (NicGroup::Features, values) => features::write(device, values),
        (NicGroup::Link, values) => link_modes::LinkSettings::read(device)?.write(device, values),
        (NicGroup::Private, [(key, NicValue::Flag(is_on))]) => private::write(device, key, *is_on),
        _ => {
            let message = message::of(group).ok_or(Errno::EINVAL)?;
            let structure = message.structure.ok_or(Errno::EINVAL)?;
            let mut request = words(&[structure.get]);
            request.resize(structure.words * 4, 0);
            let mut request = device.call(&request)?;
            set_word(&mut request, 0, structure.get + 1);
            let written = message.write_into(&mut request, values);
            written.ok_or(Errno::EINVAL)?;
            device.call(&request).map(drop)
        }
    }
}

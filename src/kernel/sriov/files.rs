//! The files of the bus (`/sys/bus/pci`; netdevsim has some of them): which functions a device has, and their drivers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::fault::point;
use crate::kernel::Errno;
use crate::kernel::conf::files::Files;
use crate::model::net::limits;
use crate::model::net::link::nic::{FunctionOf, Sriov, VirtualFunction};

/// The buses whose devices can have virtual functions; only those of the first have drivers of their own.
const BUSES: [&str; 2] = ["pci", "netdevsim"];
/// Writing a bus address here binds a driver to the device, as at its appearance.
const PROBE: &str = "bus/pci/drivers_probe";

/// The functions of devices, by the bus addresses of these: each with its number.
pub(super) type KnownFunctions = BTreeMap<String, BTreeMap<String, u32>>;

/// A sysfs, of which only the part is used that is the same in every namespace.
pub(super) struct BusFiles(Files);

impl BusFiles {
    /// One that is mounted nowhere, or before Linux 5.2 the one at its usual place.
    pub fn here() -> io::Result<Self> {
        match Files::mount("sysfs") {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Ok(Self(Files::of(Path::new("/sys"))?))
            }
            files => files.map(Self),
        }
    }

    fn device(&self, bus: &str) -> Option<Files> {
        if bus.contains('/') || bus.starts_with('.') {
            return None;
        }
        let path = |name: &str| format!("bus/{name}/devices/{bus}");
        let mut found = BUSES
            .iter()
            .map(|name| self.0.below(Path::new(&path(name))));
        found.find_map(Result::ok)
    }

    /// Which function of which device the one with this bus address is, if it is one.
    pub fn function(&self, bus: &str, known: &mut KnownFunctions) -> Option<FunctionOf> {
        let of = name_behind(&self.device(bus)?, "physfn")?;
        let functions = known.entry(of.clone()).or_insert_with(|| {
            let device = self.device(&of);
            device.map_or_else(BTreeMap::new, |device| functions(&device))
        });
        let index = *functions.get(bus)?;
        Some(FunctionOf { of, index })
    }

    /// The functions of the device with this bus address, without their settings; `None` if it cannot have any.
    pub fn sriov(&self, bus: &str) -> Option<Sriov> {
        let device = self.device(bus)?;
        let vfs = number(&device, "sriov_numvfs")?;
        if number(&device, "sriov_totalvfs") == Some(0) {
            return None;
        }
        let functions = (0..vfs).take(limits::FUNCTIONS).map(|index| {
            let place = place(index);
            let overridden = |text: &str| Some(text.to_owned()).filter(|text| text != "(null)");
            VirtualFunction {
                index,
                bus: name_behind(&device, &place),
                driver: name_behind(&device, &format!("{place}/driver")),
                driver_override: device
                    .read::<LONGEST, _>(&format!("{place}/driver_override"), overridden),
                // Every sysfs has the folder, though not the device of another namespace in it.
                netdev: device.below(Path::new(&format!("{place}/net"))).is_ok(),
                ..VirtualFunction::default()
            }
        });
        Some(Sriov {
            vfs,
            autoprobe: number(&device, "sriov_drivers_autoprobe") != Some(0),
            eswitch: None,
            functions: functions.collect(),
        })
    }

    fn write(&self, bus: &str, file: &str, value: &str) -> io::Result<()> {
        let device = self.device(bus).ok_or(Errno::ENODEV)?;
        let mut file = device.open_to_write(file)?;
        point("sysfs write")?;
        file.write_all(value.as_bytes())
    }

    /// Binds a driver to a function; `ENODEV` where none accepts it.
    fn bind(&self, bus: &str, index: u32) -> io::Result<()> {
        let device = self.device(bus).ok_or(Errno::ENODEV)?;
        let function = name_behind(&device, &place(index)).ok_or(Errno::ENODEV)?;
        let mut file = self.0.open_to_write(PROBE)?;
        point("sysfs write")?;
        file.write_all(function.as_bytes())?;
        let driver = name_behind(&device, &format!("{}/driver", place(index)));
        driver.map(drop).ok_or_else(|| Errno::ENODEV.into())
    }
}

/// What no driver's name and no number is longer than.
const LONGEST: usize = 128;

/// Where a device has its function of this number.
fn place(index: u32) -> String {
    format!("virtfn{index}")
}

/// The last part of what a symbolic link leads to.
fn name_behind(files: &Files, path: &str) -> Option<String> {
    let target = files.target(path)?;
    Some(Path::new(&target).file_name()?.to_str()?.to_owned())
}

fn number(files: &Files, name: &str) -> Option<u32> {
    files.read::<LONGEST, _>(name, |text| text.parse().ok())
}

/// The bus addresses of a device's functions, with their numbers.
fn functions(device: &Files) -> BTreeMap<String, u32> {
    let vfs = number(device, "sriov_numvfs").unwrap_or_default();
    let all = (0..vfs).take(limits::FUNCTIONS);
    all.filter_map(|index| Some((name_behind(device, &place(index))?, index)))
        .collect()
}

/// Whether a driver is bound to each new function of the device at once.
///
/// # Errors
/// Those of sysfs; the functions below have the same.
pub fn set_autoprobe(bus: &str, is_on: bool) -> io::Result<()> {
    let value = if is_on { "1" } else { "0" };
    BusFiles::here()?.write(bus, "sriov_drivers_autoprobe", value)
}

/// Makes that many functions; the device must have none.
pub fn set_number(bus: &str, vfs: u32) -> io::Result<()> {
    BusFiles::here()?.write(bus, "sriov_numvfs", &vfs.to_string())
}

/// Lets only this driver be bound to a function.
pub fn set_override(bus: &str, index: u32, driver: &str) -> io::Result<()> {
    let file = format!("{}/driver_override", place(index));
    BusFiles::here()?.write(bus, &file, driver)
}

/// Binds a driver to a function.
pub fn bind(bus: &str, index: u32) -> io::Result<()> {
    BusFiles::here()?.bind(bus, index)
}

/// Takes the driver from a function and binds one again.
pub fn rebind(bus: &str, index: u32) -> io::Result<()> {
    let files = BusFiles::here()?;
    let device = files.device(bus).ok_or(Errno::ENODEV)?;
    let function = name_behind(&device, &place(index)).ok_or(Errno::ENODEV)?;
    files.write(bus, &format!("{}/driver/unbind", place(index)), &function)?;
    files.bind(bus, index)
}

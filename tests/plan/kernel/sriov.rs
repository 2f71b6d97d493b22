//! Virtual functions of a device, as igb has them: a driver that is bound while the device is down or before the MAC is set gives
//! the function a random MAC.

use netfix::model::net::link::VlanProtocol;
use netfix::model::net::link::function::FunctionSetting;
use netfix::model::net::link::nic::{FunctionOf, Sriov, VirtualFunction};
use netfix::model::{Address, Hardware, IfName, Link, Mac};
use netfix::plan::{SriovChange, SriovStep};

use super::{Errno, Kernel};

const NETDEV_DRIVER: &str = "igbvf";
const MOST: u32 = 7;

impl Kernel {
    pub(super) fn take_sriov(&mut self, step: &SriovStep) -> Result<(), Errno> {
        let bus = &step.bus;
        match &step.change {
            SriovChange::Autoprobe(is_on) => self.sriov(bus)?.autoprobe = *is_on,
            SriovChange::Number(vfs) => return self.make_functions(bus, *vfs),
            SriovChange::Override(index, driver) => {
                self.function(bus, *index)?.driver_override = Some(driver.clone());
            }
            SriovChange::Bind(index) => return self.bind(bus, *index),
            SriovChange::Rebind(index) => {
                let one = self.function(bus, *index)?;
                (one.driver, one.netdev) = (None, false);
                if let Some(name) = self.netdev(bus, *index) {
                    self.delete_link(&name);
                }
                return self.bind(bus, *index);
            }
            SriovChange::Await(_) => return Err(Errno::ENODEV),
        }
        Ok(())
    }

    pub(super) fn set_function(
        &mut self,
        dev: &IfName,
        index: u32,
        setting: FunctionSetting,
    ) -> Result<(), Errno> {
        let device = self.link(dev)?;
        let has_carrier = device.flags.carrier;
        let bus = device.hardware.as_ref().and_then(|own| own.bus.clone());
        let one = self.function(&bus.ok_or(Errno::EOPNOTSUPP)?, index)?;
        match setting {
            FunctionSetting::Mac(mac) => one.mac = Some(mac),
            FunctionSetting::Vlan(.., Some(VlanProtocol::Dot1Ad)) => return Err(Errno::EOPNOTSUPP),
            FunctionSetting::Vlan(id, qos, _) => (one.vlan, one.qos) = (Some(id), Some(qos)),
            FunctionSetting::Spoofchk(is_on) => one.spoofchk = Some(is_on),
            FunctionSetting::Trust(is_on) => one.trust = Some(is_on),
            FunctionSetting::Rates(0, most) if has_carrier => one.max_rate = Some(most),
            FunctionSetting::Rates(..) => return Err(Errno::EINVAL),
            _ => return Err(Errno::EOPNOTSUPP),
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, dev: &IfName, name: &IfName) -> Result<(), Errno> {
        if self.state.link(name).is_some() {
            return Err(Errno::EEXIST);
        }
        let link = self.link_mut(dev)?;
        if link.flags.up {
            return Err(Errno::EBUSY);
        }
        link.name = name.clone();
        let addresses = self.state.addresses.iter_mut();
        for address in addresses.filter(|address: &&mut Address| address.dev == *dev) {
            address.dev = name.clone();
        }
        Ok(())
    }

    /// The functions of a device go with it.
    pub fn delete_functions(&mut self, device: &Link) {
        let Some(own) = &device.hardware else { return };
        let is_function = |link: &&Link| {
            let function = link.hardware.as_ref().and_then(|own| own.function.as_ref());
            function.is_some_and(|function| Some(&function.of) == own.bus.as_ref())
        };
        let all = self.state.links.iter().filter(is_function);
        let names: Vec<IfName> = all.map(|link| link.name.clone()).collect();
        for name in &names {
            self.delete_link(name);
        }
    }

    /// A driver offers functions, and has none.
    pub fn forget_functions(&mut self, device: &Link) {
        let link = self.link_mut(&device.name).expect("it came back");
        if let Some(sriov) = link.nic.as_mut().and_then(|nic| nic.sriov.as_mut()) {
            *sriov = Sriov {
                autoprobe: true,
                ..Sriov::default()
            };
        }
    }

    fn device(&mut self, bus: &str) -> Result<&mut Link, Errno> {
        let is_it = |own: &Hardware| own.bus.as_deref() == Some(bus);
        let mut links = self.state.links.iter_mut();
        links
            .find(|link| link.hardware.as_ref().is_some_and(is_it))
            .ok_or(Errno::ENODEV)
    }

    fn sriov(&mut self, bus: &str) -> Result<&mut Sriov, Errno> {
        let nic = self.device(bus)?.nic.as_mut();
        nic.and_then(|nic| nic.sriov.as_mut()).ok_or(Errno::ENOENT)
    }

    fn function(&mut self, bus: &str, index: u32) -> Result<&mut VirtualFunction, Errno> {
        let mut all = self.sriov(bus)?.functions.iter_mut();
        all.find(|one| one.index == index).ok_or(Errno::EINVAL)
    }

    fn netdev(&self, bus: &str, index: u32) -> Option<IfName> {
        let function = Some(FunctionOf {
            of: bus.to_owned(),
            index,
        });
        let is_it = |own: &Hardware| own.function == function;
        let mut links = self.state.links.iter();
        let link = links.find(|link| link.hardware.as_ref().is_some_and(is_it))?;
        Some(link.name.clone())
    }

    fn make_functions(&mut self, bus: &str, vfs: u32) -> Result<(), Errno> {
        let sriov = self.sriov(bus)?;
        if sriov.vfs != 0 {
            return Err(Errno::EBUSY);
        }
        if vfs > MOST {
            return Err(Errno::ERANGE);
        }
        sriov.vfs = vfs;
        sriov.functions = (0..vfs)
            .map(|index| VirtualFunction {
                bus: Some(format!("0000:01:10.{}", index * 2)),
                mac: Some(Mac([0; 6])),
                spoofchk: Some(true),
                query_rss: None,
                ..VirtualFunction::fresh(index)
            })
            .collect();
        if sriov.autoprobe {
            (0..vfs).try_for_each(|index| self.bind(bus, index))?;
        }
        Ok(())
    }

    fn bind(&mut self, bus: &str, index: u32) -> Result<(), Errno> {
        let is_up = self.device(bus)?.flags.up;
        let autoprobe = self.sriov(bus)?.autoprobe;
        let random = Mac([0x9a, 0, 0, 0, self.next_index.to_be_bytes()[3], 1]);
        let one = self.function(bus, index)?;
        if one.driver.is_some() || !(autoprobe || one.driver_override.is_some()) {
            return Err(Errno::ENODEV);
        }
        let only = one.driver_override.clone();
        let driver = only.unwrap_or_else(|| NETDEV_DRIVER.to_owned());
        one.netdev = driver == NETDEV_DRIVER;
        one.driver = Some(driver);
        if !one.netdev {
            return Ok(());
        }
        let admin = one.mac.filter(|mac| is_up && mac.0 != [0; 6]);
        let mac = admin.unwrap_or(random);
        let hardware = Hardware {
            permanent_mac: Some(mac),
            bus: one.bus.clone(),
            driver: one.driver.clone(),
            function: Some(FunctionOf {
                of: bus.to_owned(),
                index,
            }),
            ..Hardware::default()
        };
        let free = (0..).find_map(|number| {
            let name: IfName = format!("eth{number}").parse().ok()?;
            self.state.link(&name).is_none().then_some(name)
        });
        let name = free.ok_or(Errno::EEXIST)?;
        self.add_device(&name, Some(hardware), Some(mac));
        Ok(())
    }
}

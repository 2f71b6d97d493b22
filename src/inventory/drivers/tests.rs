//! The cases in `testdata/drivers`: one folder each, with a machine (`machine.txt`) and what is told of it (`told.txt`).
//! `NETFIX_BLESS=1` writes the latter again.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;

use super::*;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::nic::{FunctionOf, NicState, NicValue, Sriov, VirtualFunction};
use crate::model::net::link::{Vlan, VlanId};
use crate::model::{Mac, Parent};

/// A machine: files below a folder, the firmware of modules, and the host's links.
#[derive(Default)]
struct Described {
    firmware: BTreeMap<String, Vec<String>>,
    host: NetState,
}

impl Described {
    fn read(text: &str, root: &Path) -> Self {
        let mut machine = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').expect(line);
            let words: Vec<&str> = rest.split(' ').collect();
            match (word, words.as_slice()) {
                ("file", [path, ..]) => {
                    let content = rest.strip_prefix(path).expect(line).trim_start();
                    let path = root.join(path);
                    fs::create_dir_all(path.parent().expect(line)).expect(line);
                    fs::write(path, content.replace("\\n", "\n")).expect(line);
                }
                ("firmware", [module, files @ ..]) => {
                    let files = files.iter().map(|file| (*file).to_owned());
                    machine
                        .firmware
                        .insert((*module).to_owned(), files.collect());
                }
                ("nic", [name, driver, bus]) => machine.nic(name, driver, bus),
                ("vlan", [name, lower]) => machine.vlan(name, lower),
                ("macvlans", [name, number]) => machine.macvlans(name, number.parse().expect(line)),
                ("parameter", [name, key, value]) => {
                    let values = machine.settings(name).settings.entry(NicGroup::Module);
                    let key = (*key).to_owned().try_into().expect(line);
                    values
                        .or_default()
                        .insert(key, NicValue::Text((*value).to_owned()));
                }
                ("untrusted", [function, device, index]) => {
                    machine.untrusted(function, device, index.parse().expect(line));
                }
                _ => panic!("{line}"),
            }
        }
        machine
    }

    fn nic(&mut self, name: &str, driver: &str, bus: &str) {
        let mut link = Link::plain(name.parse().unwrap(), LinkKind::Physical);
        link.index = u32::try_from(self.host.links.len() + 2).unwrap();
        link.hardware = Some(Hardware {
            bus: Some(bus.to_owned()),
            driver: Some(driver.to_owned()),
            ..Hardware::default()
        });
        self.host.links.push(link);
    }

    fn link(&mut self, name: &str) -> &mut Link {
        let mut links = self.host.links.iter_mut();
        links
            .find(|link| link.name == name.parse().unwrap())
            .expect(name)
    }

    fn settings(&mut self, name: &str) -> &mut NicState {
        self.link(name).nic.get_or_insert_default()
    }

    fn vlan(&mut self, name: &str, lower: &str) {
        let vlan = Vlan::plain(VlanId::try_from(5).unwrap());
        let mut link = Link::plain(name.parse().unwrap(), LinkKind::Vlan(vlan));
        link.parent = Some(Parent::Own(lower.parse().unwrap()));
        self.host.links.push(link);
    }

    /// The MACs of pods' macvlans, as the kernel lists them for their device.
    fn macvlans(&mut self, name: &str, number: u16) {
        self.link(name).fdb = (0..number)
            .map(|number| {
                let [a, b] = number.to_be_bytes();
                let mac = format!(r#"{{"lladdr":"{}","state":128}}"#, Mac([2, 0, 0, 0, a, b]));
                serde_json::from_str::<FdbEntry>(&mac).unwrap()
            })
            .collect();
    }

    fn untrusted(&mut self, function: &str, device: &str, index: u32) {
        let known = VirtualFunction {
            index,
            trust: Some(false),
            ..VirtualFunction::default()
        };
        self.settings(device).sriov = Some(Sriov {
            vfs: index + 1,
            functions: vec![known],
            ..Sriov::default()
        });
        let of = self
            .link(device)
            .hardware
            .as_ref()
            .unwrap()
            .bus
            .clone()
            .unwrap();
        let hardware = self.link(function).hardware.as_mut().unwrap();
        hardware.function = Some(FunctionOf { of, index });
    }
}

#[test]
fn what_a_reload_would_meet_is_told_of_each_machine() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/drivers");
    let mut cases: Vec<_> = fs::read_dir(cases)
        .unwrap()
        .map(|case| case.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() > 5, "{cases:?}");
    for case in cases {
        let text = fs::read_to_string(case.join("machine.txt")).unwrap();
        let root = tempfile::tempdir().unwrap();
        let described = Described::read(&text, root.path());
        let sources = DriverSources {
            root: root.path(),
            firmware: &|module| described.firmware.get(module).cloned().unwrap_or_default(),
        };
        let problems = sources.at_risk(&described.host);
        let told = problems
            .iter()
            .map(|one| format!("{:?}: {}\n", one.severity, one.line(None)));
        let told: String = told.collect();
        let file = case.join("told.txt");
        if env::var_os("NETFIX_BLESS").is_some() {
            fs::write(&file, &told).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(told, expected, "{}", case.display());
    }
}

#[test]
fn the_module_of_a_name_that_is_none_has_no_firmware() {
    assert!(modinfo::firmware("no_such_module").is_empty());
    assert!(modinfo::firmware("-h").is_empty());
}

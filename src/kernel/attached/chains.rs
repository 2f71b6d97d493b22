//! Chains and flowtables of nftables that are bound to a device (`linux/netfilter/nf_tables.h`).

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::kernel::Errno;
use crate::kernel::ability::{is_kernel, release};
use crate::kernel::codec::nested::Nested;
use crate::kernel::plain::PlainSocket;
use crate::model::{Bytes, IfName};

/// `NFNL_SUBSYS_NFTABLES` in the high byte, `NFT_MSG_GETCHAIN`, `NFT_MSG_GETFLOWTABLE` in the low one.
const CHAINS: u16 = 0x0a04;
const FLOWTABLES: u16 = 0x0a17;
/// `NFPROTO_*` of those that can be bound to a device.
pub(super) const NETDEV: u8 = 5;
const INET: u8 = 1;
/// `struct nfgenmsg`.
const HEADER: usize = 4;

/// Numbers of the attributes with table, name and hook, and of the list of devices in the hook; `NFTA_HOOK_DEV` has a single one.
struct HookedObject {
    kind: u16,
    word: &'static str,
    table: u16,
    name: u16,
    hook: u16,
    devices: u16,
    device: Option<u16>,
}

const OBJECTS: [HookedObject; 2] = [
    HookedObject {
        kind: CHAINS,
        word: "chain",
        table: 1,
        name: 3,
        hook: 4,
        devices: 4,
        device: Some(3),
    },
    HookedObject {
        kind: FLOWTABLES,
        word: "flowtable",
        table: 1,
        name: 2,
        hook: 3,
        devices: 3,
        device: None,
    },
];

/// Whether a hook waits for a new device of the same name (Linux 6.16). Before, the chain and its rules are deleted with its last
/// device, and a flowtable loses the device (`nf_tables_netdev_event`).
pub(super) fn outlive_devices() -> bool {
    is_kernel((6, 16))
}

/// Those of the calling thread's namespace on devices that are lost, in words.
pub(super) fn read(is_lost: impl Fn(&IfName) -> bool) -> Vec<String> {
    // The query would load the module.
    if !is_loaded("nf_tables") {
        return Vec::new();
    }
    let Ok(socket) = PlainSocket::open(NETLINK_NETFILTER) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for object in &OBJECTS {
        for family in [NETDEV, INET] {
            match socket.dump(object.kind, &[family, 0, 0, 0]) {
                Ok(dump) => {
                    let words = dump.iter().filter_map(|one| object.words(one, &is_lost));
                    found.extend(words);
                }
                // A kernel without them, or a process that may not.
                Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOENT | Errno::EPERM) => {}
                Err(errno) => found.push(format!("nft {}s cannot be read: {errno}", object.word)),
            }
        }
    }
    found
}

impl HookedObject {
    /// Its name and those of its devices that are lost; `None` if it has none.
    fn words(&self, message: &[u8], is_lost: &impl Fn(&IfName) -> bool) -> Option<String> {
        let family = match *message.first()? {
            NETDEV => "netdev",
            INET => "inet",
            _ => return None,
        };
        let all = Nested::parse(message.get(HEADER..)?)?;
        let hook = Nested::parse(all.get(self.hook)?)?;
        let listed = hook.get(self.devices).and_then(Nested::parse);
        let listed = listed.iter().flat_map(|list| list.all(1));
        let single = self.device.and_then(|number| hook.get(number));
        let devices = listed.chain(single).filter_map(|name| {
            let name = IfName::try_from(Bytes::from(text(name).to_vec())).ok()?;
            Some(name).filter(is_lost)
        });
        let mut devices: Vec<_> = devices.map(|name| name.to_string()).collect();
        devices.sort();
        devices.dedup();
        let shown = |number| {
            let name = text(all.get(number)?);
            Some(Bytes::from(name.to_vec()).to_string())
        };
        let (table, name) = (shown(self.table)?, shown(self.name)?);
        let (word, devices) = (
            self.word,
            (!devices.is_empty()).then(|| devices.join(", "))?,
        );
        Some(format!("nft {word} {family} {table} {name} on {devices}"))
    }
}

/// A string without the zero at its end.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(&[0]).unwrap_or(bytes)
}

/// Whether the kernel has this module already: loaded, or built in.
pub(super) fn is_loaded(module: &str) -> bool {
    static BUILT_IN: OnceLock<String> = OnceLock::new();
    let list = || {
        let list = Path::new("/lib/modules").join(release().trim());
        fs::read_to_string(list.join("modules.builtin")).unwrap_or_default()
    };
    Path::new("/sys/module").join(module).exists()
        || !Path::new("/proc/modules").exists()
        || BUILT_IN
            .get_or_init(list)
            .contains(&format!("/{module}.ko"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::kernel::netns;

    pub(in crate::kernel::attached) fn run(program: &str, arguments: &str, input: &str) -> String {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program} {arguments}");
        String::from_utf8(output.stdout).unwrap()
    }

    const RULES: &str = "table netdev t {
            chain c {
                type filter hook ingress device v0 priority 0
            }
        }
        table inet u {
            chain d {
                type filter hook ingress device v0 priority 1
            }
            chain e {
                type filter hook input priority 0
            }
        }
        ";

    #[test]
    fn chains_on_a_device_are_named_with_it() {
        netns::in_new(|| {
            run("ip", "link add v0 type veth peer v1", "");
            assert!(read(|_| true).is_empty());
            run("nft", "-f -", RULES);
            assert_eq!(
                read(|dev| dev.is("v0")),
                ["nft chain netdev t c on v0", "nft chain inet u d on v0"]
            );
            assert!(read(|dev| dev.is("v1")).is_empty());
        })
        .unwrap();
    }

    #[test]
    fn a_flowtable_is_named_with_those_of_its_devices_that_are_lost() {
        let list = |all: &[(u16, &[u8])]| {
            let mut list = Nested::default();
            for (number, value) in all {
                list.push(*number, value.to_vec());
            }
            list.bytes()
        };
        let devices = list(&[(1, b"eth0\0"), (1, b"veth1\0"), (1, b"eth1\0")]);
        let hook = list(&[(1, &[0; 4]), (3, &devices)]);
        let table = list(&[(1, b"u\0"), (2, b"f\n\0"), (3, &hook)]);
        let message = [&[INET, 0, 0, 0], table.as_slice()].concat();
        let is_lost = |dev: &IfName| !dev.is("veth1");
        let words = |bytes: &[u8]| OBJECTS[1].words(bytes, &is_lost);
        assert_eq!(
            words(&message).as_deref(),
            Some("nft flowtable inet u f\\n on eth0, eth1")
        );
        for end in 0..message.len() {
            assert_eq!(words(&message[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_chain_outlives_its_device_on_the_kernels_that_are_said_to_keep_it() {
        netns::in_new(|| {
            run("ip", "link add v0 type veth peer v1", "");
            run("nft", "-f -", RULES);
            run("ip", "link del v0", "");
            let is_there = run("nft", "list ruleset", "").contains("hook ingress device");
            assert_eq!(is_there, outlive_devices());
        })
        .unwrap();
    }
}

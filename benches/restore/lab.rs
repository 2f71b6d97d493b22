//! Many pods on one parent, the loss, and the check that a restore is complete.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

use crate::common::namespace::Namespace;
use crate::common::{GATEWAY4, Node, tool};
use crate::contestants::Contestant;
use crate::cost::Cost;

/// The index of every pod's `eth0`, so that all contestants can restore it.
pub const IFINDEX: u32 = 77;

pub struct Lab {
    pub node: Node,
    pub pods: Vec<BenchPod>,
}

pub struct BenchPod {
    pub ns: Namespace,
    pub mac: [u8; 6],
    pub address: Ipv4Addr,
}

impl BenchPod {
    pub fn mac_text(&self) -> String {
        self.mac.map(|byte| format!("{byte:02x}")).join(":")
    }
}

impl Lab {
    pub fn new(count: usize) -> Self {
        let node = Node::without_addresses();
        let pods = (0..count).map(|number| new_pod(&node, number)).collect();
        let lab = Self { node, pods };
        lab.batch("links", &lab.link_lines(), lab.node.ns.name());
        for pod in &lab.pods {
            lab.batch("pod", &pod_lines(pod), pod.ns.name());
        }
        lab.check("the fixture");
        lab
    }

    /// The input of `ip -batch` to create every link.
    pub fn link_lines(&self) -> String {
        self.pods.iter().fold(String::new(), |mut lines, pod| {
            let (name, mac) = (pod.ns.name(), pod.mac_text());
            let _ = writeln!(lines, "link add link eth0 name eth0 netns {name} index {IFINDEX} address {mac} type macvlan mode bridge");
            lines
        })
    }

    pub fn batch(&self, name: &str, lines: &str, ns: &str) {
        let file = self.file(name, lines);
        tool::run(tool::command("ip", ["-n", ns, "-batch"]).arg(file));
    }

    /// A file in the lab's temporary directory.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.node.temp().join(name);
        fs::write(&file, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
        file
    }

    pub fn lose_restore_and_check(&self, contestant: &Contestant) -> Cost {
        self.node.lose_and_reload();
        let cost = (contestant.restore)(self);
        self.check(contestant.name);
        cost
    }

    pub fn check(&self, who: &str) {
        for pod in &self.pods {
            if let Err(why) = pod.ns.enter(|| is_whole(pod)) {
                panic!("after {who}, {} has {why}", pod.ns.name());
            }
        }
    }
}

fn new_pod(node: &Node, number: usize) -> BenchPod {
    let [high, low] = u16::try_from(number)
        .expect("at most 65536 pods")
        .to_be_bytes();
    let ns = Namespace::new(&format!("{}.{number}", node.ns.name()));
    BenchPod {
        ns,
        mac: [2, 1, 0, 0x88, high, low],
        address: Ipv4Addr::new(10, 88, 16 + high, low),
    }
}

/// The input of `ip -batch` inside one pod.
pub fn pod_lines(pod: &BenchPod) -> String {
    let address = pod.address;
    format!(
        "link set eth0 up\naddr add {address}/16 brd + dev eth0\nroute add default via {GATEWAY4}\n"
    )
}

/// Runs inside the pod: its interface has the right index, MAC and address, is up, and leads to the gateway.
fn is_whole(pod: &BenchPod) -> Result<(), String> {
    let index = if_nametoindex("eth0").map_err(|e| format!("no eth0: {e}"))?;
    let all = getifaddrs().map_err(|e| format!("no list of addresses: {e}"))?;
    let own: Vec<_> = all.filter(|entry| entry.interface_name == "eth0").collect();
    let addresses = || own.iter().filter_map(|entry| entry.address);
    let mac = addresses().find_map(|address| {
        address
            .as_link_addr()
            .and_then(nix::sys::socket::LinkAddr::addr)
    });
    let address = addresses().find_map(|address| {
        address
            .as_sockaddr_in()
            .map(nix::sys::socket::SockaddrIn::ip)
    });
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    let found = (
        index,
        mac,
        address,
        routes.contains("eth0\t00000000\t0100580A\t"),
    );
    let wanted = (IFINDEX, Some(pod.mac), Some(pod.address), true);
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{found:?} and not {wanted:?}"))
    }
}

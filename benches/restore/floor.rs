//! The floor: the minimum that a program can do to restore the pods. Hand-made messages, 64 links in one send,
//! then one socket and one send for each pod. It reads no state, checks nothing and announces nothing.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::common::GATEWAY4;
use crate::cost::Cost;
use crate::lab::{IFINDEX, Lab};

pub const COMMAND: &str = "run-the-floor";
pub const READY_COMMAND: &str = "run-the-floor-from-a-ready-plan";
pub const TWIN_COMMAND: &str = "run-the-floor-in-new-namespaces";
const LINKS_A_SEND: usize = 64;
const MTU: u32 = 1500;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
/// `IFLA_NET_NS_FD`
const NETNS_FD: u16 = 28;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const CREATE_EXCLUSIVELY: u16 = 0x200 | 0x400;
const IFF_UP: u32 = 1;
const MACVLAN_MODE_BRIDGE: u32 = 4;

/// What is lost, and a socket of the node.
struct Floor {
    parent: u32,
    socket: Socket,
    targets: Vec<Target>,
}

struct Target {
    netns: File,
    /// In the pod; `None` until it is needed.
    socket: Option<Socket>,
    mac: Vec<u8>,
    address: Ipv4Addr,
}

/// The input of the floor program: one line for each pod.
pub fn plan(lab: &Lab) -> String {
    lab.pods.iter().fold(String::new(), |mut text, pod| {
        let _ = writeln!(
            text,
            "{} {} {}",
            pod.ns.path().display(),
            pod.mac_text(),
            pod.address
        );
        text
    })
}

/// `COMMAND PLAN`
pub fn run(arguments: &[String]) {
    Floor::prepare(&arguments[0]).restore();
}

/// Restores, and prints what it costs once the plan is read and every pod has an open socket.
pub fn run_from_ready_plan(arguments: &[String]) {
    let mut floor = Floor::prepare(&arguments[0]);
    for target in &mut floor.targets {
        target.enter();
        target.socket = Some(open());
    }
    Cost::print(|| floor.restore());
}

/// Builds the same pods in new namespaces, which end with this program.
pub fn run_in_new_namespaces(arguments: &[String]) {
    let mut floor = Floor::prepare(&arguments[0]);
    for target in &mut floor.targets {
        unshare(CloneFlags::CLONE_NEWNET).expect("unshare");
        target.netns = File::open("/proc/thread-self/ns/net").expect("a new namespace");
    }
    floor.restore();
}

impl Floor {
    fn prepare(plan: &str) -> Self {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of open files");
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("more open files");
        let text = fs::read_to_string(plan).expect("the plan");
        Self {
            targets: text.lines().map(target).collect(),
            parent: if_nametoindex("eth0").expect("eth0"),
            socket: open(),
        }
    }

    fn restore(&mut self) {
        let mut up = Message::link(self.parent, IFF_UP, 0);
        up.request_ack();
        exchange(&mut self.socket, &up.finish());
        for chunk in self.targets.chunks(LINKS_A_SEND) {
            let mut bytes = Vec::new();
            for (number, target) in chunk.iter().enumerate() {
                bytes.extend(create(target, self.parent, number + 1 == chunk.len()));
            }
            exchange(&mut self.socket, &bytes);
        }
        for target in &mut self.targets {
            target.enter();
            let bytes = configure(target);
            match &mut target.socket {
                Some(socket) => exchange(socket, &bytes),
                None => exchange(&mut open(), &bytes),
            }
        }
    }
}

impl Target {
    fn enter(&self) {
        setns(&self.netns, CloneFlags::CLONE_NEWNET).expect("setns");
    }
}

fn target(line: &str) -> Target {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("three words a line");
    let netns = File::open(next()).expect("the pod's namespace");
    let mac = next()
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).expect("a MAC"))
        .collect();
    Target {
        netns,
        socket: None,
        mac,
        address: next().parse().expect("an address"),
    }
}

fn create(target: &Target, parent: u32, last: bool) -> Vec<u8> {
    let mut message = macvlan(b"eth0\0", &target.mac, parent);
    message.attribute(NETNS_FD, &target.netns.as_raw_fd().to_ne_bytes());
    if last {
        message.request_ack();
    }
    message.finish()
}

/// A new macvlan.
pub fn macvlan(name: &[u8], mac: &[u8], parent: u32) -> Message {
    let mut message = Message::link(IFINDEX, 0, CREATE_EXCLUSIVELY);
    message.attribute(3, name);
    message.attribute(1, mac);
    message.attribute(4, &MTU.to_ne_bytes());
    message.attribute(5, &parent.to_ne_bytes());
    message.nested(18, |info| {
        info.attribute(1, b"macvlan");
        info.nested(2, |data| {
            data.attribute(1, &MACVLAN_MODE_BRIDGE.to_ne_bytes());
        });
    });
    message
}

/// Moves the macvlan into a namespace.
pub fn move_to(netns: &File) -> Message {
    let mut message = Message::link(IFINDEX, 0, 0);
    message.attribute(NETNS_FD, &netns.as_raw_fd().to_ne_bytes());
    message
}

/// Deletes it.
pub fn delete() -> Message {
    let mut message = Message::link(IFINDEX, 0, 0);
    message.bytes[4..6].copy_from_slice(&RTM_DELLINK.to_ne_bytes());
    message
}

fn configure(target: &Target) -> Vec<u8> {
    settings(target.address)
}

/// Takes the link of a pod up, and gives it its address and the default route.
pub fn settings(own: Ipv4Addr) -> Vec<u8> {
    let mut bytes = Message::link(IFINDEX, IFF_UP, 0).finish();
    let mut address = Message::new(RTM_NEWADDR, CREATE_EXCLUSIVELY, &[2, 16, 0, 0]);
    address.bytes.extend(IFINDEX.to_ne_bytes());
    address.attribute(2, &own.octets());
    address.attribute(1, &own.octets());
    let [a, b, ..] = own.octets();
    address.attribute(4, &[a, b, 255, 255]);
    bytes.extend(address.finish());
    // Family, lengths, tos, main table, protocol boot, universe, unicast, flags.
    let mut route = Message::new(
        RTM_NEWROUTE,
        CREATE_EXCLUSIVELY,
        &[2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0],
    );
    let gateway: Ipv4Addr = GATEWAY4.parse().expect("the gateway's address");
    route.attribute(5, &gateway.octets());
    route.attribute(4, &IFINDEX.to_ne_bytes());
    route.request_ack();
    bytes.extend(route.finish());
    bytes
}

pub fn open() -> Socket {
    let mut socket = Socket::new(NETLINK_ROUTE).expect("a netlink socket");
    socket.bind_auto().expect("a bound socket");
    socket
        .connect(&SocketAddr::new(0, 0))
        .expect("a socket to the kernel");
    socket
}

/// Sends everything at once and waits for the one acknowledgement; any error ends the program.
pub fn exchange(socket: &mut Socket, bytes: &[u8]) {
    let sent = socket.send(bytes, 0).expect("sendto");
    assert_eq!(sent, bytes.len(), "a short send");
    let mut buffer = Vec::with_capacity(65536);
    // Errors come first, the acknowledgement last: the first message must not be an error.
    socket.recv(&mut buffer, 0).expect("recv");
    let code = i32::from_ne_bytes(buffer[16..20].try_into().expect("four bytes"));
    assert_eq!(code, 0, "the kernel answered errno {}", -code);
}

/// A netlink message under construction.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | REQUEST).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        Self { bytes }
    }

    fn link(index: u32, up: u32, flags: u16) -> Self {
        let mut message = Self::new(RTM_NEWLINK, flags, &[0, 0, 0, 0]);
        for word in [index, up, up] {
            message.bytes.extend(word.to_ne_bytes());
        }
        message
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).expect("a short attribute");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.pad();
    }

    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.attribute(kind, &[]);
        fill(self);
        let length = u16::try_from(self.bytes.len() - start).expect("a short attribute");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    pub fn request_ack(&mut self) {
        self.bytes[6] |= ACK.to_ne_bytes()[0];
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("a short message");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.pad();
        self.bytes
    }
}

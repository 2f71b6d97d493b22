//! Runs the lines of a case in a namespace.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;

use crate::common::namespace::Namespace;
use crate::common::tool;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Ip,
    /// A line whose failure may end the batch that it is in: `ip maddr add`, and a `master` that does not exist.
    IpAlone,
    Tc,
    Setting,
    Program,
}

fn tool_of(line: &str) -> Tool {
    match line.split(' ').next().unwrap_or_default() {
        "maddr" => Tool::IpAlone,
        "link" if line.contains(" master ") => Tool::IpAlone,
        "tc" => Tool::Tc,
        "sysctl" => Tool::Setting,
        "address" => Tool::Program,
        _ => Tool::Ip,
    }
}

/// Runs the lines in their order. Returns how many of them the kernel accepted.
pub(crate) fn run(ns: &Namespace, lines: &[String]) -> usize {
    let mut refused = 0;
    let is_one_batch = |a: &String, b: &String| {
        let tool = tool_of(a);
        tool == tool_of(b) && matches!(tool, Tool::Ip | Tool::Tc)
    };
    for batch in lines.chunk_by(is_one_batch) {
        let first = batch[0].as_str();
        refused += match tool_of(first) {
            Tool::Ip | Tool::IpAlone => refused_by(ns, "ip", "", batch),
            Tool::Tc => refused_by(ns, "tc", "tc ", batch),
            Tool::Setting => usize::from(!sets(ns, first)),
            Tool::Program => usize::from(!adds_address(ns, first)),
        };
    }
    lines.len() - refused
}

/// How many of the lines for ip(8) or tc(8) the kernel refuses.
fn refused_by(ns: &Namespace, tool: &str, prefix: &str, lines: &[String]) -> usize {
    let words = ["-n", ns.name(), "-force", "-batch", "-"];
    let mut tool = tool::command(tool, words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the batch");
    let mut stdin = tool.stdin.take().expect("the input of the batch");
    let lines = lines.iter().map(|line| &line[prefix.len()..]);
    let batch: String = lines.flat_map(|line| [line, "\n"]).collect();
    stdin.write_all(batch.as_bytes()).expect("the lines");
    drop(stdin);
    let ended = tool.wait_with_output().expect("the end of the batch");
    let errors = String::from_utf8_lossy(&ended.stderr);
    let failed = errors.matches("Command failed").count();
    failed.max(usize::from(!ended.status.success()))
}

fn sets(ns: &Namespace, line: &str) -> bool {
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    let [_, key, value] = words[..] else {
        return false;
    };
    let path = Path::new("/proc/sys/net").join(key);
    ns.enter(|| fs::write(path, value)).is_ok()
}

/// ip(8) sends no `IFA_PROTO` before 6.3.
fn adds_address(ns: &Namespace, line: &str) -> bool {
    const NEW_ADDRESS: u16 = 20;
    /// Request, acknowledge, create, replace.
    const FLAGS: u16 = 0x505;
    let words: Vec<&str> = line.split(' ').collect();
    let [_, address, dev, protocol] = words[..] else {
        return false;
    };
    let (ip, length) = address.split_once('/').expect("a prefix");
    let (family, octets) = match ip.parse().expect("an address") {
        IpAddr::V4(ip) => (2, ip.octets().to_vec()),
        IpAddr::V6(ip) => (10, ip.octets().to_vec()),
    };
    let index = ns.enter(|| if_nametoindex(dev)).unwrap_or(0);
    let mut body = vec![family, length.parse().expect("a length"), 0, 0];
    body.extend(index.to_ne_bytes());
    for (number, value) in [
        (1_u16, &octets[..]),
        (2, &octets[..]),
        (11, &[protocol.parse().expect("a protocol")]),
    ] {
        let length = u16::try_from(4 + value.len()).expect("a small number");
        body.extend(length.to_ne_bytes());
        body.extend(number.to_ne_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let length = u32::try_from(16 + body.len()).expect("a small number");
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(NEW_ADDRESS.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    let answer = ns.enter(|| {
        let socket = Socket::new(NETLINK_ROUTE).expect("a socket");
        socket.connect(&SocketAddr::new(0, 0)).expect("the kernel");
        socket.send(&message, 0).expect("a request");
        socket.recv_from_full().expect("an answer").0
    });
    answer[16..20] == [0; 4]
}

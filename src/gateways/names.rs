//! Host names as a pod has them: its /etc/hosts, then DNS by its /etc/resolv.conf, queried from inside its namespace.
//!
//! Nothing of the pod runs, and no link in its file system leads out of its root.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, TYPE};

use crate::checked;
use crate::inventory::procfs;
use crate::kernel::words;
use crate::model::pod::identity::Holder;
use crate::model::problem::GatewayCause;

/// A pod may have made the file: what is behind this many bytes is not read.
const MOST: u64 = 64 * 1024;
/// How long one name server has for one answer, where others or other attempts remain.
const ATTEMPT: Duration = Duration::from_secs(1);
/// `MAXNS` of resolv.conf(5).
const SERVERS: usize = 3;

/// A pod's name service: the root directory of one of its processes.
#[derive(Debug)]
pub(super) struct Resolver(OwnedFd);

impl Resolver {
    /// That of this process, if it is still in the pod's namespace.
    pub(super) fn of(holder: Option<Holder>, inode: u64) -> Result<Self, GatewayCause> {
        let holder = holder.ok_or(GatewayCause::NameWithoutProcess)?;
        let root = File::open(format!("/proc/{}/root", holder.pid)).map_err(unresolved)?;
        // Checked after it was opened: the pid may be another process's by now.
        if !procfs::is_in(holder, inode) {
            return Err(GatewayCause::NameWithoutProcess);
        }
        Ok(Self(root.into()))
    }

    /// The addresses of a name, IPv4 first.
    pub(super) fn resolve(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, GatewayCause> {
        let hosts = self.read("etc/hosts").unwrap_or_default();
        let known = in_hosts(&hosts, name);
        if !known.is_empty() {
            return Ok(known);
        }
        let config = ResolverConfig::parse(&self.read("etc/resolv.conf").map_err(unresolved)?);
        for candidate in config.candidates(name) {
            let mut found = config
                .query(&candidate, TYPE::A, deadline)
                .map_err(unresolved)?;
            // Servers that never answer questions for AAAA exist.
            let limit = if found.is_empty() {
                deadline
            } else {
                deadline.min(Instant::now() + ATTEMPT)
            };
            match config.query(&candidate, TYPE::AAAA, limit) {
                Ok(more) => found.extend(more),
                Err(error) if found.is_empty() => return Err(unresolved(error)),
                Err(_) => {}
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err(GatewayCause::NameNotFound)
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let found = File::from(openat2(&self.0, Path::new(path), how)?);
        if checked::is_regular(&found).is_err() {
            return Err(io::Error::other(format!("/{path} is not a file")));
        }
        let file = checked::reopen(&found)?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn unresolved(error: impl Into<io::Error>) -> GatewayCause {
    let error = words(&error.into());
    GatewayCause::NameUnresolved { error }
}

/// The words of the lines of a file, without comments.
fn lines(text: &str) -> impl Iterator<Item = std::str::SplitWhitespace<'_>> {
    let lines = text.lines();
    lines.map(|line| {
        let end = line.find(['#', ';']).unwrap_or(line.len());
        line[..end].split_whitespace()
    })
}

/// The addresses of a name in hosts(5).
fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for mut words in lines(text) {
        let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
        if words.any(|word| word.eq_ignore_ascii_case(name)) {
            found.extend(address);
        }
    }
    found.sort_by_key(IpAddr::is_ipv6);
    found
}

/// The settings of resolv.conf(5).
#[derive(Debug, PartialEq, Eq)]
struct ResolverConfig {
    servers: Vec<IpAddr>,
    search: Vec<String>,
    ndots: usize,
}

impl ResolverConfig {
    fn parse(text: &str) -> Self {
        let mut config = Self {
            servers: Vec::new(),
            search: Vec::new(),
            ndots: 1,
        };
        for mut words in lines(text) {
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    config.servers.extend(server);
                }
                Some("search" | "domain") => config.search = words.map(str::to_owned).collect(),
                Some("options") => {
                    let mut ndots = words.filter_map(|word| word.strip_prefix("ndots:"));
                    let ndots = ndots.next().and_then(|number| number.parse().ok());
                    config.ndots = ndots.unwrap_or(config.ndots);
                }
                _ => {}
            }
        }
        config.servers.truncate(SERVERS);
        config
    }

    /// The complete names to look up, in order.
    fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(complete) = name.strip_suffix('.') {
            return vec![complete.to_owned()];
        }
        let searched = self.search.iter().map(|domain| {
            let domain = domain.trim_matches('.');
            format!("{name}.{domain}")
        });
        let mut candidates: Vec<String> = searched.collect();
        let at = if name.matches('.').count() >= self.ndots {
            0
        } else {
            candidates.len()
        };
        candidates.insert(at, name.to_owned());
        candidates
    }

    /// Asks the servers in turn until one answers; no address is an answer too.
    fn query(&self, name: &str, kind: TYPE, deadline: Instant) -> io::Result<Vec<IpAddr>> {
        let mut failure = io::Error::other("resolv.conf has no nameserver");
        for server in self.servers.iter().cycle() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let begin = Instant::now();
            match query(*server, name, kind, left.min(ATTEMPT)) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    failure = io::Error::other(format!("nameserver {server}: {}", words(&error)));
                }
            }
            // A refusal comes at once: the next question is not earlier than after silence.
            let rest = ATTEMPT.saturating_sub(begin.elapsed());
            std::thread::sleep(rest.min(deadline.saturating_duration_since(Instant::now())));
        }
        Err(failure)
    }
}

/// One query to one server.
fn query(server: IpAddr, name: &str, kind: TYPE, limit: Duration) -> io::Result<Vec<IpAddr>> {
    const PORT: u16 = 53;
    let invalid = |error: simple_dns::SimpleDnsError| io::Error::other(error.to_string());
    let any = match server {
        IpAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        IpAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect((server, PORT))?;
    let id = socket.local_addr()?.port();
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).map_err(invalid)?;
    let question = Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false);
    packet.questions.push(question);
    socket.send(&packet.build_bytes_vec().map_err(invalid)?)?;
    let deadline = Instant::now() + limit;
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            length => length?,
        };
        if let Some(found) = addresses(id, buffer.get(..length).unwrap_or_default()) {
            return found;
        }
    }
}

/// The addresses in an answer; `None` when it is not the answer to that query.
fn addresses(id: u16, packet: &[u8]) -> Option<io::Result<Vec<IpAddr>>> {
    use simple_dns::RCODE;
    let packet = Packet::parse(packet).ok()?;
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    match packet.rcode() {
        RCODE::NoError | RCODE::NameError => {}
        other => return Some(Err(io::Error::other(format!("answers {other:?}")))),
    }
    let address = |record: &simple_dns::ResourceRecord<'_>| match &record.rdata {
        RData::A(a) => Some(IpAddr::from(a.address.to_be_bytes())),
        RData::AAAA(aaaa) => Some(IpAddr::from(aaaa.address.to_be_bytes())),
        _ => None,
    };
    Some(Ok(packet.answers.iter().filter_map(address).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_list_is_used_as_resolv_conf_says() {
        let text =
            "# of the cluster\nnameserver 10.96.0.10\nsearch a.local b.local\noptions x ndots:2\n";
        let config = ResolverConfig::parse(text);
        assert_eq!(config.servers, [IpAddr::from([10, 96, 0, 10])]);
        assert_eq!(config.candidates("db"), ["db.a.local", "db.b.local", "db"]);
        assert_eq!(config.candidates("a.b.c")[0], "a.b.c");
        assert_eq!(config.candidates("db."), ["db"]);
    }

    #[test]
    fn hosts_has_every_address_of_a_name() {
        let text = "127.0.0.1 localhost\nfd00::5 db\n10.0.0.5\tdb.local DB # the database\n";
        let found: Vec<IpAddr> = ["10.0.0.5", "fd00::5"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!(in_hosts(text, "db"), found);
        assert_eq!(in_hosts(text, "database"), [] as [IpAddr; 0]);
    }

    #[test]
    fn a_damaged_answer_is_no_answer() {
        assert!(addresses(1, &[0, 1, 0x80]).is_none());
        assert!(addresses(1, &[0xff; 600]).is_none());
    }
}

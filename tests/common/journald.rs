//! A replacement for journald: it reads its socket (systemd's "Native Journal Protocol") from the start, slowly if a
//! test wants that, or not at all.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use super::node::Node;

/// The last entry, sent after everything else.
const END: &[u8] = b"\0";

pub struct Journald {
    folder: PathBuf,
    reader: JoinHandle<Vec<Entry>>,
}

/// A journald that has ended.
pub struct DeadJournald(PathBuf);

impl DeadJournald {
    pub fn netfix(&self, node: &Node, words: &str) -> Command {
        beside(node, &self.0, words)
    }
}

fn beside(node: &Node, folder: &Path, words: &str) -> Command {
    let script = format!(
        "mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/journal && mount --bind {} /run/systemd/journal && exec \"$@\"",
        folder.display()
    );
    node.netfix_command(
        &[
            "timeout", "600", "unshare", "--mount", "sh", "-c", &script, "sh",
        ],
        words,
    )
}

/// One record: its fields.
pub type Entry = BTreeMap<String, String>;

impl Journald {
    pub fn start(node: &Node) -> Self {
        Self::slow(node, Duration::ZERO)
    }

    /// It pauses after each entry.
    pub fn slow(node: &Node, pause: Duration) -> Self {
        let (folder, socket) = bound(node);
        Self {
            folder,
            reader: std::thread::spawn(move || read_to_the_end(&socket, pause)),
        }
    }

    /// `netfix WORDS` on a machine with this journald.
    pub fn netfix(&self, node: &Node, words: &str) -> Command {
        beside(node, &self.folder, words)
    }

    /// It ends, and its socket file stays.
    pub fn end(self) -> DeadJournald {
        let folder = self.folder.clone();
        drop(self.entries());
        DeadJournald(folder)
    }

    /// The entries so far, in order.
    pub fn entries(self) -> Vec<Entry> {
        let end = UnixDatagram::unbound().expect("a socket");
        end.send_to(END, self.folder.join("socket"))
            .expect("the stand-in reads");
        self.reader.join().expect("the stand-in understands all")
    }
}

/// A journald that has a socket and does not read it.
pub struct StalledJournald {
    folder: PathBuf,
    _socket: UnixDatagram,
}

impl StalledJournald {
    /// Its queue is already full.
    pub fn start(node: &Node) -> Self {
        let (folder, socket) = bound(node);
        let stuffed = UnixDatagram::unbound().expect("a socket");
        stuffed
            .set_nonblocking(true)
            .expect("a socket that does not wait");
        let is_full = |_| {
            stuffed
                .send_to(b"MESSAGE=full\n", folder.join("socket"))
                .is_err()
        };
        assert!((0..10_000).any(is_full), "the queue has no end");
        Self {
            folder,
            _socket: socket,
        }
    }

    pub fn netfix(&self, node: &Node, words: &str) -> Command {
        beside(node, &self.folder, words)
    }
}

fn bound(node: &Node) -> (PathBuf, UnixDatagram) {
    let folder = node.temp().join("journal");
    std::fs::create_dir_all(&folder).expect("a folder");
    // The number of datagrams that the kernel queues is a setting of the namespace; 10 in a new one.
    let bind = || UnixDatagram::bind(folder.join("socket")).expect("a socket");
    let socket = node.ns.enter(bind);
    (folder, socket)
}

fn read_to_the_end(socket: &UnixDatagram, pause: Duration) -> Vec<Entry> {
    let mut buffer = vec![0; 1 << 20];
    let mut entries = Vec::new();
    loop {
        let length = socket.recv(&mut buffer).expect("a datagram");
        match &buffer[..length] {
            END => return entries,
            // The first message of a client is empty: it only tests the socket.
            [] => {}
            entry => {
                entries.push(parse(entry));
                std::thread::sleep(pause);
            }
        }
    }
}

/// `NAME=value` and a newline, or the name alone, then the value's length in 64 bits, the value and a newline.
fn parse(mut rest: &[u8]) -> Entry {
    let mut entry = Entry::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let (name, value, after) = if let Some(at) = line.iter().position(|byte| *byte == b'=') {
            (&line[..at], &line[at + 1..], after)
        } else {
            let (length, after) = after.split_first_chunk::<8>().expect("a length");
            let length = usize::try_from(u64::from_le_bytes(*length)).expect("a length");
            assert_eq!(
                after.get(length),
                Some(&b'\n'),
                "a value has another length"
            );
            (line, &after[..length], &after[length + 1..])
        };
        entry.insert(text(name), text(value));
        rest = after;
    }
    assert!(rest.is_empty(), "half a field: {rest:?}");
    entry
}

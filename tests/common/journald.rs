//! A stand-in for journald: it takes what is sent to its socket (systemd's "Native Journal Protocol") and, when it is
//! told to, takes nothing.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::node::Node;

pub struct Journald {
    socket: UnixDatagram,
    folder: PathBuf,
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
    node.netfix_command(&["timeout", "60", "unshare", "--mount", "sh", "-c", &script, "sh"], words)
}

/// One record: its fields.
pub type Entry = BTreeMap<String, String>;

impl Journald {
    pub fn start(node: &Node) -> Self {
        let folder = node.temp().join("journal");
        std::fs::create_dir_all(&folder).expect("a folder");
        let socket = UnixDatagram::bind(folder.join("socket")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a time limit");
        Self { socket, folder }
    }

    /// `netfix WORDS` where this is the journald of the machine.
    pub fn netfix(&self, node: &Node, words: &str) -> Command {
        beside(node, &self.folder, words)
    }

    /// It ends, and its socket's file stays.
    pub fn end(self) -> DeadJournald {
        DeadJournald(self.folder)
    }

    /// What has come, in its order.
    pub fn entries(&self) -> Vec<Entry> {
        let mut buffer = vec![0; 1 << 20];
        let mut entries = Vec::new();
        while let Ok(length) = self.socket.recv(&mut buffer) {
            // The first message of a client is empty: it only tries the socket.
            if length > 0 {
                entries.push(parse(&buffer[..length]));
            }
        }
        entries
    }
}

/// `NAME=value` to a line, or the name alone, then the value's length in 64 bits, the value and a newline.
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
            assert_eq!(after.get(length), Some(&b'\n'), "a value has another length");
            (line, &after[..length], &after[length + 1..])
        };
        entry.insert(text(name), text(value));
        rest = after;
    }
    assert!(rest.is_empty(), "half a field: {rest:?}");
    entry
}

//! Docker's API on a Unix socket: the part that netfix uses.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

/// A running container.
#[derive(Debug, Clone, Default)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub network_mode: String,
    pub labels: Vec<(&'static str, String)>,
    pub pid: u32,
    pub netns: PathBuf,
}

/// Docker, or podman behind the same API.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    pub is_podman: bool,
    pub containers: Vec<Container>,
    /// Answers everything with status 500.
    pub fails: bool,
    /// Never answers an inspect of one container.
    pub hangs: bool,
}

pub struct FakeDocker {
    pub socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FakeDocker {
    pub fn start(socket: &Path, containers: Vec<Container>) -> Self {
        Self::with(
            socket,
            Answers {
                containers,
                ..Answers::default()
            },
        )
    }

    pub fn podman(socket: &Path, containers: Vec<Container>) -> Self {
        Self::with(
            socket,
            Answers {
                is_podman: true,
                containers,
                ..Answers::default()
            },
        )
    }

    /// A Docker that answers everything with status 500.
    pub fn failing(socket: &Path) -> Self {
        Self::with(
            socket,
            Answers {
                fails: true,
                ..Answers::default()
            },
        )
    }

    /// A Docker that never answers an inspect of one container.
    pub fn hanging(socket: &Path, containers: Vec<Container>) -> Self {
        Self::with(
            socket,
            Answers {
                hangs: true,
                containers,
                ..Answers::default()
            },
        )
    }

    fn with(socket: &Path, answers: Answers) -> Self {
        let listener = UnixListener::bind(socket);
        let listener = listener.unwrap_or_else(|e| panic!("cannot bind {}: {e}", socket.display()));
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let answers = answers.clone();
                thread::spawn(move || answer(&stream, &answers));
            }
        };
        Self {
            socket: socket.to_owned(),
            is_over,
            thread: Some(thread::spawn(serve)),
        }
    }
}

impl Drop for FakeDocker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn answer(mut stream: &UnixStream, answers: &Answers) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    // An HTTP request without a body ends with an empty line.
    let _ = lines.find(String::is_empty);
    let words: Vec<&str> = target
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_matches('/')
        .split('/')
        .collect();
    let found = match words[..] {
        _ if answers.fails => None,
        ["_ping"] => Some(json!("OK")),
        ["containers", "json"] => Some(list(&answers.containers, &target)),
        ["containers", id, "json"] if !answers.hangs => answers
            .containers
            .iter()
            .find(|container| container.id == id)
            .map(inspected),
        // podman looks up packages before it reports its version: this takes seconds on a slow disk.
        ["version"] | ["containers", _, "json"] => hang(),
        _ => None,
    };
    let status = match &found {
        Some(_) => "200 OK",
        None if answers.fails => "500 Internal Server Error",
        None => "404 Not Found",
    };
    let body = found
        .unwrap_or_else(|| json!({"message": "out of order"}))
        .to_string();
    let server = if answers.is_podman {
        "Libpod/9.8.7 (linux)"
    } else {
        "Docker/9.8.7 (linux)"
    };
    let head =
        format!("HTTP/1.1 {status}\r\nServer: {server}\r\nContent-Type: application/json\r\n");
    let length = format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{length}{body}").as_bytes());
}

fn hang() -> ! {
    loop {
        thread::park();
    }
}

fn list(containers: &[Container], target: &str) -> Value {
    assert!(
        target.contains("running") && target.contains("paused"),
        "{target} requests containers that are not running"
    );
    let item = |container: &Container| {
        // podman reports this mode for every container.
        json!({"Id": container.id, "Names": [format!("/{}", container.name)], "State": "running",
            "Labels": labels(container), "HostConfig": {"NetworkMode": "host"}})
    };
    containers.iter().map(item).collect()
}

fn inspected(container: &Container) -> Value {
    json!({
        "Id": container.id, "Name": format!("/{}", container.name),
        "State": {"Status": "running", "Running": true, "Paused": false, "Pid": container.pid},
        "HostConfig": {"NetworkMode": container.network_mode},
        "Config": {"Labels": labels(container)},
        "NetworkSettings": {"SandboxKey": container.netns},
    })
}

fn labels(container: &Container) -> Value {
    container
        .labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

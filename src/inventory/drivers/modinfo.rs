//! modinfo(8): it reads compressed modules too.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long it may take: a disk may be slow, and a check must end.
const LIMIT: Duration = Duration::from_secs(3);
/// How much of its answer is read.
const LONGEST: u64 = 64 << 10;

/// The files of firmware that the module of this name names, which is installed for the kernel that runs; none where it cannot be read.
pub(super) fn firmware(module: &str) -> Vec<String> {
    let mut command = Command::new("modinfo");
    command
        .args(["-F", "firmware", "--", module])
        // That of cron has no folder of administrators.
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return Vec::new();
    };
    let (sender, answer) = channel();
    if let Some(output) = child.stdout.take() {
        let read = move || {
            let mut text = String::new();
            let read = output.take(LONGEST).read_to_string(&mut text);
            sender.send(read.map(|_| text)).is_ok()
        };
        // Without a thread there is no sender, and so no answer.
        let _ = thread::Builder::new().spawn(read);
    }
    let text = answer.recv_timeout(LIMIT);
    // One that is late may be in the kernel, which ends it when it likes.
    let _ = if text.is_ok() {
        child.wait().map(drop)
    } else {
        child.kill()
    };
    let text = text.ok().and_then(Result::ok).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

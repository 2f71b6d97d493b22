//! Other programs: found, run, and their failures reported with their own output.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Once;

pub const CNI_MACVLAN: &str = "/usr/lib/cni/macvlan";
const NEEDED: [&str; 23] = [
    "ip",
    "tc",
    "bridge",
    "python3",
    "strace",
    "tcpdump",
    "setpriv",
    "nsenter",
    "unshare",
    "timeout",
    "sleep",
    "jq",
    "containerd",
    "ctr",
    "runc",
    "busybox",
    "fish",
    "zsh",
    "script",
    "iptables",
    "ping",
    "dnsmasq",
    "keepalived",
];

/// Fails a test that cannot run, with the list of missing tools: such a test must never pass.
pub fn require_everything() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        assert!(
            nix::unistd::geteuid().is_root(),
            "the native tests make network namespaces: run them as root"
        );
        let missing: Vec<_> = NEEDED.into_iter().filter(|tool| !on_path(tool)).collect();
        assert!(missing.is_empty(), "missing {missing:?}: run scripts/setup");
        assert!(
            Path::new(CNI_MACVLAN).exists(),
            "missing {CNI_MACVLAN}: run scripts/setup"
        );
    });
}

fn on_path(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .any(|dir| Path::new(dir).join(tool).exists())
}

/// The number in a variable of the environment.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}: {e}")))
}

/// The words of a command line, which need not be UTF-8.
pub fn words(line: &[u8]) -> impl Iterator<Item = &OsStr> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty()).map(OsStr::from_bytes)
}

/// Bytes as a text in which two that differ still do: a byte that is not UTF-8 is named by its number.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter();
        text.extend(invalid.map(|byte| format!("<{byte:02x}>")));
    }
    text
}

/// Runs a command until it ends; `Err` holds its output when it failed.
pub fn try_run(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    result_of(command, &output)
}

/// The same with an input. What the command prints, or the input, must fit into a pipe.
pub fn try_feed(command: &mut Command, input: &str) -> Result<String, String> {
    let fed = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = fed.stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    let written = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the end of a child");
    let result = result_of(command, &output)?;
    written
        .transpose()
        .map_err(|error| format!("{command:?}: {error}"))?;
    Ok(result)
}

fn result_of(command: &Command, output: &Output) -> Result<String, String> {
    let text = readable(&output.stdout);
    if output.status.success() {
        return Ok(text);
    }
    Err(format!(
        "{command:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> String {
    try_run(command).unwrap_or_else(|e| panic!("{e}"))
}

/// The same with an input.
pub fn feed(command: &mut Command, input: &str) -> String {
    try_feed(command, input).unwrap_or_else(|e| panic!("{e}"))
}

/// ip(8) with its arguments in one string.
pub fn ip(words: &str) -> String {
    run(&mut command("ip", words.split_whitespace()))
}

pub fn command<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Writes a program, in a process of its own: the children of other threads inherit a file that this process has open for
/// writing, and until they execute their programs no process can execute that file (`ETXTBSY`, execve(2)).
pub fn program(text: &str, path: &Path) {
    let script = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
    let words = ["-c", script, "sh", text].map(OsStr::new);
    run(&mut command(
        "sh",
        words.into_iter().chain([path.as_os_str()]),
    ));
}

/// Copies a program; for the same reason in a process of its own.
pub fn copy_program(from: &str, to: &Path) {
    run(&mut command("cp", [OsStr::new(from), to.as_os_str()]));
}

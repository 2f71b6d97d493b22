//! Whether the programs of a window exist, and are what the kernel can run. What is found out after the pause of kubelet has cost a pause,
//! and what is found out when the rollback starts costs the pods.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use crate::checked;
use crate::model::problem::CommandCause;
use crate::model::{Bytes, Problem};
use crate::plan::drivers::command;
use crate::upgrade::request::UpgradeRequest;

/// Runs `--before`, `--after` and the rollback.
const SHELL: &str = "sh";
/// Shells whose first argument is a script, unless it is an option.
const SHELLS: [&str; 5] = [SHELL, "bash", "dash", "ash", "ksh"];
/// What the kernel reads of a file to find its format (`BINPRM_BUF_SIZE` of `linux/binfmts.h`).
const HEAD: u64 = 256;
/// Formats that other programs run have a file here, beside two of the kernel.
const REGISTERED: &str = "/proc/sys/fs/binfmt_misc";

/// The programs that are missing or cannot be run: COMMAND, the script that it gives to a shell, and those of the other commands.
pub(crate) fn missing(request: &UpgradeRequest<'_>) -> Vec<Problem> {
    let rollback = request.rollback.map(|rollback| rollback.command);
    let hooks = [request.before, request.after, rollback];
    let command: Vec<&str> = request.command.iter().map(String::as_str).collect();
    let faults = fault_of(&command, |_| false).into_iter();
    let faults = faults.chain(hooks.into_iter().flatten().filter_map(fault_of_hook));
    faults.map(|(word, cause)| cause.error(word)).collect()
}

/// The modules that COMMAND, the rollback or a hook loads by a name that modprobe(8) does not know. A package that COMMAND installs may
/// bring one.
pub(crate) fn unknown_modules(request: &UpgradeRequest<'_>) -> Vec<Problem> {
    let rollback = request.rollback.map(|rollback| rollback.command);
    let hooks = [request.before, request.after, rollback];
    let lines = hooks.into_iter().flatten();
    let lines = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
    let texts = lines.map(|words: Vec<String>| text(&words));
    let texts: Vec<String> = [text(request.command)].into_iter().chain(texts).collect();
    let names: BTreeSet<&str> = texts.iter().flat_map(|text| command::loads(text)).collect();
    let names = names.into_iter().filter(|name| is_unknown(name));
    names
        .map(|name| CommandCause::UnknownModule.warning(name))
        .collect()
}

/// Whether modprobe(8) would not load it, for the kernel that runs. A machine without modprobe tells nothing.
fn is_unknown(module: &str) -> bool {
    let mut modprobe = Command::new("modprobe");
    let tried = modprobe
        .args(["-n", "-q", module])
        .stdin(Stdio::null())
        .output();
    tried.is_ok_and(|tried| !tried.status.success())
}

/// The words of a command, and the text of the script that it is or gives to a shell.
pub(crate) fn text(words: &[String]) -> String {
    /// More than scripts have.
    const LONGEST: u64 = 256 << 10;
    let read = |path: &Path| {
        let mut text = Vec::new();
        checked::open(path, checked::is_regular)?
            .take(LONGEST)
            .read_to_end(&mut text)?;
        Ok(text)
    };
    let script = |word: &String| {
        let known = if word.contains('/') {
            None
        } else {
            in_path(word, executable).ok()
        };
        let text: io::Result<Vec<u8>> = read(&known.unwrap_or_else(|| PathBuf::from(word)));
        let text = text.ok().filter(|text| !text.starts_with(b"\x7fELF"))?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    let scripts = words.iter().take(2).filter_map(script);
    [words.join(" ")]
        .into_iter()
        .chain(scripts)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The word of a command that keeps it from running, and why.
fn fault_of<'a>(
    words: &[&'a str],
    is_builtin: impl Fn(&str) -> bool,
) -> Option<(&'a str, CommandCause)> {
    let (program, arguments) = words.split_first()?;
    if is_builtin(program) {
        return None;
    }
    if let Some(cause) = fault(program) {
        return Some((program, cause));
    }
    let name = Path::new(program).file_name().unwrap_or_default();
    let is_shell = SHELLS.iter().any(|shell| name == *shell);
    let script = arguments
        .first()
        .filter(|word| is_shell && !word.starts_with('-'))?;
    Some((script, unreadable(script)?))
}

/// The same of a line for the shell: its syntax, and the first command, if the shell takes its words as they are. What a later one runs may
/// be made by an earlier one.
fn fault_of_hook(line: &str) -> Option<(&str, CommandCause)> {
    let shell = |arguments: &[&str]| {
        let mut shell = Command::new(SHELL);
        shell.args(arguments).stdin(Stdio::null()).output()
    };
    let Ok(parsed) = shell(&["-n", "-c", line]) else {
        return Some((SHELL, fault(SHELL)?));
    };
    if !parsed.status.success() {
        let error = String::from_utf8_lossy(&parsed.stderr).trim().to_owned();
        return Some((line, CommandCause::NotAProgram { error }));
    }
    let first = line.split(['&', '|', ';', '\n']).next().unwrap_or_default();
    let is_plain = |one: char| one.is_ascii_alphanumeric() || " \t/._+:@%,-".contains(one);
    let words: Vec<_> = first.split_ascii_whitespace().collect();
    if !first.chars().all(is_plain) {
        return None;
    }
    fault_of(&words, |word| {
        // The path of a program, or the name of a builtin.
        let known = shell(&["-c", "command -v \"$1\"", SHELL, word]);
        known.is_ok_and(|known| known.status.success() && !known.stdout.contains(&b'/'))
    })
}

/// Why execvp(3) would not start a program; `None` where it would.
fn fault(program: &str) -> Option<CommandCause> {
    let path = if program.contains('/') {
        executable(Path::new(program)).map_err(Some)
    } else {
        in_path(program, executable)
    };
    match path {
        Ok(path) => unknown_format(&path),
        Err(error) => Some(
            error
                .as_ref()
                .map_or(CommandCause::NotInPath, not_a_program),
        ),
    }
}

/// Why the kernel would not run this file: execvp(3) of a static program does not fall back to a shell.
fn unknown_format(path: &Path) -> Option<CommandCause> {
    let mut head = Vec::new();
    // What may be run may be unreadable.
    File::open(path)
        .and_then(|file| file.take(HEAD).read_to_end(&mut head))
        .ok()?;
    let is_registered = || fs::read_dir(REGISTERED).is_ok_and(|all| all.count() > 2);
    let Some(line) = head.strip_prefix(b"#!") else {
        let is_known = head.starts_with(b"\x7fELF") || is_registered();
        return (!is_known).then(|| not_a_program(&Errno::ENOEXEC.into()));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = words.find(|word| !word.is_empty()).unwrap_or_default();
    let interpreter = Path::new(OsStr::from_bytes(interpreter));
    let error = executable(interpreter).err()?;
    Some(CommandCause::NoInterpreter {
        interpreter: Bytes::from(interpreter),
        error: error.to_string(),
    })
}

/// Why a shell would not read this script: from the working directory, else from PATH.
fn unreadable(script: &str) -> Option<CommandCause> {
    let read = |path: &Path| File::open(path).map(|_| path.to_owned());
    let error = read(Path::new(script)).err()?;
    if !script.contains('/') && in_path(script, read).is_ok() {
        return None;
    }
    Some(not_a_program(&error))
}

/// The file of this name in the first folder of PATH where it is as it should be; else what is wrong where it is.
fn in_path(
    name: &str,
    test: impl Fn(&Path) -> io::Result<PathBuf>,
) -> Result<PathBuf, Option<io::Error>> {
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for folder in env::split_paths(&folders) {
        // An empty one is the working directory.
        match test(&folder.join(name)) {
            Ok(path) => return Ok(path),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(refused)
}

fn executable(path: &Path) -> io::Result<PathBuf> {
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::IsADirectory.into());
    }
    access(path, AccessFlags::X_OK)?;
    Ok(path.to_owned())
}

fn not_a_program(error: &io::Error) -> CommandCause {
    let error = error.to_string();
    CommandCause::NotAProgram { error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_an_executable_file_and_no_builtin() {
        for program in ["sh", "/bin/sh"] {
            assert_eq!(fault(program), None, "{program}");
        }
        for builtin in ["export", "exec", "no-such-program"] {
            assert_eq!(fault(builtin), Some(CommandCause::NotInPath), "{builtin}");
        }
        for file in ["/", "/etc/passwd", "/nowhere/program", "./no-such-program"] {
            let fault = fault(file);
            assert!(
                matches!(fault, Some(CommandCause::NotAProgram { .. })),
                "{file}: {fault:?}"
            );
        }
    }

    #[test]
    fn a_file_that_the_kernel_cannot_run_is_no_program() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content, runs) in [
            ("script", &b"#! /bin/sh -e\nexit\n"[..], true),
            ("crlf", b"#!/bin/sh\r\nexit\r\n", false),
            ("interpreter", b"#!/usr/bin/pyton3\n", false),
            ("nothing", b"#!\n", false),
            ("words", b"exit 0\n", false),
            ("empty", b"", false),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).expect(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect(name);
            let fault = fault(path.to_str().expect(name));
            assert_eq!(fault.is_none(), runs, "{name}: {fault:?}");
        }
    }

    #[test]
    fn a_line_for_the_shell_has_its_syntax_and_a_first_command() {
        for line in [
            "",
            "true",
            "exec sh -c true",
            "cd / && ./nothing",
            "sh Cargo.toml",
            "cp a b; sh /nowhere/script",
            "X=1 no-such-program",
            "[ -e /x ] || no-such-program",
            "if true; then no-such-program; fi",
            "\"$NETFIX\" now",
            "# nothing",
        ] {
            assert_eq!(fault_of_hook(line), None, "{line}");
        }
        for (line, word) in [
            ("sh /nowhere/script", "/nowhere/script"),
            ("no-such-program -x; true", "no-such-program"),
            ("/nowhere/program && true", "/nowhere/program"),
            ("if true; then", "if true; then"),
            ("echo 'x", "echo 'x"),
        ] {
            let found = fault_of_hook(line);
            assert_eq!(found.map(|found| found.0), Some(word), "{line}");
        }
    }

    #[test]
    fn the_text_of_a_command_has_its_script() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("upgrade");
        fs::write(&script, "#!/bin/sh\nrmmod i40e\n").expect("a script");
        let script = script.to_str().expect("a path").to_owned();
        for words in [vec!["sh".to_owned(), script.clone()], vec![script]] {
            let text = text(&words);
            assert!(
                text.starts_with(&words.join(" ")) && text.contains("rmmod i40e"),
                "{text}"
            );
        }
        assert_eq!(
            text(&["no-such-program".to_owned(), "-x".to_owned()]),
            "no-such-program -x"
        );
    }

    #[test]
    fn a_script_is_a_file_that_can_be_read() {
        assert_eq!(unreadable("Cargo.toml"), None);
        assert_eq!(unreadable("sh"), None, "a shell reads one from PATH");
        for script in ["no-such-script", "/nowhere/script"] {
            assert!(unreadable(script).is_some(), "{script}");
        }
    }
}

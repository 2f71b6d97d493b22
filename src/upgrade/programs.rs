//! Whether the programs of a window exist. What is found out after the pause of kubelet has cost a pause.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::model::Problem;
use crate::model::problem::CommandCause;
use crate::upgrade::request::UpgradeRequest;

/// Runs `--before`, `--after` and the rollback.
const SHELL: &str = "sh";
/// Shells whose first argument is a script, unless it is an option.
const SHELLS: [&str; 5] = [SHELL, "bash", "dash", "ash", "ksh"];

/// The programs that are missing: COMMAND, the script that it gives to a shell, and the shell of the other commands.
pub(crate) fn missing(request: &UpgradeRequest<'_>) -> Vec<Problem> {
    let rollback = request.rollback.map(|rollback| rollback.command);
    let mut hooks = [request.before, request.after, rollback].into_iter();
    let mut problems = Vec::new();
    if let Some((program, arguments)) = request.command.split_first() {
        problems.extend(fault(program).map(|cause| cause.error(program.as_str())));
        let name = Path::new(program).file_name().unwrap_or_default();
        let script = arguments.first().filter(|word| !word.starts_with('-'));
        if let Some(script) = script.filter(|_| SHELLS.iter().any(|shell| name == *shell)) {
            problems.extend(unreadable(script).map(|cause| cause.error(script.as_str())));
        }
    }
    if hooks.any(|hook| hook.is_some()) {
        problems.extend(fault(SHELL).map(|cause| cause.error(SHELL)));
    }
    problems
}

/// Why execvp(3) would not start a program; `None` where it would.
fn fault(program: &str) -> Option<CommandCause> {
    if program.contains('/') {
        let error = executable(Path::new(program)).err();
        return error.as_ref().map(not_a_program);
    }
    let mut refused = None;
    for error in in_path(program, executable)? {
        if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            refused = Some(error);
        }
    }
    let refused = refused.as_ref();
    Some(refused.map_or(CommandCause::NotInPath, not_a_program))
}

/// Why a shell would not read this script: from the working directory, else from PATH.
fn unreadable(script: &str) -> Option<CommandCause> {
    let read = |path: &Path| File::open(path).map(drop);
    let error = read(Path::new(script)).err()?;
    if !script.contains('/') {
        in_path(script, read)?;
    }
    Some(not_a_program(&error))
}

/// What is wrong with the file of this name in each folder of PATH; `None` where one is as it should be.
fn in_path(name: &str, test: impl Fn(&Path) -> io::Result<()>) -> Option<Vec<io::Error>> {
    let folders = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut errors = Vec::new();
    for folder in env::split_paths(&folders) {
        // An empty one is the working directory.
        match test(&folder.join(name)) {
            Ok(()) => return None,
            Err(error) => errors.push(error),
        }
    }
    Some(errors)
}

fn executable(path: &Path) -> io::Result<()> {
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::IsADirectory.into());
    }
    Ok(access(path, AccessFlags::X_OK)?)
}

fn not_a_program(error: &io::Error) -> CommandCause {
    let error = error.to_string();
    CommandCause::NotAProgram { error }
}

#[cfg(test)]
mod tests {
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
    fn a_script_is_a_file_that_can_be_read() {
        assert_eq!(unreadable("Cargo.toml"), None);
        assert_eq!(unreadable("sh"), None, "a shell reads one from PATH");
        for script in ["no-such-script", "/nowhere/script"] {
            assert!(unreadable(script).is_some(), "{script}");
        }
    }
}

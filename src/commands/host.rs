//! `netfix host`: a command in the namespaces of process 1, for a container that has no nsenter(1).

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process;

use crate::kernel;
use crate::report;

/// Where programs are, if the image does not set `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The exit codes of env(1) and the shells.
const CANNOT_START: u8 = 126;
const NOT_FOUND: u8 = 127;
const REFUSED: u8 = 4;

/// Replaces this process by the command on the host. Returns only if that fails, with an exit code.
#[must_use]
pub fn on_host(command: &[OsString]) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        return REFUSED;
    };
    if let Err(error) = kernel::enter_host() {
        report::cannot_enter_host(&error);
        return REFUSED;
    }
    let mut command = process::Command::new(program);
    command.args(arguments);
    if env::var_os("PATH").is_none_or(|path| path.is_empty()) {
        command.env("PATH", PATH);
    }
    let error = command.exec();
    report::cannot_start(program, &error);
    if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        CANNOT_START
    }
}

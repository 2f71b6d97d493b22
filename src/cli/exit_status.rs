//! The exit codes: one table for the manual pages, the documentation and the module of Ansible; and the end for wrong usage.

use std::env;
use std::io::{self, Write};
use std::process;

use clap::error::ErrorKind;

/// The exit codes of each command, without that of wrong usage.
const EXIT_STATUS: &[(&str, &str)] = &[
    (
        "snapshot",
        "0  every pod is saved\n\
            1  no pod is saved, or every pod has lost an interface since its good checkpoint\n\
            4  refused before anything was changed: no such pod, a runtime cannot be queried, the lock is held, not root\n\
            5  incomplete: some pods, or parts of one, are not saved; stderr names each",
    ),
    (
        "list",
        "0  done\n1  no checkpoint can be read, or the answer cannot be written\n4  refused: no such pod, no such generation, not root\n5  some checkpoints cannot be read",
    ),
    (
        "show",
        "0  done\n1  the checkpoint cannot be read, or the answer cannot be written\n4  refused: no pod, or more than one, fits POD; no such generation, not root",
    ),
    (
        "diff",
        "0  nothing is missing\n\
            1  no pod can be compared\n\
            3  something is missing or differs\n\
            4  refused: no such pod, no checkpoint of this boot, a runtime cannot be queried, not root\n\
            5  some pods cannot be compared; stderr names each",
    ),
    (
        "plan",
        "0  done; with --exit-code: nothing is missing\n\
            1  no pod can be compared\n\
            3  with --exit-code: something is missing or differs\n\
            4  refused: no such pod, no checkpoint of this boot, a runtime cannot be queried, not root\n\
            5  some pods cannot be restored; stderr names each",
    ),
    (
        "restore",
        "0  the kernel has everything that the checkpoints have\n\
            1  no pod is restored\n\
            4  refused before anything was changed: no such pod, no checkpoint of this boot, the lock is held, not root\n\
            5  incomplete: some pods, or parts of one, are not restored; stderr names each",
    ),
    (
        "verify",
        "0  the host and every pod reach their gateways and targets\n\
            1  no pod reaches all of its own\n\
            4  refused: no such pod, not root\n\
            5  some pods, or the host, do not reach one; stderr names each",
    ),
    (
        "check",
        "0  OK\n1  WARNING\n2  CRITICAL\n3  UNKNOWN, and wrong usage with --nagios",
    ),
    (
        "pause",
        "0  kubelet is stopped and the deadline is armed\n4  refused; kubelet runs as before",
    ),
    (
        "resume",
        "0  kubelet runs, or no window was open\n\
            1  kubelet cannot be started\n\
            4  refused: COMMAND still runs or pods have lost their network (not with --force), the lock is held, not root\n\
            5  a pod is incomplete, went for no known reason, was rebuilt or does not reach a gateway as before",
    ),
    (
        "upgrade",
        "0  COMMAND succeeded, all pods are back, none was rebuilt; already done; with --detach: the window is open\n\
            1  COMMAND failed, was interrupted or rolled back, or a driver has another version; all pods are back\n\
            4  refused; nothing was changed\n\
            5  work is left, whatever COMMAND returned: a pod or the host is not restored or does not reach a gateway or target, a pod was \
            rebuilt or restarted or went, a rule names a former ifindex, a pod that was not selected has lost something, or kubelet was \
            not paused all the time or does not run",
    ),
    (
        "guard",
        "0  with --once: nothing is lost, or it is restored; else: ended by a signal\n\
            1  with --once: something is lost and was left so, or there is no snapshot of this boot\n\
            4  refused: no such pod, no snapshot was ever taken (not with --once), the lock is held (--hold), not root\n\
            5  with --once: a restore is incomplete; stderr names each pod",
    ),
    (
        "prune",
        "0  removed, or nothing to remove\n1  nothing could be removed\n4  refused: the lock is held, not root\n5  some generations remain",
    ),
    (
        "import",
        "0  every file of a running pod is stored\n\
            1  no file could be used\n\
            4  refused: a wrong or empty directory, a runtime cannot be queried, the lock is held, not root\n\
            5  some files could not be used; stderr names each",
    ),
    (
        "report",
        "0  done\n1  the page or the answer cannot be written\n4  refused: no such window, not root\n5  with --list: a record cannot be read",
    ),
    (
        "wait",
        "0..5  that of the window, as of `netfix upgrade`\n\
            4  also refused: no window, no such window, not root\n\
            124  the window is still open after --timeout",
    ),
    (
        "host",
        "0..255  that of COMMAND\n\
            4  also refused: not root, or process 1 is not that of the host\n\
            126  COMMAND cannot be started\n\
            127  the host has no such program",
    ),
    ("explain", "0  done\n1  the text cannot be written"),
    ("schema", "0  done\n1  the text cannot be written"),
    ("completions", "0  done\n1  the text cannot be written"),
    ("man", "0  done\n1  the text cannot be written"),
    (
        "status",
        "0  done\n1  something needs attention: stderr names it\n4  refused: not root, or not on the host",
    ),
];
/// Those of every other command.
const GENERAL: &str = "0  done\n\
            1  failed\n\
            4  refused before anything was changed\n\
            5  incomplete: stderr names what failed";

/// The lines of a manual page: each exit code and its meaning.
pub(super) fn exit_status(command: &str) -> Vec<String> {
    let own = EXIT_STATUS.iter().find(|(name, _)| *name == command);
    let text = own.map_or(GENERAL, |(_, text)| text);
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    if command != "check" {
        let at = all.iter().position(|line| line.as_str() > "2");
        all.insert(at.unwrap_or(all.len()), "2  wrong usage".to_owned());
    }
    all
}

/// Ends the process for wrong usage. A monitoring plugin follows the convention of those: exit code 2 means CRITICAL there.
pub(super) fn refuse(error: &clap::Error) -> ! {
    if error.use_stderr() && env::args_os().any(|word| word == "--nagios") {
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.trim_start_matches("error: ").replace('|', "/");
        let _ = writeln!(io::stdout(), "NETFIX UNKNOWN - {reason}");
        process::exit(3);
    }
    let is_of_upgrade = env::args_os().any(|word| word == "upgrade");
    if error.kind() == ErrorKind::MissingRequiredArgument && is_of_upgrade {
        let _ = error.print();
        let _ = writeln!(
            io::stderr(),
            "COMMAND comes after `--`: netfix upgrade --yes -- sh upgrade.sh"
        );
        process::exit(2);
    }
    error.exit()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::report::listed_part;

    #[test]
    fn exit_codes_are_in_their_order() {
        for command in ["check", "diff", "man", "prune", "upgrade"] {
            let codes = exit_status(command);
            assert!(codes.is_sorted() && codes.len() > 2, "{codes:?}");
        }
    }

    /// The code and the meaning of each line.
    fn codes(command: &str) -> Vec<(String, String)> {
        let lines = exit_status(command).into_iter();
        let split = |line: String| {
            let (code, meaning) = line.trim().split_once("  ").expect("a code");
            (code.to_owned(), meaning.to_owned())
        };
        lines.map(split).collect()
    }

    #[test]
    fn the_documentation_lists_the_exit_codes_of_each_command() {
        const BEGIN: &str = "<!-- exit codes -->\n";
        const END: &str = "<!-- end of exit codes -->\n";
        let program = Cli::command();
        let mut text = format!("{BEGIN}| command | exit codes |\n|---|---|\n");
        for command in program.get_subcommands().map(clap::Command::get_name) {
            let all = codes(command).into_iter();
            let all = all.filter(|(_, meaning)| meaning != "wrong usage");
            let all =
                all.map(|(code, meaning)| format!("**{code}** {}", meaning.replace('|', "\\|")));
            let all: Vec<String> = all.collect();
            let _ = writeln!(text, "| `{command}` | {} |", all.join("; "));
        }
        let file = "docs/reference/problems.md";
        listed_part::compare(file, BEGIN, END, &(text + END), "exit_status");
    }

    #[test]
    fn the_module_of_ansible_has_those_of_upgrade() {
        const BEGIN: &str = "exit_code:\n";
        const END: &str = "  returned: always\n";
        let all = codes("upgrade").into_iter();
        let all: Vec<String> = all
            .map(|(code, meaning)| format!("{code} {meaning}"))
            .collect();
        let text = format!(
            "{BEGIN}  description: >-\n    The exit code of netfix: {}; 255 if the node could not be reached, 124 if the window is still open.\n",
            all.join("; ")
        );
        let file = "contrib/ansible/plugins/modules/netfix_upgrade.py";
        listed_part::compare(file, BEGIN, END, &(text + END), "exit_status");
    }
}

//! TAB in real shells, with the scripts that `netfix completions` prints.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::common::background::wait_until;
use crate::common::run::BINARY;
use crate::common::{Node, tool};

const UNPRIVILEGED: [&str; 6] = [
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
];

/// Where the shell finds netfix, its script and its settings.
fn home(node: &Node, shell: &str) -> PathBuf {
    let home = node.temp().join(shell);
    fs::create_dir_all(home.join("bin")).expect("a directory");
    symlink(BINARY, home.join("bin/netfix")).expect("a link");
    let script = tool::run(&mut tool::command(BINARY, ["completions", shell]));
    // zsh loads a function from the file of its name.
    fs::write(home.join("_netfix"), script).expect("a file");
    home
}

fn environment(command: &mut Command, node: &Node, home: &Path) {
    let path = std::env::var("PATH").expect("a PATH");
    command
        .env("PATH", format!("{}:{path}", home.join("bin").display()))
        .env("HOME", home)
        .env("ZDOTDIR", home)
        .env("TERM", "dumb")
        .env("NETFIX_STATE_DIR", node.state_dir());
}

/// An interactive shell on a terminal of its own, driven as by a person.
struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: PathBuf,
}

impl Terminal {
    fn start(node: &Node, shell: &str, rc: &str, command: &str) -> Self {
        let home = home(node, shell);
        let screen = home.join("screen");
        File::create(&screen).expect("a file");
        let rc = rc.replace("HOME", &home.display().to_string());
        fs::write(home.join(".zshrc"), rc).expect("a file");
        let mut script = tool::command("script", ["--quiet", "--flush", "--command"]);
        script
            .arg(command.replace("HOME", &home.display().to_string()))
            .arg(&screen);
        environment(&mut script, node, &home);
        script.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = script.spawn().expect("script(1)");
        let keyboard = child.stdin.take().expect("stdin is a pipe");
        let terminal = Self {
            child,
            keyboard,
            screen,
        };
        terminal.wait_for("READY>");
        terminal
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.screen).expect("the screen")).into_owned()
    }

    fn wait_for(&self, text: &str) {
        let is_shown = wait_until(|| self.shown().contains(text));
        assert!(is_shown, "{text:?} is not on the screen:\n{}", self.shown());
    }

    fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("a terminal");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What fish offers for the end of this line.
fn offered(node: &Node, wrapper: &[&str], line: &str) -> Vec<String> {
    let home = node.temp().join("fish");
    let source = format!("source {}/_netfix; complete -C {line:?}", home.display());
    let words = wrapper.iter().copied().chain(["fish", "--no-config", "-c"]);
    let mut all = words.collect::<Vec<_>>();
    all.push(&source);
    let mut fish = tool::command(all[0], &all[1..]);
    environment(&mut fish, node, &home);
    let output = fish.output().expect("fish");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stderr), "", "{line}");
    let first = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    // Where nothing is stored, options are offered.
    let stored = |word: &String| !word.starts_with('-');
    text(&output.stdout)
        .lines()
        .map(first)
        .filter(stored)
        .collect()
}

#[test]
fn tab_in_bash_inserts_the_stored_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let rc = "PS1='READY> '; stty cols 200; . HOME/_netfix";
    let mut bash = Terminal::start(&node, "bash", rc, "bash --rcfile HOME/.zshrc -i");
    bash.press("netfix restore \t");
    bash.wait_for(pod.name());
}

#[test]
fn the_first_tab_in_zsh_inserts_the_stored_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let rc = "PROMPT='READY> '; stty cols 200; fpath=(HOME $fpath); autoload -Uz compinit; compinit -u -d HOME/dump";
    let mut zsh = Terminal::start(&node, "zsh", rc, "zsh -d -i");
    zsh.press("netfix restore \t");
    zsh.wait_for(pod.name());
}

#[test]
fn tab_offers_what_is_stored_without_the_lock_and_nothing_to_other_users() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    home(&node, "fish");
    // For another user; the state directory stays closed.
    fs::set_permissions(node.temp(), fs::Permissions::from_mode(0o755)).expect("chmod");
    assert_eq!(
        offered(&node, &[], "netfix show "),
        [""; 0],
        "nothing is stored"
    );
    node.snapshot();
    let mut names: Vec<&str> = pods.iter().map(crate::common::Pod::name).collect();
    names.sort_unstable();
    let lock = node.state_dir().join("lock");
    let flock = ["flock", "--exclusive", lock.to_str().expect("a path")];
    for line in ["netfix show ", "netfix restore ", "netfix upgrade --pod "] {
        assert_eq!(offered(&node, &flock, line), names, "{line}");
    }
    assert_eq!(
        offered(&node, &[], &format!("netfix list {}", names[1])),
        [names[1]]
    );
    assert_eq!(offered(&node, &[], "netfix list --generation "), ["1"]);
    assert_eq!(offered(&node, &[], "netfix report "), [""; 0]);
    let script = node.temp().join("i40e_upgrade.sh");
    File::create(&script).expect("a file");
    let begun = node.temp().join("i40e").display().to_string();
    for line in ["netfix upgrade -- ", "netfix upgrade --yes -- sh "] {
        let files = offered(&node, &[], &format!("{line}{begun}"));
        assert_eq!(files, [script.display().to_string()], "{line}");
    }
    let files = offered(&node, &[], "netfix upgrade -- ");
    assert!(!files.iter().any(|file| names.contains(&file.as_str())));
    let commands = offered(&node, &UNPRIVILEGED, "netfix re");
    assert_eq!(commands, ["restore", "resume", "report"]);
    assert_eq!(offered(&node, &UNPRIVILEGED, "netfix show "), [""; 0]);
}

#[test]
fn the_variable_of_the_scripts_alone_does_not_silence_a_command() {
    let mut command = tool::command(BINARY, ["--version"]);
    let text = tool::run(command.env("_NETFIX_COMPLETE", "bash"));
    assert!(text.starts_with("netfix "), "{text:?}");
}

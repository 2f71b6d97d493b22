//! The sentence of every problem. One cause, one line: the fact first, then the next command.

mod check;
mod command;
mod conflict;
mod foreign;
mod gateway;
mod inventory;
mod kubelet;
mod matching;
mod partial;
mod plan;
mod rebuild;
mod restore;
mod snapshot;
mod store;
mod usage;
mod window;
mod window_log;

use std::fmt;

use crate::model::PodInfo;
use crate::model::problem::Cause;

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventory(cause) => cause.fmt(f),
            Self::Store(cause) => cause.fmt(f),
            Self::Matching(cause) => cause.fmt(f),
            Self::Foreign(cause) => cause.fmt(f),
            Self::Plan(cause) => cause.fmt(f),
            Self::Conflict(cause) => cause.fmt(f),
            Self::Partial(cause) => cause.fmt(f),
            Self::Restore(cause) => cause.fmt(f),
            Self::Snapshot(cause) => cause.fmt(f),
            Self::Check(cause) => cause.fmt(f),
            Self::Gateway(cause) => cause.fmt(f),
            Self::Window(cause) => cause.fmt(f),
            Self::Detached(cause) => cause.fmt(f),
            Self::Record(cause) => cause.fmt(f),
            Self::Command(cause) => cause.fmt(f),
            Self::Kubelet(cause) => cause.fmt(f),
            Self::Rebuild(cause) => cause.fmt(f),
            Self::Usage(cause) => cause.fmt(f),
            Self::Recorded { code: _, message } => f.write_str(message),
        }
    }
}

/// Items in one line: `a`, `a and b`, `a, b and c`.
fn and(items: &[impl ToString]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [all @ .., before, last] => [all, &[format!("{before} and {last}")]].concat().join(", "),
        few => few.concat(),
    }
}

/// A running pod: its names and what tells it from others.
fn described(info: &PodInfo) -> String {
    format!("{} ({})", info.title(), numbers(info))
}

/// What tells a pod from others of its name.
fn numbers(info: &PodInfo) -> String {
    let text = |text: &Option<String>| text.as_deref().unwrap_or("-").escape_debug().to_string();
    format!("sandbox {}, uid {}", text(&info.sandbox), text(&info.uid))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    const BEGIN: &str =
        "<!-- generated: cargo test --lib messages, NETFIX_BLESS=1 writes it anew -->\n";
    const END: &str = "<!-- end of the generated list -->\n";

    /// Every message with its code, as docs/problems.md lists them.
    fn list() -> String {
        let mut by_code: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cause in Cause::samples() {
            let messages = by_code.entry(cause.code().to_string()).or_default();
            messages.push(cause.to_string());
        }
        let mut text = String::from(BEGIN);
        for (code, messages) in by_code {
            let _ = writeln!(text, "\n`{code}`\n");
            for message in messages {
                let _ = writeln!(text, "- {message}");
            }
        }
        text + "\n" + END
    }

    #[test]
    fn the_documentation_lists_every_message() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/problems.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (begin, end) = (
            page.find(BEGIN).unwrap(),
            page.find(END).unwrap() + END.len(),
        );
        if std::env::var_os("NETFIX_BLESS").is_some() {
            let new = format!("{}{}{}", &page[..begin], list(), &page[end..]);
            return std::fs::write(&path, new).unwrap();
        }
        assert!(
            page[begin..end] == list(),
            "docs/problems.md does not list the messages as they are: run \
             NETFIX_BLESS=1 cargo test --lib messages, and read what it wrote"
        );
    }

    #[test]
    fn a_message_is_one_line_without_a_full_stop() {
        for message in Cause::samples().iter().map(ToString::to_string) {
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{message:?}"
            );
            assert!(!message.ends_with('.'), "{message:?}");
        }
    }
}

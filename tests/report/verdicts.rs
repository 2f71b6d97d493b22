//! The last line of every command beside its exit code: it calls nothing well that is not, and where the exit code is not 0,
//! it or an error names why.

use netfix::model::{Problem, Severity, State};
use netfix::report::{
    CheckStatus, CheckView, Document, Extra, KeptView, NodeView, ReportView, Standing, StatusPart,
    Style, UnreadView, Verb, WindowView, render,
};

use crate::documents::{Scene, problem};
use crate::machine::fixture;
use crate::screens::style;

/// The exit codes of commands that failed, in part or whole.
const BAD: [u8; 5] = [1, 3, 4, 5, 124];
/// Words that call something well.
const WELL: [&str; 14] = [
    "already correct",
    "restored",
    "saved",
    "imported",
    "OK",
    "well",
    "nothing to do",
    "nothing to remove",
    "reach their",
    "is correct",
    "are correct",
    "none open",
    "match a fresh checkpoint",
    "was not paused",
];
/// Words that tell that something is not.
const QUALIFIED: [&str; 15] = [
    "and checkpoint",
    " error: ",
    " errors: ",
    " warning: ",
    " warnings: ",
    "exit code ",
    "not restored",
    "partly restored",
    "not saved",
    "not usable",
    "degraded",
    "unreachable",
    "does not reach",
    "cannot be read",
    "Run `netfix restore`",
];

/// What a terminal shows: the answer, and the messages.
fn shown(document: &Document, style: Style) -> (String, String) {
    let (mut out, mut messages) = (Vec::new(), Vec::new());
    // The last line is one: nothing is wrapped.
    let style = Style {
        lines: None,
        messages: None,
        ..style
    };
    render(document, style, &mut out, &mut messages).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(messages))
}

fn has(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

/// What is wrong with the end of this screen.
fn fault(document: &Document) -> Option<String> {
    let (out, messages) = shown(document, style(100));
    let last = out.lines().last().unwrap_or_default();
    let is_lie = document.exit != 0 && has(last, &WELL) && !has(last, &QUALIFIED);
    let is_silent = document.exit != 0
        && !has(last, &QUALIFIED)
        && !has(
            last,
            &[
                "CRITICAL",
                "WARNING",
                "UNKNOWN",
                "(exit ",
                "not compared",
                "not back",
            ],
        )
        && !messages.contains("error: ");
    (is_lie || is_silent).then(|| {
        let (verb, exit) = (document.command.word(), document.exit);
        format!("{verb} with exit code {exit} ends with {last:?}\n{messages}")
    })
}

/// Every way in which a command can end well, with its documents as they are then.
fn well() -> Vec<Document> {
    let scene = |word: &'static str| {
        let calm = Scene {
            pods: 3,
            lost: false,
        };
        let mut document = calm.document(word);
        document.command = word.parse().unwrap();
        document
    };
    let of_scenes = [
        "snapshot", "list", "plan", "diff", "restore", "verify", "check",
    ];
    let mut all: Vec<Document> = of_scenes.into_iter().map(scene).collect();
    let with_pods = |verb: Verb, state: State| Document {
        command: verb,
        ..with_state(scene("restore"), state)
    };
    all.push(with_pods(Verb::Restore, State::Restored));
    all.push(with_pods(Verb::Import, State::Imported));
    let bare = |verb, extra| Document {
        command: verb,
        extra,
        ..Document::default()
    };
    let report = || {
        let view = ReportView::new(fixture("well"), Standing::Closed);
        Box::new(view)
    };
    for verb in [Verb::Report, Verb::Wait, Verb::Upgrade] {
        all.push(bare(verb, Some(Extra::Report(report()))));
    }
    let line = WindowView::new(*report());
    all.push(bare(Verb::Report, Some(Extra::Windows(vec![line]))));
    let kept = KeptView {
        removed: vec![1, 2],
        ..KeptView::default()
    };
    for kept in [kept, KeptView::default()] {
        all.push(bare(Verb::Prune, Some(Extra::Kept(kept))));
    }
    all.push(bare(Verb::List, Some(Extra::Generations(Vec::new()))));
    for verb in [Verb::Pause, Verb::Resume, Verb::Status] {
        all.push(bare(verb, None));
    }
    // No pod is left.
    for verb in [
        Verb::Restore,
        Verb::Plan,
        Verb::Diff,
        Verb::Verify,
        Verb::Snapshot,
    ] {
        all.push(bare(verb, None));
    }
    all
}

fn with_state(mut document: Document, state: State) -> Document {
    for pod in &mut document.pods {
        pod.state = state;
    }
    document
}

fn with_status(mut document: Document, exit: u8) -> Document {
    if let Some(Extra::Check(view)) = &mut document.extra {
        view.status = match exit {
            0 => CheckStatus::Ok,
            1 => CheckStatus::Warning,
            3 => CheckStatus::Unknown,
            _ => CheckStatus::Critical,
        };
    }
    document
}

fn error(code: &str) -> Problem {
    problem("error", code, None, "eth0", "failed")
}

#[test]
fn no_last_line_is_well_with_another_exit_code_than_0() {
    let mut faults = Vec::new();
    for exit in BAD {
        for problems in [
            vec![error("no-space")],
            vec![error("no-carrier"), error("no-space")],
        ] {
            for document in well() {
                let document = with_status(document, exit);
                let document = Document {
                    exit,
                    problems: problems.clone(),
                    ..document
                };
                faults.extend(fault(&document));
            }
        }
        // Not even where no problem tells why.
        for document in well()
            .into_iter()
            .filter(|document| !document.pods.is_empty())
        {
            let document = with_status(document, exit);
            faults.extend(fault(&Document { exit, ..document }));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn one_bad_pod_or_a_bad_host_is_in_the_last_line() {
    let mut faults = Vec::new();
    for document in well() {
        if document.pods.is_empty() || document.command == Verb::Check {
            continue;
        }
        for state in [
            State::Failed,
            State::Partial,
            State::NoCheckpoint,
            State::Unreachable,
        ] {
            let mut document = Document {
                exit: 5,
                ..well()
                    .into_iter()
                    .find(|one| one.command == document.command)
                    .unwrap()
            };
            document.pods[1].state = state;
            faults.extend(fault(&document));
            document.pods[1].state = State::Restored;
            document.node.state = Some(State::Failed);
            faults.extend(fault(&document));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_blessed_screen_ends_as_its_exit_code_says() {
    let mut faults = Vec::new();
    for command in crate::screens::COMMANDS {
        for lost in [false, true] {
            for pods in [3, 40, 250] {
                let mut document = Scene { pods, lost }.document(command);
                document.command = command.parse().unwrap();
                faults.extend(fault(&document));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The last line of the command's calm document with this exit code and these errors.
fn last(verb: Verb, exit: u8, codes: &[&str]) -> String {
    let document = well().into_iter().find(|one| one.command == verb).unwrap();
    let document = Document {
        exit,
        problems: codes.iter().map(|code| error(code)).collect(),
        ..document
    };
    let (out, _) = shown(&document, style(100));
    out.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn what_is_well_is_said_with_what_is_not() {
    assert_eq!(
        last(Verb::Restore, 0, &[]),
        "3 pods already correct; nothing to do"
    );
    assert_eq!(
        last(Verb::Restore, 5, &["no-carrier"]),
        "3 pods already correct; 1 error: no-carrier"
    );
    assert_eq!(
        last(Verb::Snapshot, 5, &["no-space", "no-space"]),
        "3 pods saved as generation 7; 2 errors: no-space"
    );
    assert_eq!(
        last(Verb::Verify, 5, &["checkpoint-corrupt"]),
        "the host and 3 pods reach their gateways; 1 error: checkpoint-corrupt"
    );
    for verb in [Verb::Pause, Verb::Resume] {
        assert_eq!(last(verb, 0, &[]), "kubelet was not paused");
    }
    let report = last(Verb::Report, 1, &["unwritable"]);
    assert!(
        report.starts_with("All well: ") && report.ends_with("; 1 error: unwritable"),
        "{report}"
    );
}

#[test]
fn without_a_running_pod_nothing_is_counted() {
    let document = |verb, exit| Document {
        command: verb,
        exit,
        ..Document::default()
    };
    for verb in [Verb::Restore, Verb::Plan] {
        let (out, _) = shown(&document(verb, 0), style(100));
        assert!(out.contains("no pod with a checkpoint is running"), "{out}");
        assert!(!out.contains("0 pods"), "{out}");
    }
}

#[test]
fn a_host_that_was_never_recorded_is_not_called_correct() {
    let mut document = Scene {
        pods: 3,
        lost: false,
    }
    .document("plan");
    document.command = Verb::Plan;
    document.node = NodeView::default();
    let (out, _) = shown(&document, style(100));
    assert_eq!(
        out,
        "nothing to do: 3 pods are correct; the host is not recorded\n"
    );
}

#[test]
fn a_check_that_could_read_nothing_is_unknown_in_every_line() {
    let view = CheckView {
        status: CheckStatus::Unknown,
        ..CheckView::default()
    };
    let document = Document {
        command: Verb::Check,
        exit: 3,
        problems: vec![error("permission-denied"), error("unwritable")],
        extra: Some(Extra::Check(view)),
        ..Document::default()
    };
    let (out, _) = shown(&document, style(100));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(
        lines.iter().all(|line| line.starts_with("UNKNOWN: ")),
        "{out}"
    );
    assert!(!out.contains("none in this boot"), "{out}");
    assert!(lines[2].contains("last snapshot: -; 2 errors: "), "{out}");
}

#[test]
fn what_status_could_not_read_is_no_none() {
    let mut document = Scene {
        pods: 3,
        lost: false,
    }
    .document("status");
    let parts = [
        (
            StatusPart::Snapshot,
            "snapshot   - (it is damaged); 3 checkpoints",
        ),
        (
            StatusPart::Generations,
            "stored     generations - (it is damaged) in /var/lib/netfix",
        ),
        (StatusPart::Network, "network    - (it is damaged)"),
        (StatusPart::Window, "window     - (it is damaged)"),
        (StatusPart::Last, "last       - (it is damaged)"),
    ];
    let Some(Extra::Status(view)) = &mut document.extra else {
        unreachable!();
    };
    (view.last_success, view.network) = (None, None);
    view.unread = parts
        .map(|(part, _)| UnreadView {
            part,
            reason: "it is damaged".to_owned(),
        })
        .into();
    document.command = Verb::Status;
    let (out, _) = shown(&document, style(100));
    for (_, line) in parts {
        assert!(out.lines().any(|one| one == line), "{line}\n{out}");
    }
    assert!(
        !out.contains("none open") && !out.contains("no complete one"),
        "{out}"
    );
}

/// A pod's state is one thing, the severity of a problem another: a warning changes no exit code.
#[test]
fn warnings_leave_a_good_end() {
    let mut document = well().remove(0);
    let warning = problem("warning", "surplus", None, "eth0", "is kept");
    assert_eq!(warning.severity, Severity::Warning);
    document.problems = vec![warning];
    let (out, _) = shown(&document, style(100));
    assert_eq!(out, "3 pods saved as generation 7\n");
}

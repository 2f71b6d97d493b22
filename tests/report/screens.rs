//! The screen of each command, with few and many pods, on narrow and wide terminals, before and after a loss:
//! `testdata/screens/COMMAND/PODS-WIDTH[-after-loss].txt`.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use netfix::model::{Loss, LossCause};
use netfix::report::{Detail, Document, Extra, Form, Style, render};

use crate::documents::{NOW, Scene};

pub const COMMANDS: [&str; 10] = [
    "snapshot", "list", "show", "plan", "diff", "restore", "verify", "check", "status", "upgrade",
];

/// A terminal: both streams in the order in which they were written.
#[derive(Clone, Default)]
struct Terminal(Rc<RefCell<Vec<u8>>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn style(width: usize) -> Style {
    Style {
        form: Form::Human,
        detail: Detail::Normal,
        color: false,
        headers: true,
        ascii: false,
        width: Some(width),
        lines: Some(width),
        messages: Some(width),
        now: NOW.parse().unwrap(),
    }
}

fn screen(document: &Document, style: Style) -> String {
    let terminal = Terminal::default();
    render(
        document,
        style,
        &mut terminal.clone(),
        &mut terminal.clone(),
    )
    .unwrap();
    let bytes = terminal.0.borrow().clone();
    String::from_utf8(bytes).unwrap()
}

fn blessed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/screens")
        .join(name)
}

/// Compares a screen with the blessed one, or blesses it.
fn assert_blessed(name: &str, text: &str, wrong: &mut Vec<String>) {
    let path = blessed(&format!("{name}.txt"));
    if std::env::var_os("NETFIX_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    if fs::read_to_string(&path).unwrap_or_default() != text {
        wrong.push(format!("{name}:\n{text}"));
    }
}

#[test]
fn every_screen_equals_its_file_in_testdata() {
    let mut wrong = Vec::new();
    for command in COMMANDS {
        for pods in [3, 40, 250] {
            for (lost, suffix) in [(false, ""), (true, "-after-loss")] {
                let document = Scene { pods, lost }.document(command);
                for width in [80, 140] {
                    let name = format!("{command}/{pods}-{width}{suffix}");
                    assert_blessed(&name, &screen(&document, style(width)), &mut wrong);
                }
            }
        }
    }
    let document = Scene {
        pods: 250,
        lost: true,
    }
    .restore_without_nic();
    assert_blessed(
        "restore/250-80-nic-missing",
        &screen(&document, style(80)),
        &mut wrong,
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_screen_of_250_pods_has_more_than_40_lines_and_status_has_12() {
    for command in COMMANDS {
        for lost in [false, true] {
            let document = Scene { pods: 250, lost }.document(command);
            let lines = screen(&document, style(80)).lines().count();
            let most = if command == "status" { 12 } else { 40 };
            assert!(lines <= most, "{command}: {lines} lines");
        }
    }
}

/// However many losses there are: as many as fit are shown, the most frequent first, and `-v` has all.
#[test]
fn status_of_250_pods_in_14_states_has_12_lines() {
    let whats = [
        LossCause::LinkGone,
        LossCause::LinkDown,
        LossCause::LinkReplaced,
        LossCause::Addresses,
        LossCause::Uplink,
        LossCause::NoCarrier,
        LossCause::NoPort,
    ];
    let scene = Scene {
        pods: 250,
        lost: true,
    };
    let mut document = scene.document("status");
    let Some(Extra::Status(view)) = &mut document.extra else {
        unreachable!();
    };
    let network = view.network.as_mut().unwrap();
    for (at, pod) in network.which.pods.iter_mut().enumerate() {
        pod.loss = Some(Loss {
            link: ["macvlan eth0", "macvlan net1"][at % 2].to_owned(),
            what: whats[at % 7],
        });
    }
    let text = screen(&document, style(80));
    assert_eq!(text.lines().count(), 12, "{text}");
    assert!(text.contains("\nlost       macvlan "), "{text}");
    let all = Style {
        detail: Detail::Steps,
        ..style(80)
    };
    let text = screen(&document, all);
    let losses = text.lines().filter(|line| line.starts_with("lost "));
    assert_eq!(losses.count(), 14, "{text}");
}

/// Lines that are never cut: people type them.
fn is_whole(line: &str) -> bool {
    let words = ["  + ", "  ~ ", "link "];
    words.iter().any(|word| line.starts_with(word))
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for command in COMMANDS {
        for lost in [false, true] {
            let document = Scene { pods: 250, lost }.document(command);
            for width in [80, 100, 140] {
                let text = screen(&document, style(width));
                let lines = text.lines().filter(|line| !is_whole(line));
                let wide: Vec<&str> = lines.filter(|line| line.chars().count() > width).collect();
                assert!(wide.is_empty(), "{command}, {width} columns: {wide:#?}");
            }
        }
    }
}

#[test]
fn the_table_comes_first_then_problems_and_the_verdict_last() {
    let document = Scene {
        pods: 40,
        lost: true,
    }
    .document("verify");
    let text = screen(&document, style(80));
    let lines: Vec<&str> = text.lines().collect();
    let problem = lines
        .iter()
        .position(|line| line.starts_with("error: "))
        .unwrap();
    assert!(lines[0].starts_with("POD "), "{text}");
    assert!(
        lines[1..problem]
            .iter()
            .all(|line| line.contains("unreachable")),
        "{text}"
    );
    assert_eq!(
        lines[lines.len() - 1],
        "the host and 32 of 40 pods reach their gateways, 8 unreachable"
    );
    assert_eq!(
        lines[problem..]
            .iter()
            .filter(|line| line.starts_with("error: "))
            .count(),
        2,
        "two gateways, each with the count of its pods: {text}"
    );
}

#[test]
fn healthy_pods_are_listed_only_with_v_and_o_wide() {
    let document = Scene {
        pods: 40,
        lost: false,
    }
    .document("verify");
    assert_eq!(
        screen(&document, style(80)),
        "the host and 40 pods reach their gateways\n"
    );
    for style in [
        Style {
            form: Form::Wide,
            ..style(80)
        },
        Style {
            detail: Detail::Steps,
            ..style(80)
        },
    ] {
        let host = 1;
        assert_eq!(screen(&document, style).lines().count(), 1 + host + 80 + 1);
    }
}

#[test]
fn scripts_get_only_names_or_rows() {
    let document = Scene {
        pods: 40,
        lost: false,
    }
    .document("list");
    let names = screen(
        &document,
        Style {
            form: Form::Name,
            ..style(80)
        },
    );
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names.len(), 40);
    let of_shop: Vec<&&str> = names
        .iter()
        .filter(|name| name.starts_with("shop/"))
        .collect();
    let numbers = (0..16).map(|at| format!("shop/web-{at}"));
    assert_eq!(
        of_shop,
        numbers.collect::<Vec<_>>().iter().collect::<Vec<_>>(),
        "9 before 10"
    );
    let rows = screen(
        &document,
        Style {
            headers: false,
            ..style(80)
        },
    );
    let first: Vec<&str> = rows
        .lines()
        .filter_map(|row| row.split_whitespace().next())
        .collect();
    assert_eq!(first, names);
}

#[test]
fn without_utf_8_every_character_is_ascii() {
    let mut document = Scene {
        pods: 3,
        lost: false,
    }
    .document("list");
    document.pods[0].info.name =
        Some("wéb-with-a-name-longer-than-the-terminal-is-wide-0123456789".into());
    for form in [Form::Human, Form::Name] {
        let text = screen(
            &document,
            Style {
                ascii: true,
                form,
                ..style(40)
            },
        );
        assert!(text.is_ascii() && text.contains("w\\u{e9}b"), "{text}");
    }
    assert!(screen(&document, style(40)).contains('…'));
}

//! Before the window: the preview, and the confirmation.

use std::io::Write;
use std::process::Stdio;

use super::rollback;
use super::scene::{KUBELET, Scene, Untouched};
use crate::common::Node;
use crate::common::run::Run;
use crate::common::tool;

struct Before {
    kubelet: Untouched,
    files: Vec<(std::path::PathBuf, String)>,
}

fn observe(scene: &Scene<'_>) -> Before {
    Before {
        kubelet: scene.touchable(),
        files: scene.node.state_files(),
    }
}

fn assert_untouched(scene: &Scene<'_>, before: &Before) {
    assert!(!scene.path("ran").exists(), "COMMAND was run");
    assert_eq!(scene.node.state_files(), before.files);
    scene.assert_untouched(&before.kubelet);
}

fn marking(scene: &Scene<'_>) -> String {
    scene.script(
        "marking",
        &format!(
            "touch {}\n{}",
            scene.path("ran").display(),
            scene.reloading()
        ),
    )
}

/// netfix on a terminal of its own, with this input.
fn on_terminal(scene: &Scene<'_>, words: &str, typed: &str) -> Run {
    let inner = scene.command(words);
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy());
    let environment = inner
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={}", key.display(), quoted(value?))));
    let line: Vec<String> = std::iter::once("exec env".to_owned())
        .chain(environment)
        .chain([quoted(inner.get_program())])
        .chain(inner.get_args().map(quoted))
        .collect();
    let mut command = tool::command(
        "timeout",
        ["600", "script", "--quiet", "--return", "--command"],
    );
    command.arg(line.join(" ")).arg("/dev/null");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script(1)");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(typed.as_bytes()).expect("typed input");
    let output = child.wait_with_output().expect("its end");
    drop(input);
    Run::from_output(line.join(" "), &output)
}

fn dry_run_lists_the_phases_and_pods_and_makes_no_folder(scene: &Scene<'_>, before: &Before) {
    let command = marking(scene);
    let load = rollback::load(scene);
    let options = format!("--max-lost 3 --rollback {load}");
    let run = scene
        .netfix(&format!("upgrade --dry-run {options} -- {command}"))
        .exits(0);
    run.stdout_has(&[
        KUBELET,
        &command,
        "rollback",
        &load,
        "3 pods",
        scene.pods[0].name(),
        scene.pods[1].name(),
    ]);
    assert!(!scene.node.state_dir().exists(), "a folder was made");
    assert_eq!(rollback::count(scene, "load-ran"), 0);
    let json = scene
        .netfix(&format!("upgrade --dry-run -o json -- {command}"))
        .exits(0)
        .json();
    assert_eq!(json["pods"].as_array().map(Vec::len), Some(2), "{json}");
    assert_untouched(scene, before);
}

fn without_a_terminal_it_is_refused(scene: &Scene<'_>, before: &Before) {
    for foreground in ["", "--foreground"] {
        let run = scene
            .netfix(&format!("upgrade {foreground} -- {}", marking(scene)))
            .exits(4);
        run.stderr_has(&["--yes"]);
        assert_untouched(scene, before);
    }
}

fn another_answer_changes_nothing(scene: &Scene<'_>, before: &Before) {
    let words = format!("upgrade -- {}", marking(scene));
    for typed in ["\n", "yesterday\n", "\u{4}"] {
        let run = on_terminal(scene, &words, typed).exits(4);
        run.stdout_has(&[scene.pods[0].name(), scene.pods[1].name()]);
        assert_untouched(scene, before);
    }
}

#[test]
fn the_preview_changes_nothing_and_only_the_answer_yes_runs_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let before = observe(&scene);
    dry_run_lists_the_phases_and_pods_and_makes_no_folder(&scene, &before);
    without_a_terminal_it_is_refused(&scene, &before);
    another_answer_changes_nothing(&scene, &before);
    let words = format!("upgrade --watch 0s --answer-wait 2s -- {}", marking(&scene));
    on_terminal(&scene, &words, "yes\n")
        .exits(0)
        .stdout_has(&[KUBELET]);
    assert!(scene.path("ran").exists(), "COMMAND was not run");
    scene.assert_whole();
    assert_eq!(scene.record()["exit"], 0);
}

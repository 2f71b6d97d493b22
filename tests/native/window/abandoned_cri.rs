//! `resume` of a window whose netfix was killed queries the runtime what became of the pods.

use std::time::Instant;

use serde_json::Value;

use super::proof::Real;
use super::scene::of_pods;
use crate::common::Run;
use crate::common::background::HANG;
use crate::common::run::BINARY;

/// A window whose netfix was killed while COMMAND ran, which has ended since.
fn killed(pods: usize) -> Real {
    let real = Real::new(pods);
    let upgrade = real.start("", &real.waiting());
    real.wait_for_command();
    upgrade.kill();
    real.go();
    real.wait_for_end_of_command();
    real
}

fn resume(real: &Real) -> Run {
    let words =
        "resume -o json --runtime cri --runtime-endpoint unix:///run/containerd/containerd.sock";
    Run::of(
        real.command("timeout")
            .args(["600", BINARY])
            .args(words.split_whitespace()),
    )
}

#[test]
fn resume_reports_a_sandbox_that_was_rebuilt_after_the_crash() {
    let real = killed(2);
    let id = real.pods[1].sandbox.id.clone();
    let successor = real.rebuild(1);
    let run = resume(&real).exits(5);
    let rebuilt = run.coded("pod-rebuilt");
    assert_eq!(rebuilt.len(), 1, "{}", run.transcript());
    assert_eq!(rebuilt[0].pod.as_deref(), Some(&id[..12]));
    let message = &rebuilt[0].message;
    assert!(message.contains(&successor[..12]), "{message}");
    let record = real.record();
    assert_eq!(record["exit"], 5, "{record}");
    let mut rebuilt = of_pods(&record, "rebuilt");
    rebuilt.sort_by_key(Value::to_string);
    assert_eq!(rebuilt, [false, true], "{record}");
}

#[test]
fn resume_ends_beside_a_runtime_that_never_answers_and_calls_nothing_proven() {
    let real = killed(1);
    real.cri.freeze();
    let begin = Instant::now();
    let run = resume(&real);
    real.cri.thaw();
    let run = run.exits(5);
    assert!(begin.elapsed() < HANG, "{}", run.transcript());
    assert!(
        !run.coded("runtime-unreachable").is_empty(),
        "{}",
        run.transcript()
    );
    let record = real.record();
    assert_eq!(of_pods(&record, "rebuilt"), [Value::Null], "{record}");
}

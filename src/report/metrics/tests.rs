//! The text of the metrics.

use super::*;
use crate::model::problem::UsageCause;
use crate::model::window::GuardRecord;
use crate::model::{State, Window};
use crate::report::document::CheckStatus;
use crate::report::window::view::Standing;

#[test]
fn the_text_is_whole() {
    let check = CheckView {
        at: String::new(),
        is_checked: true,
        left_out: Some(1),
        left_out_pods: Vec::new(),
        rehearsal: None,
        max_age: std::time::Duration::ZERO,
        is_selection: false,
        status: CheckStatus::Critical,
        oldest_age: Some(90),
        last_success: Some("2026-11-21T21:00:59.5Z".to_owned()),
        pods: [(State::InSync, Some(2)), (State::Degraded, Some(1))].into(),
        lost: [("link-gone", Some(1)), ("no-checkpoint", Some(0))].into(),
        steps: Some(7),
        unsupported: Some(3),
    };
    let problem: Problem = serde_json::from_value(serde_json::json!({
        "code": "degraded", "severity": "error", "pod": null, "object": "eth0", "message": "",
    }))
    .unwrap();
    let around = Surroundings {
        open: PartRead::Nothing,
        last: PartRead::Nothing,
        nics: PartRead::This(vec![Nic {
            name: "eth0".parse().unwrap(),
            driver: Some("i40e".to_owned()),
            version: Some("2.28.7 \"x\" \\\n".to_owned()),
            firmware: None,
            bus: Some("0000:3b:00.0".to_owned()),
            permanent_mac: None,
            function: None,
            carrier: true,
        }]),
        guard: PartRead::Unknown,
    };
    let text = metrics(&check, &[problem.clone(), problem], &around);
    let (before, after) = text.split_once("netfix_check_timestamp_seconds 1").unwrap();
    let after = after.split_once('\n').unwrap().1;
    let before = before.split_once("} 1\n").unwrap().1;
    assert_eq!(
        before,
        "# HELP netfix_check_status What netfix check found: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n\
         # TYPE netfix_check_status gauge\n\
         netfix_check_status 2\n\
         # HELP netfix_check_timestamp_seconds When netfix check ran.\n\
         # TYPE netfix_check_timestamp_seconds gauge\n"
    );
    let samples: Vec<&str> = after
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        samples,
        [
            "netfix_checkpoint_oldest_age_seconds 90",
            "netfix_drift_steps 7",
            "netfix_findings{code=\"degraded\",severity=\"error\"} 2",
            "netfix_pods{state=\"degraded\"} 1",
            "netfix_pods{state=\"in-sync\"} 2",
            "netfix_pods_lost{cause=\"link-gone\"} 1",
            "netfix_pods_lost{cause=\"no-checkpoint\"} 0",
            "netfix_pods_left_out 1",
            "netfix_snapshot_last_success_timestamp_seconds 1795294859.5",
            "netfix_unsupported_objects 3",
            "netfix_unread{part=\"network\"} 0",
            "netfix_unread{part=\"snapshot\"} 0",
            "netfix_unread{part=\"window\"} 0",
            "netfix_unread{part=\"last\"} 0",
            "netfix_unread{part=\"nics\"} 0",
            "netfix_unread{part=\"guard\"} 1",
            "netfix_window_open 0",
            "netfix_window_live 0",
            "netfix_kubelet_paused 0",
            r#"netfix_nic_info{device="eth0",driver="i40e",version="2.28.7 \"x\" \\\n",firmware="",bus="0000:3b:00.0"} 1"#,
            "netfix_nic_carrier{device=\"eth0\"} 1",
        ]
    );
}

#[test]
fn the_last_window_has_the_driver_before_and_after_of_each_nic() {
    let record = include_str!("../../../testdata/windows/well.json");
    let mut window: Window = serde_json::from_str(record).unwrap();
    let nics = window.nics.as_mut().unwrap();
    (nics[2].present, nics[2].after) = (Some(false), None);
    let around = Surroundings {
        last: PartRead::This(ReportView::new(window, Standing::Closed)),
        ..Surroundings::default()
    };
    let text = metrics(&CheckView::default(), &[], &around);
    for nic in [
        r#"{device="eno1",before="igb 5.6.0-k",after="igb 5.6.0-k"} 1"#,
        r#"{device="eth0",before="i40e 2.8.20-k",after="i40e 2.28.7"} 1"#,
        r#"{device="eth1",before="i40e 2.8.20-k",after="absent"} 1"#,
    ] {
        let line = format!("\nnetfix_last_window_nic_info{nic}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn what_the_guard_has_done_is_counted() {
    let mut record = GuardRecord {
        restores: 3,
        boot: crate::inventory::node::node_identity().boot_id,
        ..GuardRecord::default()
    };
    let lost = record.losses.entry("eth0".parse().unwrap()).or_default();
    lost.given_up = true;
    record.last = Some(crate::model::window::UnplannedEnd {
        window: None,
        at: "2026-11-21T21:00:59.500Z".to_owned(),
        exit: 5,
    });
    let around = Surroundings {
        guard: PartRead::This(GuardNow::of(record, None, true)),
        ..Surroundings::default()
    };
    let text = metrics(&CheckView::default(), &[], &around);
    for line in [
        "netfix_guard_restores_total 3",
        "netfix_guard_given_up 1",
        "netfix_guard_running 0",
        "netfix_guard_last_result 5",
        "netfix_guard_last_restore_timestamp_seconds 1795294859.5",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(text.contains("# TYPE netfix_guard_restores_total counter"));
}

#[test]
fn a_check_that_knows_nothing_still_has_its_verdict() {
    let (_, mut check) = crate::report::check(Err(UsageCause::NotRoot.error("").into()));
    check.status = CheckStatus::Unknown;
    let text = metrics(&check, &[], &Surroundings::default());
    assert!(text.contains("\nnetfix_check_status 3\n"), "{text}");
    let unread = text
        .lines()
        .filter(|line| line.starts_with("netfix_unread{"));
    assert!(unread.clone().count() > 3, "{text}");
    assert!(unread.clone().all(|line| line.ends_with("} 1")), "{text}");
    // Not even a 0.
    let known = ["build_info", "check_status", "check_timestamp", "unread"];
    let mut names = text.lines().filter(|line| !line.starts_with('#'));
    assert!(
        names.all(|line| known
            .iter()
            .any(|one| line.starts_with(&format!("netfix_{one}")))),
        "{text}"
    );
}

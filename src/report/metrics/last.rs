//! The metrics of what is over: the last window, and the restores of `netfix guard`.

use super::{Text, in_seconds, labels, seconds};
use crate::report::window::nics::changes;
use crate::report::window::view::ReportView;
use crate::situation::guard_now::{GuardNow, GuardState};

/// Those of the guard.
pub(super) fn of_guard(guard: &GuardNow, text: &mut Text) {
    let is_running = !matches!(guard.state, GuardState::Off | GuardState::Stopped);
    text.one(
        "netfix_guard_running",
        "Whether netfix guard runs; no value where it does not run and its unit is not enabled.",
        (guard.state != GuardState::Off).then_some(u8::from(is_running)),
    );
    text.one(
        "netfix_guard_held",
        "Whether a person keeps netfix guard still.",
        Some(u8::from(guard.hold.is_some())),
    );
    text.counter(
        "netfix_guard_reported_total",
        "How often netfix guard --report-only would have restored pods.",
        guard.reported,
    );
    text.gauge(
        "netfix_guard_pod_attempts",
        "How often netfix guard has tried to complete a pod.",
        guard.incomplete.iter().map(|pod| {
            let labels = labels(&[("pod", &pod.title), ("why", &pod.why)]);
            (labels, pod.attempts)
        }),
    );
    text.counter(
        "netfix_guard_restores_total",
        "How often netfix guard has restored pods.",
        guard.restores,
    );
    text.one(
        "netfix_guard_given_up",
        "Whether netfix guard restores no more, because a loss repeats.",
        Some(u8::from(!guard.given_up.is_empty())),
    );
    let last = guard.last.as_ref();
    text.one(
        "netfix_guard_last_result",
        "Exit code of the last restore of netfix guard: 0 all pods are back.",
        last.map(|last| last.exit),
    );
    text.one(
        "netfix_guard_last_restore_timestamp_seconds",
        "When the last restore of netfix guard ended.",
        last.and_then(|last| seconds(&last.at)),
    );
}

/// Those of the last window.
pub(super) fn of_window(ReportView { window, computed }: &ReportView, text: &mut Text) {
    let started = seconds(&window.started);
    let lasted = window.ended.map(in_seconds);
    text.one(
        "netfix_last_window_start_timestamp_seconds",
        "When the last closed window was opened.",
        started,
    );
    text.one(
        "netfix_last_window_end_timestamp_seconds",
        "When the last closed window was closed.",
        started
            .zip(lasted)
            .map(|(started, lasted)| started + lasted),
    );
    text.one(
        "netfix_last_window_duration_seconds",
        "How long the last closed window was open.",
        lasted,
    );
    text.one(
        "netfix_last_window_exit_code",
        "Exit code of the last closed window.",
        window.exit,
    );
    let verdict = computed.verdict.to_string();
    text.gauge(
        "netfix_last_window_verdict",
        "How the last closed window went; the value is always 1.",
        [(labels(&[("verdict", &verdict)]), 1)],
    );
    text.gauge(
        "netfix_last_window_nic_info",
        "A NIC of the host, with its driver and version before and after the last closed window.",
        changes(window).map(|[device, before, after]| {
            let device = ("device", device.as_str());
            (labels(&[device, ("before", &before), ("after", &after)]), 1)
        }),
    );
    text.one(
        "netfix_last_window_worst_outage_seconds",
        "The longest outage of a pod in the last closed window.",
        computed.outages.worst_ms.map(in_seconds),
    );
}

//! The check that no pod was rebuilt.

use std::time::Duration;

use crate::model::Problem;
use crate::model::window::WindowPod;
use crate::upgrade::baseline::Baseline;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals::Signals;
use crate::window::rebuild_check::{After, query};

/// How long a runtime that stops with kubelet, as k3s's containerd does, may take to answer again.
const BACK_AGAIN: Duration = Duration::from_secs(90);

/// Queries the runtimes and the kernel again.
pub(crate) fn run(
    pods: &[WindowPod],
    baseline: &Baseline,
    request: &UpgradeRequest<'_>,
    signals: &Signals,
) -> (After, Vec<Problem>) {
    let UpgradeRequest {
        runtimes,
        selection,
        ..
    } = request;
    let known = &baseline.runtimes;
    let interrupted = || signals.interrupted();
    query::after(pods, runtimes, known, (BACK_AGAIN, &interrupted), selection)
}

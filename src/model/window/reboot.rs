//! A window that a reboot ended: its masks, timers and processes are gone, and the boot made every pod anew.

use super::{REBOOT, Window};
use crate::model::{Exit, NodeIdentity, Stamp};

impl Window {
    /// The window as it is in this boot: one that another boot left open is over.
    #[must_use]
    pub(crate) fn seen_in(mut self, now: &NodeIdentity) -> Self {
        // A container may have another machine-id than its host.
        let boots = self.node.boot_id.as_ref().zip(now.boot_id.as_ref());
        if self.ended.is_none() && boots.is_some_and(|(then, now)| then != now) {
            // This boot's clock does not apply to it, and what its pods lost never came back.
            self.ended = Some(self.last_known());
            self.closed_by = Some(REBOOT.to_owned());
            let end = match self.command.as_str() {
                "pause" => Exit::Done,
                _ => Exit::Partly,
            };
            self.exit = Some(end as u8);
        }
        self
    }

    /// When it was opened.
    pub(crate) fn opened(&self) -> Stamp {
        Stamp {
            node: self.node.clone(),
            boottime: Some(self.started_boottime),
            wall: self.started.clone(),
        }
    }

    /// Whether a reboot ended it.
    #[must_use]
    pub fn is_ended_by_reboot(&self) -> bool {
        self.closed_by.as_deref() == Some(REBOOT)
    }

    /// The last moment that it has, in milliseconds since its start.
    fn last_known(&self) -> u64 {
        let phases = self
            .phases
            .iter()
            .map(|phase| phase.to.unwrap_or(phase.from));
        let pods = self.pods.iter().flat_map(|pod| [pod.lost, pod.answered]);
        let pause = self
            .pause
            .iter()
            .flat_map(|pause| [pause.armed, pause.paused, pause.resumed]);
        let moments = pods.chain(pause).flatten();
        phases.chain(moments).max().unwrap_or_default()
    }
}

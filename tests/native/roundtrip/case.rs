//! What a case is, and how one that fails is made smaller.

use serde::{Deserialize, Serialize};

/// Lines for ip(8), run in their order; the kernel may refuse some. `sysctl KEY VALUE` writes below `/proc/sys/net`, `tc` is a
/// line for tc(8), and `address ADDRESS/LENGTH DEV PROTOCOL` adds an address with an `IFA_PROTO`, as a program does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Case {
    /// What `eth0` is, as ip(8) has it; a macvlan where it is empty, or the kernel lacks the kind.
    pub kind: String,
    /// The link of the node below the pod: a VLAN, a bond, or a VLAN on a bond; `eth0` where it is empty, or the kernel lacks it.
    pub parent: String,
    /// Whether the pod has a second macvlan `eth1`.
    pub second: bool,
    /// Whether that is on a NIC of its own, which is never lost.
    pub wire: bool,
    /// Whether the pod detects duplicate addresses, as on a real node.
    pub dad: bool,
    /// Whether a program in the pod holds a routing socket, as a daemon does.
    pub daemon: bool,
    /// What the host gets, besides its addresses and default routes.
    pub host: Vec<String>,
    /// What the pod gets, after an `eth0` that is down.
    pub lines: Vec<String>,
    /// The loss.
    pub loss: Loss,
    /// What the pod suffers besides.
    pub harm: Vec<String>,
    /// What the host suffers besides.
    pub host_harm: Vec<String>,
    /// What happens around the loss.
    pub story: Vec<Chapter>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Loss {
    /// The driver is reloaded.
    #[default]
    Nic,
    /// The driver is reloaded, and the NIC has carrier only while the restore waits.
    Late,
    /// None: the pod keeps its link.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Chapter {
    /// Half an hour passes after the snapshot, and all leases are renewed meanwhile.
    Renewed,
    /// A pod is created after the snapshot.
    Young,
    /// Before the restore somebody makes `eth0` again by hand, and a snapshot is taken.
    Half,
    /// After the restore the NIC loses its carrier twice.
    Flap,
    /// Before the second loss a snapshot is taken.
    Saved,
    /// The NIC is lost again after the restore.
    Twice,
}

impl Case {
    pub fn has(&self, chapter: Chapter) -> bool {
        self.story.contains(&chapter)
    }

    /// Whether the NIC is lost.
    pub fn is_lost(&self) -> bool {
        self.loss != Loss::None
    }

    /// The case that is smaller by one thing at this place; none behind the last place.
    fn without(&self, mut at: usize) -> Option<Self> {
        let mut case = self.clone();
        if at < case.story.len() {
            case.story.remove(at);
            return Some(case);
        }
        at -= case.story.len();
        for list in 0..4 {
            let lines = match list {
                0 => &mut case.host,
                1 => &mut case.host_harm,
                2 => &mut case.harm,
                _ => &mut case.lines,
            };
            if at < lines.len() {
                lines.remove(at);
                return Some(case);
            }
            at -= lines.len();
        }
        match at {
            0 => case.kind.clear(),
            1 => case.parent.clear(),
            2 => case.second = false,
            3 => case.wire = false,
            4 => case.dad = false,
            5 => case.daemon = false,
            6 if self.loss == Loss::Late => case.loss = Loss::Nic,
            6 => {}
            _ => return None,
        }
        Some(case)
    }

    /// The case without each thing that it does not need to fail, and why it fails.
    pub fn smaller(mut self, fails: impl Fn(&Self) -> Option<String>) -> (Self, String) {
        let mut why = String::new();
        let mut at = 0;
        while let Some(without) = self.without(at) {
            let is_same = serde_json::to_value(&without).ok() == serde_json::to_value(&self).ok();
            match (!is_same).then(|| fails(&without)).flatten() {
                Some(what) => (self, why) = (without, what),
                None => at += 1,
            }
        }
        (self, why)
    }
}

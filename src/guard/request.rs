//! What a look is asked, and what it leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock;
use crate::guard::decide::{Choice, Decided, GuardDecision};
use crate::guard::watched::WatchEnd;
use crate::model::pod::identity::Holder;
use crate::model::window::GuardRecord;
use crate::model::{Code, Exit, IfName, Problem};
use crate::store::Store;
use crate::upgrade::ledger::Upgraded;
use crate::upgrade::request::UpgradeRequest;

/// The request for a look.
pub(crate) struct GuardRequest {
    pub upgrade: UpgradeRequest<'static>,
    pub choice: Choice,
    /// When links of the host were lost (`CLOCK_BOOTTIME`, milliseconds), as far as events reported it.
    pub losses: BTreeMap<IfName, u64>,
    /// The kernel's last record when nothing was lost.
    pub logged: Option<u64>,
    /// The process that watches.
    pub watcher: Option<Holder>,
    /// What the last look knew; `None`: as it is on disk.
    pub known: Option<GuardRecord>,
}

/// What a look leaves.
pub(crate) struct LookResult {
    /// For the next look.
    pub record: GuardRecord,
    /// How it ends where nothing is restored, and no other look follows.
    pub left: Exit,
    /// The restore, if one took place.
    pub upgraded: Option<Upgraded>,
    /// The watches that are over.
    pub watched: Vec<WatchEnd>,
    pub problems: Vec<Problem>,
}

impl Decided {
    /// Nothing was restored.
    pub(super) fn left(self) -> LookResult {
        LookResult {
            left: match self.decision {
                GuardDecision::Well
                | GuardDecision::LeftToWindow { .. }
                | GuardDecision::Held { lost: 0, .. } => Exit::Done,
                GuardDecision::NoPod { .. } => Exit::Refused,
                _ => Exit::Failed,
            },
            record: self.record,
            upgraded: None,
            watched: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// While another netfix has the lock, what is known is written after so long.
const UNWRITTEN: Duration = Duration::from_secs(5);

/// Writes what is known. Where another netfix has the lock, the process that watches has it in memory, and the next look writes it:
/// `status` and a guard that is started again read the file.
pub(super) fn keep(store: &Store, known: &GuardRecord, record: &mut GuardRecord) {
    if known == record && store.load_guard().is_ok_and(|stored| stored == *record) {
        return;
    }
    let store = store.clone().patient(Duration::ZERO, |_| {});
    let saved = store
        .lock("guard")
        .and_then(|guard| guard.save_guard(record));
    if saved.is_err_and(|error| error.problem().code() == Code::LockHeld) {
        let soon = clock::boottime() + clock::milliseconds(UNWRITTEN);
        record.again_at = Some(record.again_at.map_or(soon, |at| at.min(soon)));
    }
}

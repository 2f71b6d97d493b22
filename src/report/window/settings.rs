//! The settings of NICs that a window lost, and what became of each.

use serde::Serialize;

use super::view::ReportView;
use crate::model::net::link::OtherDriver;
use crate::model::net::link::nic::present;
use crate::model::window::{LostSetting, SettingResult};
use crate::model::{IfName, PodId};
use crate::report::style::Tone;
use crate::report::table::{Cell, KEPT, Table};
use crate::report::text::{escape, others, part_of};

/// How many settings of a NIC were lost, and what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingCounts {
    /// The pod that has the NIC; null for a NIC of the host.
    pub pod: Option<PodId>,
    /// The NIC.
    pub nic: IfName,
    /// All that were lost.
    pub total: usize,
    /// Those that were put back.
    pub restored: usize,
    /// Those that the driver refused.
    pub refused: usize,
    /// Those that the driver does not have any more.
    pub unknown: usize,
    /// Those that need carrier, which the NIC did not have.
    pub waiting: usize,
    /// Those that were only to be reported.
    pub left: usize,
    #[serde(skip)]
    driver: Option<Box<OtherDriver>>,
}

impl SettingCounts {
    /// The counts of each NIC, from settings in the order of the record.
    pub(super) fn all(settings: &[LostSetting]) -> Vec<Self> {
        let same = |a: &LostSetting, b: &LostSetting| (&a.pod, &a.nic) == (&b.pod, &b.nic);
        settings.chunk_by(same).filter_map(Self::of).collect()
    }

    fn of(settings: &[LostSetting]) -> Option<Self> {
        let first = settings.first()?;
        let count = |result| settings.iter().filter(|one| one.result == result).count();
        Some(Self {
            pod: first.pod.clone(),
            nic: first.nic.clone(),
            total: settings.len(),
            restored: count(SettingResult::Restored),
            refused: count(SettingResult::Refused),
            unknown: count(SettingResult::Unknown),
            waiting: count(SettingResult::Waiting),
            left: count(SettingResult::Left),
            driver: first.driver.clone(),
        })
    }

    /// Such as `eth0: 2 of 3 settings restored, 1 refused; with the new driver, igb 5.19.4 instead of 5.6.0`.
    fn words(&self, view: &ReportView) -> String {
        let results = [
            (self.refused, SettingResult::Refused),
            (self.unknown, SettingResult::Unknown),
            (self.waiting, SettingResult::Waiting),
            (self.left, SettingResult::Left),
        ];
        let others = others(results.map(|(number, result)| (number, result_word(result).0)));
        let driver = self.driver.as_ref();
        let driver = driver.map(|driver| format!("; with {driver}"));
        format!(
            "{}: {} restored{others}{}",
            nic(view, self.pod.as_ref(), &self.nic),
            part_of(self.restored, self.total, "setting"),
            driver.unwrap_or_default()
        )
    }
}

fn nic(view: &ReportView, pod: Option<&PodId>, nic: &IfName) -> String {
    match pod {
        Some(pod) => format!("{nic} in pod {}", escape(&view.title_of(pod))),
        None => nic.to_string(),
    }
}

fn result_word(result: SettingResult) -> (&'static str, Tone) {
    match result {
        SettingResult::Restored => ("restored", Tone::Good),
        SettingResult::Refused => ("refused", Tone::Bad),
        SettingResult::Unknown => ("not in this driver", Tone::Bad),
        SettingResult::Waiting => ("waits for carrier", Tone::Warning),
        SettingResult::Left => ("not restored", Tone::Warning),
    }
}

/// Its value after COMMAND.
fn found(setting: &LostSetting) -> String {
    let found = match &setting.found {
        None if setting.result == SettingResult::Unknown => return "absent".to_owned(),
        found => present(found.as_ref(), None),
    };
    match &setting.driver {
        // The recorded value may be a default of the former driver.
        Some(driver) if driver.is_firmware_alone() => format!("{found} (new firmware)"),
        Some(_) => format!("{found} (new driver)"),
        None => found,
    }
}

/// One line for each NIC.
pub(super) fn lines(view: &ReportView) -> impl Iterator<Item = String> {
    let nics = view.computed.settings.iter();
    nics.map(|counts| counts.words(view))
}

/// Each setting.
pub(super) fn table(view: &ReportView) -> Table<'_, &LostSetting> {
    Table::new(&view.window.settings)
        .column("NIC", KEPT, |one| nic(view, one.pod.as_ref(), &one.nic))
        .heads_rows()
        .column("Setting", KEPT, |one| {
            format!("{} {}", one.group.as_str(), one.key)
        })
        .column("Before", KEPT, |one| one.before.short())
        .column("After COMMAND", KEPT, |one| found(one))
        .column("Result", KEPT, |one| {
            let (word, tone) = result_word(one.result);
            Cell::badge(word, tone)
        })
        .marked(|one| Some(result_word(one.result).1).filter(|tone| *tone != Tone::Good))
}

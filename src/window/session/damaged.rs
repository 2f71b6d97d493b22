//! A file of the open window that cannot be used, while its record is in memory.

use crate::model::Problem;
use crate::model::problem::WindowCause;
use crate::store::Guard;

/// Writes the file again, and keeps the damaged one; returns what to report.
pub(crate) fn mend(guard: &Guard) -> Option<Problem> {
    let damage = guard.store().window_damage()?;
    let window = guard.store().unclosed_window().ok()??;
    Some(match guard.replace_damaged_window(&window) {
        Ok(aside) => {
            let (error, aside) = (damage.to_string(), aside.display().to_string());
            WindowCause::RecordReplaced { error, aside }.warning(damage.object())
        }
        Err(error) => error.problem().demoted(),
    })
}

//! Problems of the inventory as a whole.

use std::fmt::Display;

use crate::matching::Selection;
use crate::model::Problem;
use crate::model::problem::InventoryCause;

/// An object that cannot be read.
pub(crate) fn cannot_observe(object: &str, error: &dyn Display) -> Problem {
    let error = error.to_string();
    InventoryCause::CannotObserve { error }.error(object)
}

/// The problem when no running pod is among those that the user selected; `None` if the user selected none.
pub(crate) fn no_match(selection: &Selection) -> Option<Problem> {
    (!selection.is_everything()).then(|| InventoryCause::NoSuchPod.error(selection.to_string()))
}

//! Sentences about the command line and the machine.

use std::fmt;

use crate::model::problem::UsageCause;

impl fmt::Display for UsageCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRoot => "netfix enters network namespaces of other processes: run it as root",
            Self::TextOnly => "this command only prints a text",
        })
    }
}

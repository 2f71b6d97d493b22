//! Sentences about the command line and the machine.

use crate::model::problem::UsageCause;

sentences! {
    UsageCause {
        NotRoot => "netfix enters network namespaces of other processes: run it as root",
        TextOnly => "this command only prints a text",
    }
}

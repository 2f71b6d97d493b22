//! The question before a window is opened.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::model::Problem;
use crate::model::problem::WindowCause;
use crate::report::{self, Document};

/// Refuses where the question cannot be answered.
pub(crate) fn check_terminal() -> Result<(), Problem> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Ok(())
    } else {
        Err(WindowCause::NoTerminal.error("upgrade"))
    }
}

/// Asks once, with the list of the pods that may lose their network.
pub(crate) fn opening(shown: &Document) -> Result<(), Problem> {
    if is_confirmed(shown).unwrap_or(false) {
        Ok(())
    } else {
        Err(WindowCause::NotConfirmed.error("upgrade"))
    }
}

fn is_confirmed(shown: &Document) -> io::Result<bool> {
    let mut terminal = io::stderr().lock();
    write!(terminal, "{}", report::question(shown))?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "yes" | "y"))
}

//! The question before a window is opened.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::context::Context;
use crate::model::problem::WindowCause;
use crate::refusal::Refusal;
use crate::report;
use crate::upgrade::preview;
use crate::upgrade::preview::Preview;
use crate::upgrade::request::UpgradeRequest;

/// Asks once, with the list of the pods that may lose their network.
pub(crate) fn opening(request: &UpgradeRequest<'_>, context: &Context) -> Result<(), Refusal> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(WindowCause::NoTerminal.error("upgrade").into());
    }
    let preview = preview::run(request, context)?;
    if is_confirmed(request, preview).unwrap_or(false) {
        Ok(())
    } else {
        Err(WindowCause::NotConfirmed.error("upgrade").into())
    }
}

fn is_confirmed(request: &UpgradeRequest<'_>, preview: Preview) -> io::Result<bool> {
    let mut terminal = io::stderr().lock();
    for problem in &preview.problems {
        writeln!(terminal, "{}: {problem}", problem.severity)?;
    }
    let shown = report::preview(request, preview);
    let prospect = report::prospect(&shown.node.steps, &shown.pods);
    write!(terminal, "{prospect}\nContinue? [yes/no] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "yes" | "y"))
}

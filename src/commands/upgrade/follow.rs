//! `netfix status --follow`: what is said in the window that is open, from any login.

use std::io;
use std::path::Path;

use crate::commands::{Context, Early, Outcome, window};
use crate::model::{Code, Problem};

pub(in crate::commands) fn run(context: &mut Context) -> Result<Outcome, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let open = || context.store.open_window().map_err(|error| error.problem());
    let Some(now) = open().map_err(refuse)? else {
        let message = "no window is open";
        return Ok(Outcome {
            problems: vec![Problem::info(Code::NotFound, "window", message)],
            ..Outcome::default()
        });
    };
    if let Some(log) = &now.log {
        let is_over = || !open().is_ok_and(|window| window.is_some_and(|window| window.id == now.id));
        // Whoever keeps the log may take it away in this moment.
        let _ = window::follow(Path::new(log), true, &mut io::stdout(), is_over);
    }
    let record = context.store.load_window(&now.id).map_err(|error| refuse(error.problem()))?;
    let extra = record.map(|record| window::view(&record, None));
    Ok(Outcome { extra, ..Outcome::default() })
}

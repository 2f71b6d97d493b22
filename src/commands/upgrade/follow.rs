//! `netfix status --follow`: what is said in the window that is open, from any login.

use std::io::{self, ErrorKind, SeekFrom, Write};
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
    let (mut log, mut shown) = (now.log, 0);
    while let Some(path) = log {
        let is_open = || open().ok().flatten().filter(|window| window.id == now.id);
        let is_over = || is_open().is_none_or(|window| window.log.as_ref() != Some(&path));
        // stdout belongs to the document where one is wanted.
        let to: &mut dyn Write = if context.json { &mut io::stderr() } else { &mut io::stdout() };
        match window::follow(Path::new(&path), SeekFrom::Start(shown), to, is_over) {
            Ok(end) => shown = end,
            // Whoever keeps the log may take it away in this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // Nobody reads this any more.
            Err(_) => return Ok(Outcome::default()),
        }
        // A window that another process has taken over has another log, which begins with what this one says.
        log = is_open().and_then(|window| window.log).filter(|next| *next != path);
    }
    let record = context.store.load_window(&now.id).map_err(|error| refuse(error.problem()))?;
    let extra = record.map(|record| window::view(&record, None));
    Ok(Outcome { extra, ..Outcome::default() })
}

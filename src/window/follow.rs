//! Follows the log of the open window, from any login.

use std::io::{ErrorKind, SeekFrom, Write};
use std::path::Path;

use crate::refusal::Refusal;
use crate::store::Store;
use crate::window::status::WindowStatus;
use crate::window::window_log;

/// How following ended.
pub(crate) enum Followed {
    /// No window was open.
    NoWindow,
    /// The reader of the copy is gone.
    ReaderGone,
    /// The window is closed; `None` when its record is gone.
    Closed(Option<Box<WindowStatus>>),
}

/// Copies the log to `to` until the window is closed.
pub(crate) fn run(store: &Store, to: &mut dyn Write) -> Result<Followed, Refusal> {
    let Some(followed) = store.open_window()? else {
        return Ok(Followed::NoWindow);
    };
    let now = || {
        let open = store.open_window().ok().flatten();
        open.filter(|window| window.id == followed.id)
    };
    let (mut log, mut shown) = (followed.log.clone(), 0);
    while let Some(path) = log {
        let is_over = || now().is_none_or(|window| window.log.as_ref() != Some(&path));
        match window_log::follow(Path::new(&path), SeekFrom::Start(shown), to, is_over) {
            Ok(end) => shown = end,
            // The window's process may move the log to the records at this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return Ok(Followed::ReaderGone),
        }
        // A process that takes the window over continues its log in another file.
        log = now()
            .and_then(|window| window.log)
            .filter(|next| *next != path);
    }
    let record = store.load_window(&followed.id)?;
    let status = record.map(|record| Box::new(WindowStatus::new(record, None)));
    Ok(Followed::Closed(status))
}

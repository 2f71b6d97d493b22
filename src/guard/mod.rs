//! `netfix guard`: restores pods after a loss that no window caused.
//!
//! `watch` waits for events of links, in a process that stays small. `look` runs in a process of its own: it observes the machine,
//! `decide` (pure) says what follows, with the `turns` and the `pace` of losses that repeat and of pods that could not be completed
//! (pure), and a restore is a window of `upgrade`.

mod accounts;
mod assessment;
pub(crate) mod decide;
mod facts;
mod judge;
pub(crate) mod look;
mod pace;
mod sight;
mod turns;
pub(crate) mod watch;

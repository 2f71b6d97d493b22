//! `netfix guard`: restores pods after a loss that no window caused.
//!
//! `watch` waits for events of links, in a process that stays small. `look` runs in a process of its own: it observes the machine
//! (`observation`), `decide` (pure) says what follows: `judge` has the fates of links and pods, `turns` whose turn it is, by the `pace` of
//! each link that is lost again and of each pod that could not be completed, `assessment` the decision. `accounts` notes how a restore
//! began and ended. A restore (`act`) is a window of `upgrade`; `watched` adds to its record what became of the pods.

mod accounts;
mod act;
mod assessment;
pub(crate) mod decide;
mod facts;
mod judge;
pub(crate) mod look;
mod observation;
mod pace;
pub(crate) mod request;
mod sight;
mod turns;
pub(crate) mod watch;
pub(crate) mod watched;

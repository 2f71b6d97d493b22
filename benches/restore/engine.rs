//! netfix's engine alone: the program that prints what it costs from plans that are ready.

use netfix::engine::Ready;

use crate::cost::Cost;

pub const COMMAND: &str = "run-the-engine";

/// `COMMAND STATE_DIR NETNS`
pub fn run(arguments: &[String]) {
    let [state_dir, netns] = arguments else {
        panic!("a state directory and a glob: {arguments:?}")
    };
    let ready = Ready::prepare(state_dir.into(), netns);
    let mut ready = ready.unwrap_or_else(|why| panic!("nothing is planned: {why}"));
    Cost::print(|| {
        if let Err(why) = ready.restore() {
            panic!("the engine failed: {why}");
        }
    });
}

//! netfix's engine alone: a program that prints what a restore costs from plans that are ready. It is a program of its own: netfix,
//! which the benchmark times, is built without the feature of this entry.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "as in the benchmark"
)]

#[allow(dead_code, reason = "the benchmark uses the rest")]
mod cost;

use netfix::engine::Ready;

use cost::Cost;

/// `engine STATE_DIR NETNS`
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [state_dir, netns] = arguments.as_slice() else {
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

//! A busy machine.

use std::process::{Child, Command};

/// Processes that use the CPU until dropped.
pub struct Load(Vec<Child>);

impl Load {
    pub fn of(count: usize) -> Self {
        let busy = || {
            let mut shell = Command::new("timeout");
            shell.args(["60", "sh", "-c", "while :; do :; done"]);
            shell.spawn().expect("a shell")
        };
        Self((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // timeout(1) forwards the signal.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

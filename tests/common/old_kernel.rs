//! A kernel without cookies of network namespaces, as Linux before 5.14: a filter answers the query with the errno
//! of those kernels.

use std::collections::BTreeMap;
use std::process::{Child, Command};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::node::Node;
use super::run::Run;

/// Linux's number of the socket option (`asm-generic/socket.h`).
const SO_NETNS_COOKIE: u64 = 71;

impl Node {
    /// `netfix WORDS` on such a kernel.
    pub fn netfix_on_old_kernel(&self, words: &str) -> Run {
        run(&mut self.netfix_command(&["timeout", "120"], words))
    }
}

/// Runs a command until it ends.
pub fn run(command: &mut Command) -> Run {
    within(|| Run::of(command))
}

/// Starts a command.
pub fn spawn(command: &mut Command) -> std::io::Result<Child> {
    within(|| command.spawn())
}

/// Processes that the thread starts inherit its filter.
fn within<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            seccompiler::apply_filter(&filter())
                .expect("a filter of system calls on a scratch thread");
            work()
        });
        inside.join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn filter() -> BpfProgram {
    let is = |argument, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
            .expect("a condition")
    };
    let conditions = vec![
        is(1, u64::from(libc::SOL_SOCKET.unsigned_abs())),
        is(2, SO_NETNS_COOKIE),
    ];
    let rules = BTreeMap::from([(
        libc::SYS_getsockopt,
        vec![SeccompRule::new(conditions).expect("a rule")],
    )]);
    let refuse = SeccompAction::Errno(libc::ENOPROTOOPT.unsigned_abs());
    let machine = std::env::consts::ARCH
        .try_into()
        .expect("an architecture that can be filtered");
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine).expect("a filter");
    filter.try_into().expect("a program for the kernel")
}

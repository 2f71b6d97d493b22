//! A kernel without cookies of network namespaces, as Linux before 5.14, or without fsopen(2), as before 5.2: a filter answers with
//! the errno of those kernels.

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
        run(&mut self.netfix_command(&["timeout", "600"], words))
    }

    /// The same on a kernel without fsopen(2).
    pub fn netfix_without_fsopen(&self, words: &str) -> Run {
        let rules = BTreeMap::from([(libc::SYS_fsopen, Vec::new())]);
        let filter = filter(rules, libc::ENOSYS);
        let mut command = self.netfix_command(&["timeout", "600"], words);
        within(&filter, || Run::of(&mut command))
    }
}

/// Runs a command until it ends.
pub fn run(command: &mut Command) -> Run {
    within(&without_cookies(), || Run::of(command))
}

/// Starts a command.
pub fn spawn(command: &mut Command) -> std::io::Result<Child> {
    within(&without_cookies(), || command.spawn())
}

/// Processes that the thread starts inherit its filter.
fn within<T: Send>(filter: &BpfProgram, work: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            seccompiler::apply_filter(filter)
                .expect("a filter of system calls on a scratch thread");
            work()
        });
        inside.join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn without_cookies() -> BpfProgram {
    let is = |argument, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
            .expect("a condition")
    };
    let conditions = vec![
        is(1, u64::from(libc::SOL_SOCKET.unsigned_abs())),
        is(2, SO_NETNS_COOKIE),
    ];
    let rule = SeccompRule::new(conditions).expect("a rule");
    let rules = BTreeMap::from([(libc::SYS_getsockopt, vec![rule])]);
    filter(rules, libc::ENOPROTOOPT)
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> BpfProgram {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let machine = std::env::consts::ARCH
        .try_into()
        .expect("an architecture that can be filtered");
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine).expect("a filter");
    filter.try_into().expect("a program for the kernel")
}

//! Programs that are attached to links through tcx (Linux 6.6), which no dump lists.

use nix::libc;

use crate::model::net::traffic::LostTraffic;
use crate::model::{Link, LinkKind};

/// `BPF_PROG_QUERY` (`linux/bpf.h`).
const PROG_QUERY: libc::c_int = 16;
/// `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS`.
const HOOKS: [(u32, &str); 2] = [(46, "ingress"), (47, "egress")];

/// The part of `union bpf_attr` for a query, as far as kernels with tcx read and write it.
#[repr(C, align(8))]
#[derive(Default)]
struct ProgramQuery {
    ifindex: u32,
    hook: u32,
    flags: u32,
    attach_flags: u32,
    /// Where to put the ids: nowhere.
    ids: u64,
    count: u32,
    padding: u32,
    attach_flags_of_each: u64,
    links: u64,
    flags_of_each_link: u64,
    revision: u64,
}

/// Notes the programs on these links of the calling thread's namespace.
pub(super) fn read(links: &mut [Link]) {
    for link in links
        .iter_mut()
        .filter(|link| link.kind != LinkKind::Loopback)
    {
        let with_program = HOOKS
            .iter()
            .filter(|(hook, _)| has_program(link.index, *hook));
        let lost: Vec<_> = with_program
            .map(|(_, name)| LostTraffic::program(format!("tcx program at {name}")))
            .collect();
        link.traffic.lost.extend(lost);
    }
}

/// Whether a program is attached there; none on a kernel without tcx or without `bpf`.
#[allow(unsafe_code)]
fn has_program(ifindex: u32, hook: u32) -> bool {
    let mut query = ProgramQuery {
        ifindex,
        hook,
        ..ProgramQuery::default()
    };
    // SAFETY: `query` is laid out as the command expects it, lives through the call, and its size goes with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_QUERY,
            &raw mut query,
            size_of::<ProgramQuery>(),
        )
    };
    result == 0 && query.count > 0
}

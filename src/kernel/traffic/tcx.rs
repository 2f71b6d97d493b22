//! Programs that are attached to links through tcx (Linux 6.6), which no dump lists.

use super::bpf;
use crate::model::{Link, LinkKind};

/// `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS` (`linux/bpf.h`).
const HOOKS: [(u32, &str); 2] = [(46, "ingress"), (47, "egress")];

/// Notes the programs on these links of the calling thread's namespace.
pub(super) fn read(links: &mut [Link]) {
    for link in links
        .iter_mut()
        .filter(|link| link.kind != LinkKind::Loopback)
    {
        for (hook, name) in HOOKS {
            let programs = bpf::attached(link.index, hook);
            if !programs.is_empty() {
                let what = format!("tcx program at {name}");
                link.traffic.push_program(what, programs);
            }
        }
    }
}

//! The fixture of the native tests: a private "node" namespace whose parent interface is one end of a veth
//! pair, a gateway at the other end, and pods with macvlan interfaces between them. It contains no test of
//! netfix itself.
#![allow(
    dead_code,
    unused_imports,
    reason = "every test crate uses its own part of the fixture"
)]
#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]

pub mod alone;
pub mod background;
pub mod capture;
pub mod cni;
pub mod cni_cache;
pub mod containerd;
pub mod cri;
pub mod diff;
pub mod disk;
pub mod image;
pub mod journald;
pub mod kept;
pub mod leftovers;
pub mod libcni;
pub mod machine;
pub mod manifest;
pub mod moment;
pub mod namespace;
pub mod node;
pub mod numbers;
pub mod old_kernel;
pub mod pod;
pub mod problem;
pub mod qdiscs;
pub mod reuse;
pub mod run;
pub mod runtimes;
pub mod schema;
pub mod systemd;
pub mod tenant;
pub mod tool;
pub mod trace;
pub mod traffic;
pub mod workload;

pub use containerd::{CriNode, CriPod};
pub use node::{GATEWAY4, GATEWAY6, Node, OTHER_NIC};
pub use pod::Pod;
pub use problem::ReportedProblem;
pub use run::Run;

//! netfix on real namespaces, real macvlans and a parent that is really deleted. Needs root and the packages of
//! scripts/setup.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod alive;
mod answers;
mod bytes;
mod cgroups;
mod check;
mod checkpoints;
mod churn;
mod claims;
mod clock;
mod cni;
mod completions;
mod conflict_probe;
mod conflicts;
mod containerd;
mod containerd_down;
mod contested;
mod cron;
mod cut_off;
mod daemons;
mod damage;
mod deleted;
mod disk;
mod drift;
mod duplicates;
mod elsewhere;
mod fidelity;
mod files;
mod generations;
mod guard;
mod harness;
mod host;
mod host_scope;
mod hostile_tenant;
mod huge;
mod identity;
mod interrupted;
mod kept;
mod kernel_made;
mod killed;
mod kubernetes;
mod left_over;
mod links;
mod lock;
mod log;
mod log_names;
mod lost;
mod machines;
mod managers;
mod masquerade;
mod moments;
mod monitoring;
mod named;
mod names;
mod opened;
mod output;
mod own_addresses;
mod own_packets;
mod panics;
mod partial;
mod private;
mod raced;
mod reach;
mod recreated;
mod rehearsal;
mod renamed;
mod roundtrip;
mod routes;
mod runtime;
mod second_source;
mod seen;
mod sockets;
mod status;
mod switches;
mod sysctls;
mod systemd;
mod targets;
mod timers;
mod traced;
mod unreachable;
mod unsupported;
mod usage;
mod verify;
mod wait;
mod window;
mod young;

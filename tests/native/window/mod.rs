//! The maintenance window under a real systemd. systemctl(1), ip(8), CRI and files supply the expected state.

mod abandoned;
mod beside;
mod bus;
mod command;
mod damaged;
mod deadline;
mod detached;
mod disk;
mod dry_run;
mod gateways;
mod killed;
mod kubelets;
mod lock;
mod lost_again;
mod nic;
mod nics;
mod proof;
mod question;
mod reboot;
mod refused;
mod rollback;
mod scene;
mod signals;
mod started;
mod units;
mod whole;

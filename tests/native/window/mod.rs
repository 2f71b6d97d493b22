//! The maintenance window under a real systemd. The judges are systemctl(1), ip(8), CRI and files.

mod beside;
mod deadline;
mod scene;
mod units;
mod whole;

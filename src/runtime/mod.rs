//! Clients of the container runtimes: which sandboxes they run, with names, uids and container ids.

mod answer;
mod ask;
mod body;
mod call;
mod cri;
mod cri_api;
mod docker;
mod docker_api;
mod endpoints;
mod grpc;
mod http;
pub(crate) mod names;

pub(crate) use answer::Configured;
pub use answer::{Answer, Asked, Config, Sandbox, Which};
pub(crate) use ask::{LIMIT, ask_until, refusal};

//! Clients of the container runtimes: which sandboxes they run, with names, uids and container ids.

mod answer;
mod call;
mod cri;
mod cri_api;
mod docker;
mod docker_api;
mod endpoints;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod grpc;
mod http;
pub(crate) mod names;
mod query;

pub(crate) use answer::Configured;
pub use answer::{Queried, RuntimeAnswer, RuntimeConfig, Sandbox, Which};
pub(crate) use query::{query, refusal};

//! Docker's API: the answers that netfix uses, with the fields that it uses.
//!
//! Requests name no API version: each engine answers in its newest. podman writes `null` where Docker leaves a field out.

use std::collections::HashMap;
use std::path::PathBuf;

use hyper::header::SERVER;
use hyper::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::http::{Failed, get};

/// `{"status":["running","paused"]}`: podman leaves out paused containers unless a request names them.
const LIST: &str =
    "/containers/json?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D";

/// The same with `restarting`, which only Docker knows: such a container has no namespace, and is not gone.
const LIST_RESTARTING: &str = "/containers/json?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%2C%22restarting%22%5D%7D";
/// `{"label":["io.kubernetes.docker.type=container"],"status":["running","paused","exited","created"]}`
const LIST_OF_PODS: &str = "/containers/json?filters=%7B%22label%22%3A%5B%22io.kubernetes.docker.type%3Dcontainer%22%5D%2C%22status%22%3A%5B%22running%22%2C%22paused%22%2C%22exited%22%2C%22created%22%5D%7D";

/// Which containers to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// Those that run or are paused.
    Running,
    /// Those that wait to be restarted, too.
    Restarting,
    /// The containers of pods of Kubernetes but their sandboxes, ended ones too.
    OfPods,
}

/// Labels of a container.
pub(super) type Labels = HashMap<String, String>;

/// What an engine calls itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub name: String,
    pub version: String,
}

/// One container of the list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedContainer {
    pub id: Option<String>,
    pub labels: Option<Labels>,
    pub state: Option<String>,
    /// In seconds since 1970.
    pub created: Option<i64>,
}

/// One container in full.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct InspectedContainer {
    pub name: Option<String>,
    pub state: Option<ContainerState>,
    pub host_config: Option<HostConfig>,
    pub config: Option<ContainerConfig>,
    pub network_settings: Option<NetworkSettings>,
    pub restart_count: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ContainerState {
    pub running: Option<bool>,
    pub paused: Option<bool>,
    pub restarting: Option<bool>,
    pub pid: Option<i64>,
    pub exit_code: Option<i64>,
    /// When it ended last (RFC 3339); in the year 1 if it never did.
    pub finished_at: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HostConfig {
    pub network_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ContainerConfig {
    pub labels: Option<Labels>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NetworkSettings {
    pub sandbox_key: Option<PathBuf>,
}

/// The engine's name and version.
///
/// From `/_ping`, not `/version`: for that, podman looks up the packages of its helpers, which takes seconds on a slow
/// disk.
pub(super) async fn product(socket: &str) -> Result<Product, Failed> {
    let response = get(socket, "/_ping").await?;
    if response.status() != StatusCode::OK {
        return Err(refused(&response));
    }
    named(&response).ok_or_else(|| "the answer names no engine".into())
}

/// Containers.
pub(super) async fn list(socket: &str, listed: Listed) -> Result<Vec<ListedContainer>, Failed> {
    let path = match listed {
        Listed::Running => LIST,
        Listed::Restarting => LIST_RESTARTING,
        Listed::OfPods => LIST_OF_PODS,
    };
    parsed(&get(socket, path).await?)
}

/// One container; `None` if the engine has no container with that id.
pub(super) async fn inspect(socket: &str, id: &str) -> Result<Option<InspectedContainer>, Failed> {
    let response = get(socket, &format!("/containers/{id}/json")).await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    parsed(&response).map(Some)
}

fn parsed<T: DeserializeOwned>(response: &Response<impl AsRef<[u8]>>) -> Result<T, Failed> {
    if response.status() != StatusCode::OK {
        return Err(refused(response));
    }
    Ok(serde_json::from_slice(response.body().as_ref())?)
}

/// The status of an answer that is not 200, and its message where it has one.
fn refused(response: &Response<impl AsRef<[u8]>>) -> Failed {
    #[derive(Deserialize)]
    struct ErrorBody {
        message: String,
    }
    let status = response.status();
    let refused: Result<ErrorBody, _> = serde_json::from_slice(response.body().as_ref());
    match refused {
        Ok(ErrorBody { message }) => format!("HTTP {status}: {message}").into(),
        Err(_) => format!("HTTP {status}").into(),
    }
}

/// The first word of the header `Server`, as in `Docker/20.10.24 (linux)` or `Libpod/4.3.1 (linux)`.
fn named<T>(response: &Response<T>) -> Option<Product> {
    let server = response.headers().get(SERVER)?.to_str().ok()?;
    let (name, version) = server.split_whitespace().next()?.split_once('/')?;
    Some(Product {
        name: name.to_owned(),
        version: version.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_version_is_no_engine() {
        for server in ["", "nginx", " (linux)"] {
            let response = Response::builder().header(SERVER, server).body(()).unwrap();
            assert_eq!(named(&response), None, "{server:?}");
        }
        assert_eq!(named(&Response::new(())), None);
    }

    #[test]
    fn podmans_null_is_an_absent_field() {
        let body = r#"[{"Id": "0123", "Labels": null, "Names": ["web"], "Created": 1}]"#;
        let listed: Vec<ListedContainer> = parsed(&Response::new(body)).unwrap();
        assert_eq!(listed[0].id.as_deref(), Some("0123"));
        assert_eq!(listed[0].labels, None);
        let body = r#"{"Id": "0123", "State": {"Running": true, "Pid": 0}, "HostConfig": null}"#;
        let inspected: InspectedContainer = parsed(&Response::new(body)).unwrap();
        assert_eq!(inspected.state.unwrap().running, Some(true));
    }

    #[test]
    fn an_error_has_its_status_and_the_engines_message() {
        let answer = |body: &'static str| {
            let response = Response::builder().status(500).body(body).unwrap();
            parsed::<InspectedContainer>(&response)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            answer(r#"{"message": "out of order"}"#),
            "HTTP 500 Internal Server Error: out of order"
        );
        assert_eq!(answer("<html>"), "HTTP 500 Internal Server Error");
    }
}

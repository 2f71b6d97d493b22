//! What a runtime may answer, for the fuzz targets.

use prost::Message;

use super::answer::Sandbox;
use super::{cri, cri_api, docker, docker_api, grpc};

/// The answer to any request over CRI.
pub(crate) fn cri(body: &[u8]) {
    let _ = grpc::unframed::<cri_api::VersionResponse>(body);
    let _ = grpc::unframed::<cri_api::ListPodSandboxResponse>(body);
    let _ = grpc::unframed::<cri_api::ListContainersResponse>(body);
    let framed = grpc::unframed::<cri_api::PodSandboxStatusResponse>(body);
    // Most bodies are no frame.
    let bare = cri_api::PodSandboxStatusResponse::decode(body);
    for answer in framed.ok().into_iter().chain(bare.ok()) {
        let info = answer.info.get("info").map_or("", String::as_str);
        let status = answer.status.unwrap_or_default();
        check(cri::described("0123456789ab".to_owned(), status, info));
    }
}

/// The body of any answer of a Docker engine.
pub(crate) fn docker(body: &[u8]) {
    let listed: Result<Vec<docker_api::ListedContainer>, _> = serde_json::from_slice(body);
    for container in listed.into_iter().flatten() {
        let _ = docker::of_sandbox(container);
    }
    if let Ok(container) = serde_json::from_slice(body) {
        check(docker::described(
            "0123456789ab".to_owned(),
            container,
            "docker",
        ));
    }
}

/// No name of a sandbox writes to a terminal what is no text.
fn check(sandbox: Option<Sandbox>) {
    let Some(Sandbox {
        namespace,
        name,
        uid,
        ..
    }) = sandbox
    else {
        return;
    };
    for text in [namespace, name, uid].into_iter().flatten() {
        assert!(
            !text.is_empty() && !text.chars().any(char::is_control),
            "{text:?}"
        );
    }
}

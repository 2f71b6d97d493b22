//! One file of libcni's cache (`cniCacheV1`): one interface of one pod.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::{Arguments, Chain};
use super::{result, spare_mac};
use crate::model::pod::partial::{Attachment, Made};
use crate::model::text::escape;
use crate::model::{Bytes, IfName, PodId, PodInfo};

/// The contents of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The pod, under the beginning of its sandbox id.
    pub info: PodInfo,
    /// Name of the network.
    pub network: String,
    /// Paths of the pod's namespace.
    pub paths: Vec<String>,
    /// The interface.
    pub attachment: Attachment,
}

/// The file as libcni writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cached {
    kind: String,
    container_id: String,
    config: String,
    if_name: String,
    network_name: String,
    #[serde(default)]
    netns: Option<String>,
    #[serde(default)]
    cni_args: Vec<(String, String)>,
    #[serde(default)]
    capability_args: Map<String, Value>,
    #[serde(default)]
    result: Value,
}

/// A pod's id is this many characters of its sandbox id.
const SHORT_ID: usize = 12;
const KIND: &str = "cniCacheV1";
/// The source of names that come from the cache.
pub const SOURCE: &str = "cni-cache";
/// Created by the runtime in every namespace; never lost.
const LOOPBACK: &str = "loopback";

/// Parses a file's text; `None` for the loopback device, which is never lost.
///
/// # Errors
/// Why the text cannot be used.
pub fn parse(text: &str) -> Result<Option<CacheEntry>, String> {
    if text.trim().is_empty() {
        return Err("the file is empty: libcni was interrupted while writing it".to_owned());
    }
    let cached: Cached = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if cached.kind != KIND {
        return Err(format!(
            "its kind is \"{}\", not {KIND}",
            escape(&cached.kind)
        ));
    }
    if cached.container_id.is_empty() {
        return Err("it has no containerId".to_owned());
    }
    let bytes = BASE64_STANDARD
        .decode(&cached.config)
        .map_err(|error| format!("its configuration is not base64: {error}"))?;
    let chain = Chain::parse(&bytes).map_err(|error| format!("its configuration: {error}"))?;
    if chain.main_type() == LOOPBACK {
        return Ok(None);
    }
    entry(cached, &chain).map(Some)
}

fn entry(cached: Cached, chain: &Chain) -> Result<CacheEntry, String> {
    let if_name = IfName::try_from(cached.if_name.clone()).map_err(|error| error.to_string())?;
    let args = Arguments {
        pairs: &cached.cni_args,
        capabilities: &cached.capability_args,
    };
    let mut attachment = chain.attachment(&if_name, args)?;
    if attachment.can_be_made() {
        let result =
            result::parse(&cached.result).map_err(|error| format!("its result: {error}"))?;
        result::fill(
            &mut attachment,
            &result,
            &result::own_addresses(&if_name, &result),
        );
    }
    if matches!(attachment.made, Made::Macvlan { .. }) && attachment.mac.is_none() {
        attachment.spare_mac = Some(spare_mac(&cached.container_id, &if_name));
    }
    let arg = |key: &str| {
        args.pair(key)
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let short: String = cached.container_id.chars().take(SHORT_ID).collect();
    let info = PodInfo {
        id: PodId::from_text(&short),
        namespace: arg("K8S_POD_NAMESPACE"),
        name: arg("K8S_POD_NAME").map(Bytes::from),
        uid: arg("K8S_POD_UID"),
        sandbox: Some(cached.container_id.clone()),
        attempt: None,
        source: SOURCE.to_owned(),
    };
    Ok(CacheEntry {
        info,
        paths: paths(&cached),
        network: cached.network_name,
        attachment,
    })
}

/// Every path of the namespace in the file: plugins write it into their result, and libcni since 1.3 beside it.
fn paths(cached: &Cached) -> Vec<String> {
    let interfaces = cached.result["interfaces"].as_array().into_iter().flatten();
    let sandboxes = interfaces.filter_map(|interface| interface["sandbox"].as_str());
    let mut paths: Vec<String> = Vec::new();
    for path in cached.netns.as_deref().into_iter().chain(sandboxes) {
        if !path.is_empty() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

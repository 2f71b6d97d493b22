//! Names of containers: Kubernetes' form, and names made safe for terminals.

/// The source of a pod whose name is known from a cgroup alone.
pub(crate) const SOURCE_CGROUP: &str = "cgroup";

/// The longest name in Kubernetes, in characters.
const MAX_NAME: usize = 253;

/// A name from a runtime; `None` when it is empty.
pub(crate) fn non_empty(text: &str) -> Option<String> {
    let name: String = plain(text).chars().take(MAX_NAME).collect();
    Some(name).filter(|name| !name.is_empty())
}

/// A text without control characters: the owner of a container chooses its names and paths.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// A container's name by dockershim and cri-dockerd: `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KubeName {
    /// Whether it is the pod's sandbox, and not one of its containers.
    pub is_sandbox: bool,
    /// The pod.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    pub uid: String,
    /// How often the container was recreated.
    pub attempt: u32,
}

impl KubeName {
    /// Parses such a name; dockershim appends a suffix after a name conflict.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix("k8s_")?.split('_');
        let mut next = || words.next().filter(|word| !word.is_empty());
        let is_sandbox = next()? == "POD";
        let (name, namespace, uid) = (next()?.to_owned(), next()?.to_owned(), next()?.to_owned());
        let attempt = next()?.parse().ok()?;
        Some(Self {
            is_sandbox,
            name,
            namespace,
            uid,
            attempt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_differs_from_its_containers() {
        let kube = |is_sandbox| KubeName {
            is_sandbox,
            name: "web-0".to_owned(),
            namespace: "shop".to_owned(),
            uid: "5e0c6f86-7f6c-4a1c-9f5e-2f4f0f3c1a11".to_owned(),
            attempt: 3,
        };
        let rest = "web-0_shop_5e0c6f86-7f6c-4a1c-9f5e-2f4f0f3c1a11_3";
        assert_eq!(
            KubeName::parse(&format!("k8s_POD_{rest}")),
            Some(kube(true))
        );
        assert_eq!(
            KubeName::parse(&format!("k8s_nginx_{rest}")),
            Some(kube(false))
        );
        assert_eq!(
            KubeName::parse(&format!("k8s_POD_{rest}_89b2d3fa")),
            Some(kube(true))
        );
    }

    #[test]
    fn other_names_belong_to_no_pod() {
        for name in [
            "",
            "web",
            "k8s_",
            "k8s_POD",
            "k8s_POD_web_shop_uid",
            "k8s_POD_web_shop_uid_x",
            "k8s_POD___u_1",
        ] {
            assert_eq!(KubeName::parse(name), None, "{name}");
        }
    }
}

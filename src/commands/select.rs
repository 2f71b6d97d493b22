//! Which namespaces and pods the user chose.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::cli::Selectors;
use crate::model::{Checkpoint, Code, PodInfo, Problem};
use crate::runtime::Select;

/// The user's choice; without any selector everything is wanted.
#[derive(Debug)]
pub(super) struct Selection {
    netns: Vec<NetnsPattern>,
    pods: Vec<GlobMatcher>,
}

#[derive(Debug)]
struct NetnsPattern {
    glob: GlobMatcher,
    /// The namespace that the path leads to, where it is a plain path to one.
    inode: Option<u64>,
}

impl Selection {
    /// Reads the selectors; the error is a pattern that is none, or a plain path that does not exist.
    pub(super) fn new(selectors: &Selectors) -> Result<Self, Problem> {
        let netns = selectors.netns.iter().map(|text| netns_pattern(text)).collect::<Result<_, _>>()?;
        let pods = selectors.pod.iter().map(|text| glob(text)).collect::<Result<_, _>>()?;
        Ok(Self { netns, pods })
    }

    /// What a command without selectors has.
    pub(super) fn everything() -> Self {
        Self { netns: Vec::new(), pods: Vec::new() }
    }

    /// Whether the user chose at all.
    pub(super) fn is_everything(&self) -> bool {
        self.netns.is_empty() && self.pods.is_empty()
    }

    /// Whether a pod is wanted by its name or id.
    pub(super) fn wants_pod(&self, info: &PodInfo) -> bool {
        let full =
            info.namespace.as_ref().zip(info.name.as_ref()).map(|(space, name)| format!("{space}/{name}"));
        let names = [Some(info.id.as_str()), info.name.as_deref(), full.as_deref()];
        self.pods.is_empty()
            || names.iter().flatten().any(|name| self.pods.iter().any(|glob| glob.is_match(name)))
    }

    /// Whether a stored checkpoint is wanted.
    pub(super) fn wants_checkpoint(&self, info: &PodInfo, checkpoint: &Checkpoint) -> bool {
        let inode = checkpoint.netfix.as_ref().map_or(0, |extension| extension.identity.inode);
        self.wants(&[PathBuf::from(&checkpoint.netns)], inode) && self.wants_pod(info)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let netns = self.netns.iter().map(|pattern| format!("--netns {}", pattern.glob.glob().glob()));
        let pods = self.pods.iter().map(|glob| format!("--pod {}", glob.glob().glob()));
        let words: Vec<String> = netns.chain(pods).collect();
        f.write_str(&words.join(" "))
    }
}

impl Select for Selection {
    fn wants(&self, paths: &[PathBuf], inode: u64) -> bool {
        let matches = |pattern: &NetnsPattern| {
            pattern.inode == Some(inode) || paths.iter().any(|path| pattern.glob.is_match(path))
        };
        self.netns.is_empty() || self.netns.iter().any(matches)
    }

    fn wants_all(&self) -> bool {
        self.netns.is_empty()
    }
}

fn glob(text: &str) -> Result<GlobMatcher, Problem> {
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    let bad = |error: globset::Error| {
        Problem::error(Code::NotFound, text, format!("not a pattern: {}", error.kind()))
    };
    glob.map(|glob| glob.compile_matcher()).map_err(bad)
}

fn netns_pattern(text: &str) -> Result<NetnsPattern, Problem> {
    let is_glob = text.contains(['*', '?', '[', '{']);
    let inode = match std::fs::metadata(Path::new(text)) {
        Ok(meta) => Some(meta.ino()),
        Err(_) if is_glob => None,
        // A checkpoint may still know the path of a namespace that is gone.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Problem::error(Code::NotFound, text, format!("cannot be looked at: {error}")));
        }
    };
    Ok(NetnsPattern { glob: glob(text)?, inode })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(netns: &[&str], pod: &[&str]) -> Selection {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Selection::new(&Selectors { netns: own(netns), pod: own(pod) }).unwrap()
    }

    fn info(namespace: Option<&str>, name: &str) -> PodInfo {
        PodInfo {
            id: crate::model::PodId::from_text("06c9b8d0a800"),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            uid: None,
            sandbox: None,
            attempt: None,
            source: "mount".to_owned(),
        }
    }

    #[test]
    fn pods_are_chosen_by_id_name_or_namespace_and_name() {
        for pattern in ["06c9b8d0a800", "web-*", "shop/web-0", "shop/*"] {
            assert!(selection(&[], &[pattern]).wants_pod(&info(Some("shop"), "web-0")), "{pattern}");
        }
        assert!(!selection(&[], &["db-*"]).wants_pod(&info(Some("shop"), "web-0")));
    }

    #[test]
    fn namespaces_are_chosen_by_any_of_their_paths() {
        let paths = [PathBuf::from("/run/netns/a1"), PathBuf::from("/proc/7/ns/net")];
        assert!(selection(&["/run/netns/a*"], &[]).wants(&paths, 1));
        assert!(selection(&["/proc/7/ns/net"], &[]).wants(&paths, 1));
        assert!(!selection(&["/run/netns/b*"], &[]).wants(&paths, 1));
        assert!(!selection(&["/run/*"], &[]).wants(&paths, 1), "a star does not cross a slash");
        assert!(selection(&[], &[]).wants(&paths, 1));
    }

    #[test]
    fn a_pattern_that_is_none_is_named() {
        let selectors = Selectors { netns: vec![], pod: vec!["[".to_owned()] };
        assert_eq!(Selection::new(&selectors).unwrap_err().object, "[");
    }
}

//! The namespaces and pods that the user selected.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fast_glob::glob_match;

use crate::model::problem::InventoryCause;
use crate::model::{Bytes, PodInfo, Problem};

/// The user's selection; without any selector every pod is selected.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Each with the inode of the namespace that it leads to, where it is a plain path to one.
    netns: Vec<(Glob, Option<u64>)>,
    pods: Vec<Glob>,
}

/// A pattern: `*` and `?`, which is one byte, do not match a slash, `**` does; `[a-z]`, `{a,b}`, and `\` before a literal
/// character. A byte that is not UTF-8 may be itself or, as netfix shows it, `\xfc`.
#[derive(Debug, Clone)]
struct Glob {
    pattern: Bytes,
    shown: String,
    /// Whether it has selected something.
    has_matched: Arc<AtomicBool>,
}

impl Selection {
    /// Reads the selectors: paths or globs of namespaces, each with the inode of the namespace that it leads to, and
    /// names or globs of pods.
    ///
    /// # Errors
    /// The first that is not a pattern.
    pub fn new(netns: &[(Bytes, Option<u64>)], pods: &[Bytes]) -> Result<Self, Problem> {
        let mut selection = Self::default();
        for (text, inode) in netns {
            selection.netns.push((Glob::new(text)?, *inode));
        }
        for text in pods {
            selection.pods.push(Glob::new(text)?);
        }
        Ok(selection)
    }

    /// The selection of a command without selectors.
    pub(crate) fn everything() -> Self {
        Self::default()
    }

    /// The selection of the namespaces with these inodes.
    pub(crate) fn of_inodes(inodes: impl IntoIterator<Item = u64>) -> Self {
        let nowhere = Glob {
            pattern: Bytes::default(),
            shown: String::new(),
            has_matched: Arc::default(),
        };
        let inodes = inodes.into_iter();
        Self {
            netns: inodes.map(|inode| (nowhere.clone(), Some(inode))).collect(),
            pods: Vec::new(),
        }
    }

    /// Whether there is no selector.
    pub(crate) fn is_everything(&self) -> bool {
        self.netns.is_empty() && self.pods.is_empty()
    }

    /// Whether no selector restricts the namespaces, known or not.
    pub(crate) fn wants_every_netns(&self) -> bool {
        self.netns.is_empty()
    }

    /// Whether a namespace with these paths and this inode is selected.
    pub(crate) fn wants_netns(&self, paths: &[PathBuf], inode: u64) -> bool {
        let is_match = |glob: &Glob| {
            let mut paths = paths.iter().map(|path| path.as_os_str().as_bytes());
            paths.any(|path| glob.is_match(path))
        };
        let mut patterns = self.netns.iter();
        self.netns.is_empty()
            || patterns.any(|(glob, known)| *known == Some(inode) || is_match(glob))
    }

    /// Whether a pod is selected by its name or id.
    pub(crate) fn wants_pod(&self, info: &PodInfo) -> bool {
        self.pods.is_empty() | noted(self.pods.iter().filter(|glob| glob.names(info)))
    }

    /// A problem for each name that has selected no pod so far, where another selector has: a pattern may be one for what comes later, and
    /// a path that of a namespace that is gone.
    pub(crate) fn unmatched(&self) -> Vec<Problem> {
        let all = self.pods.iter();
        let (used, unused): (Vec<_>, Vec<_>) =
            all.partition(|glob| glob.has_matched.load(Ordering::Relaxed));
        let unused = unused
            .into_iter()
            .filter(|glob| !used.is_empty() && glob.is_plain());
        let object = |glob: &Glob| format!("--pod {}", glob.shown);
        unused
            .map(|glob| InventoryCause::NoSuchPod.error(object(glob)))
            .collect()
    }

    /// Whether a selector selects this pod and none of the `found` ones.
    pub(crate) fn is_alone(&self, info: &PodInfo, found: &[&PodInfo]) -> bool {
        let is_found = |glob: &Glob| found.iter().any(|found| glob.names(found));
        let mut named = self.pods.iter().filter(|glob| glob.names(info));
        named.any(|glob| !is_found(glob)) || !self.netns.is_empty() && found.is_empty()
    }
}

/// Notes that these have selected something; returns whether there is one.
fn noted<'a>(matching: impl Iterator<Item = &'a Glob>) -> bool {
    let each = matching.map(|glob| glob.has_matched.store(true, Ordering::Relaxed));
    each.count() > 0
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let netns = self
            .netns
            .iter()
            .map(|(glob, _)| format!("--netns {}", glob.shown));
        let pods = self.pods.iter().map(|glob| format!("--pod {}", glob.shown));
        let words: Vec<String> = netns.chain(pods).collect();
        f.write_str(&words.join(" "))
    }
}

impl Glob {
    /// Reads a pattern.
    fn new(text: &Bytes) -> Result<Self, Problem> {
        let shown = text.as_pattern();
        fast_glob::validate(text.as_slice()).map_err(|error| {
            let reason = error.to_string();
            InventoryCause::NotAPattern { reason }.error(shown.as_str())
        })?;
        let pattern = text.unescape_pattern();
        // fast-glob reads a ! in front as "all but"; in netfix it is a character.
        let pattern = match pattern.as_slice() {
            [b'!', ..] => [b"\\", pattern.as_slice()].concat().into(),
            _ => pattern,
        };
        Ok(Self {
            pattern,
            shown,
            has_matched: Arc::default(),
        })
    }

    /// Whether it can match one text alone.
    fn is_plain(&self) -> bool {
        let mut bytes = self.pattern.as_slice().iter();
        !bytes.any(|byte| b"*?[{".contains(byte))
    }

    /// Whether it is the name or id of this pod.
    fn names(&self, info: &PodInfo) -> bool {
        let name = info.name.as_ref().map(Bytes::as_slice);
        let parts = info.namespace.as_ref().zip(name);
        let full = parts.map(|(space, name)| [space.as_bytes(), b"/", name].concat());
        let names = [Some(info.id.as_str().as_bytes()), name, full.as_deref()];
        names.into_iter().flatten().any(|name| self.is_match(name))
    }

    fn is_match(&self, text: &[u8]) -> bool {
        glob_match(self.pattern.as_slice(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(netns: &[&str], pod: &[&str]) -> Selection {
        let netns: Vec<_> = netns
            .iter()
            .map(|text| (Bytes::from(*text), None))
            .collect();
        let pod: Vec<_> = pod.iter().map(|text| Bytes::from(*text)).collect();
        Selection::new(&netns, &pod).unwrap()
    }

    fn info(namespace: Option<&str>, name: &str) -> PodInfo {
        PodInfo {
            id: crate::model::PodId::from_text("06c9b8d0a800"),
            namespace: namespace.map(str::to_owned),
            name: Some(name.into()),
            uid: None,
            sandbox: None,
            attempt: None,
            source: "mount".to_owned(),
        }
    }

    #[test]
    fn pods_are_selected_by_id_name_or_namespace_and_name() {
        for pattern in ["06c9b8d0a800", "web-*", "shop/web-0", "shop/*"] {
            assert!(
                selection(&[], &[pattern]).wants_pod(&info(Some("shop"), "web-0")),
                "{pattern}"
            );
        }
        assert!(!selection(&[], &["db-*"]).wants_pod(&info(Some("shop"), "web-0")));
    }

    #[test]
    fn namespaces_are_selected_by_any_of_their_paths() {
        let paths = [
            PathBuf::from("/run/netns/a1"),
            PathBuf::from("/proc/7/ns/net"),
        ];
        assert!(selection(&["/run/netns/a*"], &[]).wants_netns(&paths, 1));
        assert!(selection(&["/proc/7/ns/net"], &[]).wants_netns(&paths, 1));
        assert!(!selection(&["/run/netns/b*"], &[]).wants_netns(&paths, 1));
        assert!(
            !selection(&["/run/*"], &[]).wants_netns(&paths, 1),
            "a star does not cross a slash"
        );
        assert!(selection(&[], &[]).wants_netns(&paths, 1));
    }

    #[test]
    fn a_name_that_selects_nothing_beside_one_that_does_is_named() {
        let unmatched = |pods: &[&str]| {
            let selection = selection(&["/run/netns/b1"], pods);
            selection.wants_pod(&info(Some("shop"), "web-0"));
            let objects = selection.unmatched().into_iter().map(|one| one.object);
            objects.collect::<Vec<_>>()
        };
        assert_eq!(
            unmatched(&["web-*", "wbe-0", "shop/*", "db-*"]),
            ["--pod wbe-0"]
        );
        let nothing: [&str; 0] = [];
        assert_eq!(unmatched(&["web-0"]), nothing);
        let alone = "where none does, that has a problem of its own";
        assert_eq!(unmatched(&["db-0", "wbe-0"]), nothing, "{alone}");
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        let wants = |pattern: &str, name: &str| {
            selection(&[], &[pattern]).wants_pod(&info(Some("shop"), name))
        };
        for pattern in [
            "web-?",
            "web-[0-9]",
            "{db,web}-0",
            "shop/w*",
            "web-[!1]",
            "**/web-0",
        ] {
            assert!(wants(pattern, "web-0"), "{pattern}");
        }
        for pattern in ["*/*/web-0", "web", "web-[!0]", "shop?web-0", "{db,mail}-0"] {
            assert!(!wants(pattern, "web-0"), "{pattern}");
        }
        assert!(wants("a\\*b", "a*b"));
        assert!(!wants("a\\*b", "axb"));
        assert!(wants("!web*", "!web-0"));
        assert!(!wants("!web*", "db-0"));
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_selected_by_its_bytes_and_as_it_is_shown() {
        let info = |name: &[u8]| PodInfo {
            name: Some(name.to_vec().into()),
            ..info(Some("shop"), "")
        };
        let patterns: [&[u8]; 5] = [
            b"b\xfcro",
            b"b\\xfcro",
            b"shop/b\\xfc*",
            b"b?ro",
            b"b\\xFCro",
        ];
        for pattern in patterns {
            let selection = Selection::new(&[], &[pattern.to_vec().into()]).unwrap();
            assert!(selection.wants_pod(&info(b"b\xfcro")), "{selection}");
            assert!(!selection.wants_pod(&info(b"b\\xfcro")), "{selection}");
        }
        let literal = selection(&[], &["b\\\\xfcro"]);
        assert!(literal.wants_pod(&info(b"b\\xfcro")));
        assert!(!literal.wants_pod(&info(b"b\xfcro")));
    }

    #[test]
    fn an_invalid_pattern_is_named() {
        for pattern in ["[", "web-{0,1", "web\\"] {
            let error = Selection::new(&[], &[pattern.into()]).unwrap_err();
            assert_eq!(error.object, pattern);
        }
    }
}

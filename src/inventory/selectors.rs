//! From the selectors of the command line to the selected namespaces and pods.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::matching::Selection;
use crate::model::problem::InventoryCause;
use crate::model::{Bytes, Problem};

/// Reads the selectors, paths or globs of namespaces and names or globs of pods. The error is the one that is no
/// pattern, or a plain path that cannot be read.
pub(crate) fn selection(netns: &[Bytes], pods: &[Bytes]) -> Result<Selection, Problem> {
    let netns: Vec<_> = netns
        .iter()
        .map(|text| Ok((text.clone(), inode_at(text)?)))
        .collect::<Result<_, Problem>>()?;
    Selection::new(&netns, pods)
}

/// The inode of the namespace that a plain path leads to.
fn inode_at(text: &Bytes) -> Result<Option<u64>, Problem> {
    let is_glob = text.as_slice().iter().any(|byte| b"*?[{".contains(byte));
    match std::fs::metadata::<&Path>(text.as_ref()) {
        Ok(meta) => Ok(Some(meta.ino())),
        Err(_) if is_glob => Ok(None),
        // A checkpoint may still have the path of a namespace that is gone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let error = error.to_string();
            Err(InventoryCause::SelectorUnreadable { error }.error(text.to_string()))
        }
    }
}

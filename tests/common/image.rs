//! The image of the pause container: one static program that sleeps.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::tool;

/// The image's name.
pub const PAUSE: &str = "netfix.test/pause:1";
const BUSYBOX: &str = "/bin/busybox";

/// Packs the image into an archive like that of `docker save`, in a new directory.
pub fn pause(folder: &Path) -> PathBuf {
    let bin = folder.join("layer/bin");
    fs::create_dir_all(&bin).expect("a folder for the image's layer");
    fs::copy(BUSYBOX, bin.join("busybox")).unwrap_or_else(|e| panic!("{BUSYBOX}: {e}"));
    tar(&folder.join("layer"), &folder.join("layer.tar"), &["."]);
    let layer = fs::read(folder.join("layer.tar")).expect("the image's layer");
    let digest = Sha256::digest(&layer)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": [BUSYBOX, "sleep", "86400"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    let manifest = json!([{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]);
    for (name, value) in [("config.json", config), ("manifest.json", manifest)] {
        fs::write(folder.join(name), value.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let archive = folder.join("pause.tar");
    tar(
        folder,
        &archive,
        &["manifest.json", "config.json", "layer.tar"],
    );
    archive
}

fn tar(folder: &Path, archive: &Path, names: &[&str]) {
    tool::run(
        tool::command("tar", ["-cf"])
            .arg(archive)
            .arg("-C")
            .arg(folder)
            .args(names),
    );
}

//! Images as archives like those of `docker save`: the pause container, and netfix's own from its Dockerfile.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::run::BINARY;
use super::tool;

/// The name of the pause image.
pub const PAUSE: &str = "netfix.test/pause:1";
const BUSYBOX: &str = "/bin/busybox";

/// Packs the image of one static program that sleeps, in a new directory.
pub fn pause(folder: &Path) -> PathBuf {
    let layer = folder.join("layer");
    put(BUSYBOX, &layer, BUSYBOX);
    let entry = json!({"Entrypoint": [BUSYBOX, "sleep", "86400"]});
    pack(folder, PAUSE, &entry)
}

/// Packs netfix's image as its Dockerfile describes it, under this name, in a new directory.
///
/// The program of the tests is not static as that of a release is: its libraries are in the image too.
pub fn netfix(folder: &Path, name: &str) -> PathBuf {
    let layer = folder.join("layer");
    let mut config = json!({});
    for line in dockerfile() {
        let (instruction, rest) = line.split_once(' ').expect("an instruction");
        match instruction {
            "FROM" => assert_eq!(rest, "scratch", "the image has no other base"),
            "LABEL" => {}
            "COPY" => {
                let words: Vec<&str> = rest
                    .split(' ')
                    .filter(|word| !word.starts_with("--"))
                    .collect();
                assert_eq!(words[0], "netfix", "{line}");
                put(BINARY, &layer, words[1]);
            }
            "ENTRYPOINT" => {
                config["Entrypoint"] = serde_json::from_str(rest).expect("a list of words");
            }
            _ => panic!("a new instruction of the Dockerfile: {line}"),
        }
    }
    let libraries = tool::run(&mut tool::command("ldd", [BINARY]));
    for word in libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        put(word, &layer, word);
    }
    pack(folder, name, &config)
}

/// The instructions of the Dockerfile, each in one line.
fn dockerfile() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/kubernetes/Dockerfile");
    let text = fs::read_to_string(path).expect("the Dockerfile");
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Copies a program to its path in a layer.
fn put(from: &str, layer: &Path, path: &str) {
    let to = layer.join(path.trim_start_matches('/'));
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder of the layer");
    fs::copy(from, to).unwrap_or_else(|e| panic!("{from}: {e}"));
}

/// Packs the folder `layer` as an image.
fn pack(folder: &Path, name: &str, config: &Value) -> PathBuf {
    tar(&folder.join("layer"), &folder.join("layer.tar"), &["."]);
    let layer = fs::read(folder.join("layer.tar")).expect("the image's layer");
    let digest = Sha256::digest(&layer)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    let manifest = json!([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]);
    for (name, value) in [("config.json", config), ("manifest.json", manifest)] {
        fs::write(folder.join(name), value.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let archive = folder.join("image.tar");
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

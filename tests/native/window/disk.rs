//! A disk without room: known before, nothing is begun; filled in the middle, nothing is stopped by it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::scene::{KUBELET, Scene, codes, of_pods};
use crate::common::{Node, tool};

/// Bytes.
const SIZE: usize = 16 << 20;

/// A small file system for the state folder, which machines that start later see too.
struct Disk(PathBuf);

impl Disk {
    fn under(node: &Node) -> Self {
        let folder = node.state_dir();
        fs::create_dir_all(&folder).expect("the state folder");
        let disk = Self(folder);
        let words = ["-t", "tmpfs", "-o", &format!("size={SIZE},mode=700"), "tmpfs"];
        tool::run(tool::command("mount", words).arg(&disk.0));
        disk
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("a filler");
        let blocks = [4096, 256]
            .iter()
            .all(|block| (0..2 * SIZE / block).any(|_| file.write_all(&vec![0; *block]).is_err()));
        assert!(blocks, "{} is not the small file system", self.0.display());
    }

    /// The same, for a script.
    fn filling(&self) -> String {
        format!(
            "for block in 4096 256; do dd if=/dev/zero bs=$block 2>/dev/null; done >{}; true",
            self.filler().display()
        )
    }

    fn empty(&self) {
        fs::remove_file(self.filler()).expect("room again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = tool::try_run(tool::command("umount", ["-l"]).arg(&self.0));
    }
}

#[test]
fn a_full_disk_is_known_before_and_kubelet_is_not_touched() {
    let node = Node::new();
    let disk = Disk::under(&node);
    let scene = Scene::new(&node);
    disk.fill();
    let kubelet = scene.touchable();
    let ran = scene.path("ran");
    for words in [format!("upgrade --yes --foreground -- touch {}", ran.display()), "pause".to_owned()] {
        scene.netfix(&words).exits(4).says(&["no-space"]);
        assert!(!ran.exists(), "COMMAND was run");
        assert_eq!(scene.touchable(), kubelet);
        scene.assert_runs(KUBELET);
    }
    disk.empty();
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}

#[test]
fn a_disk_that_command_fills_stops_nothing_and_the_record_is_what_was_last_saved() {
    let node = Node::new();
    let disk = Disk::under(&node);
    let scene = Scene::new(&node);
    let command = scene.script("fills", &format!("{}\n{}", disk.filling(), scene.reloading()));
    let run = scene.upgrade("-o json", &command).exits(0);
    let json = run.json();
    assert_eq!(codes(&json, "error"), [""; 0], "{}", run.told());
    assert!(codes(&json, "warning").contains(&"no-space".to_owned()), "{}", run.told());
    assert_eq!(of_pods(&json, "state"), ["restored", "restored"]);
    scene.assert_networks();
    scene.assert_runs(KUBELET);
    assert_eq!(scene.window(), None);
    let record = scene.record();
    assert_eq!(
        record["run"]["argv"][0].as_str().or(record["hold"]["unit"].as_str()),
        Some(&*if record["run"].is_null() { KUBELET.to_owned() } else { command })
    );
    disk.empty();
    // Nothing of it is in the way of the next one.
    scene.netfix("status").exits(0);
    scene.netfix("report").exits(0);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
    assert_eq!(scene.records().len(), 2);
}

#[test]
fn a_disk_that_is_full_when_somebody_resumes_keeps_nobody_from_it() {
    let node = Node::new();
    let disk = Disk::under(&node);
    let scene = Scene::new(&node);
    scene.netfix("pause").exits(0);
    disk.fill();
    let run = scene.netfix("resume -o json").exits(0);
    assert_eq!(codes(&run.json(), "error"), [""; 0], "{}", run.told());
    scene.assert_runs(KUBELET);
    assert_eq!(scene.deadlines(), [""; 0]);
    assert_eq!(scene.window(), None);
    disk.empty();
    scene.netfix("pause").exits(0);
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}

//! Leftovers of a killed test run: everything whose name has the id of a process that ended.

use std::fs;
use std::path::Path;
use std::sync::Once;

use super::tool;

/// Every name starts with this and the id of the process that made it.
pub const PREFIX: &str = "nfx";
/// Temporary directories have this before the name.
pub const FOLDER_PREFIX: &str = "netfix-test-";
const NAMESPACES: &str = "/run/netns";

/// Removes the leftovers, once for each process.
pub fn sweep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for name in orphans(Path::new(NAMESPACES), "") {
            let _ = tool::try_run(&mut tool::command("ip", ["netns", "del", &name]));
        }
        let temp = std::env::temp_dir();
        for name in orphans(&temp, FOLDER_PREFIX) {
            remove_cgroup(
                name[FOLDER_PREFIX.len()..]
                    .rsplit_once('-')
                    .map_or("", |(owner, _)| owner),
            );
            // A small disk that a test mounted there.
            let _ =
                tool::try_run(tool::command("umount", ["-l"]).arg(temp.join(&name).join("state")));
            let _ = fs::remove_dir_all(temp.join(name));
        }
    });
}

/// The names in a directory whose process ended.
fn orphans(folder: &Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| {
            name.strip_prefix(prefix)
                .and_then(maker)
                .is_some_and(|pid| !is_alive(pid))
        })
        .collect()
}

/// The process that made `nfxPID-…`.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Removes a cgroup of the unified hierarchy, mounted or not, and all cgroups below it.
pub fn remove_cgroup(name: &str) {
    if maker(name).is_none() {
        return;
    }
    let script = "mount -t cgroup2 none /sys/fs/cgroup && cd /sys/fs/cgroup && [ ! -d \"$1\" ] || \
        find \"$1\" -depth -type d -exec rmdir {} \\;";
    let _ = tool::try_run(&mut tool::command(
        "unshare",
        ["--mount", "sh", "-c", script, "sh", name],
    ));
}

//! Network namespaces and processes in `/proc`.

pub(crate) mod machine;
pub(crate) mod mounts;
mod namespaces;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

pub(crate) use self::mounts::{is_mounted, mounted};
pub(crate) use self::namespaces::{machine_inode, netns_inode, netns_path};
pub(super) use self::namespaces::{namespace, of_machine};
use crate::clock;
use crate::model::Bytes;
use crate::model::pod::identity::Holder;

/// Whether an error only means that a process or a file is gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// How often, and after which pause, netfix retries a process whose namespace the kernel does not reveal.
const DENIED_ATTEMPTS: u32 = 5;
const DENIED_PAUSE: Duration = Duration::from_millis(20);

/// The inode of a namespace, and a process in it.
type InNetns = (u64, Holder);

/// The namespace of each process; and the processes whose namespace the kernel does not reveal.
///
/// PID 1 is left out: its namespace is never a pod's.
pub(crate) fn of_processes() -> io::Result<(Vec<InNetns>, Vec<u32>)> {
    let mut holders = Vec::new();
    let mut left = processes()?;
    left.retain(|pid| *pid != 1);
    for attempt in 0..=DENIED_ATTEMPTS {
        // A process with more rights than netfix has is often one that starts and drops them at once.
        if attempt > 0 {
            thread::sleep(DENIED_PAUSE);
        }
        let mut denied = Vec::new();
        for pid in left {
            match netns_inode(&pid.to_string()) {
                Ok(inode) => holders.extend(holder(pid)?.map(|holder| (inode, holder))),
                Err(error) if is_gone(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied.push(pid),
                Err(error) => return Err(error),
            }
        }
        left = denied;
        if left.is_empty() {
            break;
        }
    }
    Ok((holders, left))
}

/// The ids of all processes.
pub(super) fn processes() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(pids)
}

/// Whether a process still is the one that it was.
pub fn is_alive(holder: &Holder) -> bool {
    process(holder.pid).as_ref() == Some(holder)
}

/// Whether a process still is the one that it was, and has not ended: the kernel keeps one until its parent has seen its end.
pub(crate) fn is_running(holder: &Holder) -> bool {
    is_alive(holder) && stat(holder.pid).is_ok_and(|stat| !has_ended(&stat))
}

fn has_ended(stat: &str) -> bool {
    stat_field(stat, 3).is_none_or(|state: char| matches!(state, 'Z' | 'X'))
}

/// Whether a process of this process group has not ended.
pub(crate) fn runs_in_group(group: u32) -> bool {
    let is_member = |stat: &String| stat_field(stat, 5) == Some(group) && !has_ended(stat);
    let all = processes().unwrap_or_default();
    all.into_iter()
        .filter_map(|pid| stat(pid).ok())
        .any(|stat| is_member(&stat))
}

/// The processes that this one has started, those that these have started, and so on.
pub(crate) fn descendants(ancestor: u32) -> io::Result<Vec<Holder>> {
    let all = processes()?;
    let mut left: Vec<(u32, u32)> = all
        .into_iter()
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![ancestor];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = left.extract_if(.., |(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| pid));
        at += 1;
    }
    Ok(found.into_iter().skip(1).filter_map(process).collect())
}

/// Whether a process is still the one that was seen, and in the namespace with this inode.
pub(crate) fn is_in(holder: Holder, inode: u64) -> bool {
    // In this order: a process that still has its start time at the end is the one whose namespace was read.
    netns_inode(&holder.pid.to_string()).is_ok_and(|of_process| of_process == inode)
        && is_alive(&holder)
}

/// Whether a process is alive, and in the pid namespace of this `/proc`: the kernel lists its id in each namespace that it
/// is in.
pub(super) fn is_of_this_machine(pid: u32) -> bool {
    let status = text(format!("/proc/{pid}/status")).unwrap_or_default();
    status_is_of_this_machine(&status)
}

fn status_is_of_this_machine(status: &str) -> bool {
    let value = |key| status.lines().find_map(|line: &str| line.strip_prefix(key));
    let is_alive = value("State:").is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']));
    let ids = value("NSpid:").map_or(1, |ids| ids.split_whitespace().count());
    is_alive && ids == 1
}

/// Whether a process is root's, and not a set-user-ID program, which any user may start under any name.
pub(super) fn is_started_by_root(pid: u32) -> bool {
    const SET_USER_ID: u32 = 0o4000;
    let process = fs::metadata(format!("/proc/{pid}"));
    let program = fs::metadata(format!("/proc/{pid}/exe"));
    process.is_ok_and(|process| process.uid() == 0)
        && program.is_ok_and(|program| program.mode() & SET_USER_ID == 0)
}

/// The process that has this id at the moment; `None` when there is none.
pub fn process(pid: u32) -> Option<Holder> {
    holder(pid).ok().flatten()
}

/// The process that has this id at the moment; fails where it cannot be read.
fn holder(pid: u32) -> io::Result<Option<Holder>> {
    match stat(pid) {
        Ok(stat) => Ok(stat_field(&stat, 22).map(|shown| Holder {
            pid,
            start_time: clock::start_ticks(shown),
        })),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// This process.
pub fn own() -> Holder {
    let pid = std::process::id();
    process(pid).unwrap_or(Holder { pid, start_time: 0 })
}

/// `/proc/PID/stat` (proc(5)), which has the start time in field 22, in clock ticks since boot.
fn stat(pid: u32) -> io::Result<String> {
    text(format!("/proc/{pid}/stat"))
}

/// A file of `/proc` as text. Names in it are bytes to the kernel, and it may cut one in the middle of a character.
pub(super) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// A number in `/proc/PID/stat`, where the first field is 1 and only those after the command can be had.
fn stat_field<T: FromStr>(stat: &str, field: usize) -> Option<T> {
    // The second field is the command in parentheses and may itself hold blanks and parentheses.
    const FIELDS_BEFORE: usize = 3;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace()
        .nth(field.checked_sub(FIELDS_BEFORE)?)?
        .parse()
        .ok()
}

/// The numbers of the files that a process has open, and what each is; none of one that has ended.
pub(super) fn open_files(pid: u32) -> impl Iterator<Item = (OsString, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
    let found = entries.flatten().flatten();
    found.filter_map(|it| Some((it.file_name(), fs::read_link(it.path()).ok()?)))
}

/// The name of a process, which it may choose.
pub(crate) fn comm(pid: u32) -> io::Result<Bytes> {
    let comm = fs::read(format!("/proc/{pid}/comm"))?;
    let name = comm.strip_suffix(b"\n").unwrap_or(&comm);
    Ok(Bytes::from(name.to_vec()))
}

/// Whether a process has this name.
fn has_name(pid: u32, name: &str) -> bool {
    comm(pid).is_ok_and(|comm| comm.as_slice() == name.as_bytes())
}

/// Whether a process only holds a pod's namespaces.
pub(crate) fn is_pause(pid: u32) -> bool {
    has_name(pid, "pause")
}

/// Whether a process of this name runs in the pid namespace of this process: containers may choose their names.
pub(crate) fn runs(name: &str) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let own = namespace("self");
    let is_one =
        |pid: &u32| has_name(*pid, name) && own.is_some() && namespace(&pid.to_string()) == own;
    processes().is_ok_and(|all| all.iter().any(is_one))
}

/// The parent of a process.
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat_field(&stat(pid).ok()?, 4)
}

/// The name that podman or CRI-O gave a container, from the command line of its monitor, conmon.
pub(super) fn conmon_name(monitor: u32, container: &str) -> Option<String> {
    name_in_conmon(
        &fs::read(format!("/proc/{monitor}/cmdline")).ok()?,
        container,
    )
}

fn name_in_conmon(command_line: &[u8], container: &str) -> Option<String> {
    let words: Vec<_> = command_line
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    let value = |option: &str| words.iter().skip_while(|word| *word != option).nth(1);
    let is_conmon = Path::new(words.first()?.as_ref())
        .file_name()
        .is_some_and(|name| name == "conmon");
    let is_of_container = value("-c").is_some_and(|id| id == container);
    value("-n")
        .filter(|_| is_conmon && is_of_container)
        .map(|name| name.clone().into_owned())
}

/// The process in a path such as `/proc/4711/ns/net`.
pub(crate) fn pid_in(path: &Path) -> Option<u32> {
    path.to_str()?
        .strip_prefix("/proc/")?
        .strip_suffix("/ns/net")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_hostile_command_name() {
        let stat = "7 (a) R 1 (b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        assert_eq!(stat_field(stat, 22), Some(98765_u64));
        assert_eq!(stat_field(stat, 4), Some(1_u32));
        assert_eq!(stat_field::<u32>("", 4), None);
    }

    #[test]
    fn a_process_in_another_pid_namespace_and_a_dead_one_are_not_of_this_machine() {
        let status =
            |state: &str, ids: &str| format!("Name:\tk3s\nState:\t{state}\nNSpid:\t{ids}\n");
        assert!(status_is_of_this_machine(&status("S (sleeping)", "4711")));
        assert!(status_is_of_this_machine("State:\tR (running)\n"));
        for (state, ids) in [("S (sleeping)", "4711\t1"), ("Z (zombie)", "4711")] {
            assert!(!status_is_of_this_machine(&status(state, ids)));
        }
        assert!(!status_is_of_this_machine(""));
    }

    #[test]
    fn a_container_is_named_by_its_own_monitor_alone() {
        let line = |program: &str| {
            format!("{program}\0--api-version\01\0-c\0abc\0-u\0abc\0-n\0my web\0").into_bytes()
        };
        assert_eq!(
            name_in_conmon(&line("/usr/bin/conmon"), "abc"),
            Some("my web".to_owned())
        );
        assert_eq!(name_in_conmon(&line("/usr/bin/conmon"), "abd"), None);
        assert_eq!(name_in_conmon(&line("/usr/bin/sleep"), "abc"), None);
        assert_eq!(name_in_conmon(b"conmon\0-c\0abc\0-n", "abc"), None);
        assert_eq!(name_in_conmon(b"", "abc"), None);
    }

    #[test]
    fn a_path_through_a_process_is_known_as_one() {
        assert_eq!(pid_in(Path::new("/proc/4711/ns/net")), Some(4711));
        for path in ["/proc/self/ns/net", "/run/netns/1", "/proc/1/ns/net/x"] {
            assert_eq!(pid_in(Path::new(path)), None, "{path}");
        }
    }
}

//! Which programs have sockets and devices, by the descriptors of the processes: first of those in the namespace, then of all, for
//! an agent of the host may have opened a socket inside a pod.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::mem;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

use crate::inventory::procfs;
use crate::inventory::sockets::{Suspects, program};
use crate::kernel::Errno;
use crate::kernel::foreign::{self, ForeignProcess, ForeignSocket, TapLink};
use crate::model::net::link::socket::{Program, SocketKind};
use crate::model::{Bytes, IpFamily};

/// So many descriptors of the processes of one namespace are read: a tenant may have any number.
const MOST_FILES: usize = 16 << 10;
/// So many sockets of them are asked.
const MOST_ASKED: usize = 2048;
/// For so many groups of a namespace.
const MOST_GROUPS: usize = 128;

/// The number of a namespace, and of a socket among those at risk and those that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SocketPlace {
    pub namespace: usize,
    pub socket: usize,
}

/// The programs that have each of these; an empty list where one has it that cannot be told. What is not in the answer no program
/// has.
pub(super) fn find(all: &[Suspects]) -> HashMap<SocketPlace, Vec<Program>> {
    let mut search = HolderSearch::new(all);
    if search.is_empty() {
        return HashMap::new();
    }
    let Ok((processes, _)) = procfs::of_processes() else {
        return search.unlisted();
    };
    let own = std::process::id();
    let processes = processes
        .into_iter()
        .filter(|(_, holder)| holder.pid != own);
    let (inside, others): (Vec<_>, Vec<_>) =
        processes.partition(|(inode, _)| search.by_inode.contains_key(inode));
    for (inode, holder) in inside {
        search.visit(inode, holder.pid);
    }
    if search.has_unknown() {
        for (inode, holder) in others {
            search.visit(inode, holder.pid);
        }
    }
    search.answer()
}

/// The sockets whose programs are searched for, and the programs that were found.
struct HolderSearch {
    packets: HashMap<u64, Vec<SocketPlace>>,
    /// By the namespace of the process and the name of the link.
    taps: HashMap<(u64, TapLink), Vec<SocketPlace>>,
    /// The same by the namespace of the process and the path of the kernel's node.
    tap_paths: HashMap<(u64, Vec<u8>), Vec<SocketPlace>>,
    /// The major numbers of the character devices of macvtaps and ipvtaps.
    majors: BTreeSet<u32>,
    namespaces: Vec<Asked>,
    by_inode: HashMap<u64, usize>,
    by_cookie: HashMap<u64, usize>,
    found: HashMap<SocketPlace, BTreeSet<Program>>,
    /// How many descriptors of each namespace were read.
    files: HashMap<u64, usize>,
}

/// What only the sockets themselves tell of a namespace.
#[derive(Default)]
struct Asked {
    groups: Vec<(SocketPlace, u32, IpAddr)>,
    routing: Vec<(SocketPlace, IpFamily)>,
    /// What no socket tells.
    untold: Vec<SocketPlace>,
    /// How many sockets were asked.
    count: usize,
    /// Whether the kernel did not let a socket be asked, or there were too many.
    is_refused: bool,
    /// Whether a process was seen in it.
    has_process: bool,
}

impl HolderSearch {
    fn new(all: &[Suspects]) -> Self {
        let (mut packets, mut taps) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        let mut tap_paths = HashMap::<_, Vec<_>>::new();
        let mut namespaces = Vec::new();
        for (namespace, suspects) in all.iter().enumerate() {
            let mut own = Asked::default();
            for (socket, one) in suspects.all().enumerate() {
                let place = SocketPlace { namespace, socket };
                match &one.kind {
                    SocketKind::Packet { inode } => packets.entry(*inode).or_default().push(place),
                    SocketKind::Tap { index, is_gone } => {
                        let end = if *is_gone { " (deleted)" } else { "" };
                        let path = format!("/dev/tap{index}{end}").into_bytes();
                        let paths = (suspects.inode, path);
                        tap_paths.entry(paths).or_default().push(place);
                        let named = one.dev.as_ref().filter(|_| !is_gone);
                        let link = named.map_or(TapLink::Gone, |dev| {
                            TapLink::Named(Bytes::from(dev.as_bytes().to_vec()))
                        });
                        taps.entry((suspects.inode, link)).or_default().push(place);
                    }
                    SocketKind::Group { index, group } if own.groups.len() < MOST_GROUPS => {
                        own.groups.push((place, *index, *group));
                    }
                    SocketKind::Group { .. } => {}
                    SocketKind::Routing { family } => own.routing.push((place, *family)),
                    SocketKind::Anycast { .. } => own.untold.push(place),
                }
            }
            namespaces.push(own);
        }
        // A namespace without suspects need not be visited.
        let wanted = || {
            all.iter()
                .enumerate()
                .filter(|(_, one)| one.all().next().is_some())
        };
        Self {
            packets,
            majors: if taps.is_empty() {
                BTreeSet::new()
            } else {
                foreign::majors(&["macvtap", "ipvtap"])
            },
            taps,
            tap_paths,
            namespaces,
            by_inode: wanted().map(|(at, one)| (one.inode, at)).collect(),
            by_cookie: wanted()
                .filter_map(|(at, one)| Some((one.cookie?, at)))
                .collect(),
            found: HashMap::new(),
            files: HashMap::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.by_inode.is_empty()
    }

    /// Whether something was found in no process so far that another one may have.
    fn has_unknown(&self) -> bool {
        let groups = self.namespaces.iter().flat_map(|one| &one.groups);
        let groups = groups.map(|(place, ..)| place);
        let mut all = self.packets.values().flatten().chain(groups);
        all.any(|place| !self.found.contains_key(place))
    }

    /// Reads the descriptors of a process, which is in the namespace with this inode. One that ends meanwhile has none.
    fn visit(&mut self, inode: u64, pid: u32) {
        let at = self.by_inode.get(&inode).copied();
        if let Some(at) = at {
            self.namespaces[at].has_process = true;
        }
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return;
        };
        let mut process = None;
        for entry in entries.flatten() {
            let count = self.files.entry(inode).or_default();
            *count += 1;
            if *count > MOST_FILES {
                if let Some(at) = at {
                    self.namespaces[at].is_refused = true;
                }
                return;
            }
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            let target = target.as_os_str();
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(number) = number else { continue };
            let Some(socket) = foreign::socket_inode(target) else {
                self.tap(inode, pid, (target, number), &mut process);
                continue;
            };
            if let Some(places) = self.packets.get(&socket).cloned() {
                self.note(&places, pid);
                continue;
            }
            self.ask(at, pid, number, &mut process);
        }
    }

    /// The device of a tap, by its link; where the process cannot be asked, by the path of the kernel's node. A program may have
    /// opened another node: mknod(1) makes one, and a bind mount has its own path.
    fn tap(
        &mut self,
        inode: u64,
        pid: u32,
        (target, number): (&OsStr, RawFd),
        process: &mut Option<Result<ForeignProcess, Errno>>,
    ) {
        let has_path = target.as_bytes().starts_with(b"/");
        if self.taps.is_empty() || !has_path {
            return;
        }
        let major = foreign::major(pid, number);
        if !major.is_some_and(|major| self.majors.contains(&major)) {
            return;
        }
        let process = process.get_or_insert_with(|| ForeignProcess::open(pid));
        let link = process.as_ref().map(|process| process.tap(number));
        let by_path = self.tap_paths.get(&(inode, target.as_bytes().to_vec()));
        let places = match link {
            Ok(Ok(TapLink::Gone)) => by_path
                .filter(|_| target.as_bytes().ends_with(b" (deleted)"))
                .or_else(|| self.taps.get(&(inode, TapLink::Gone))),
            Ok(Ok(link)) => self.taps.get(&(inode, link)),
            _ => by_path,
        };
        if let Some(places) = places.cloned() {
            self.note(&places, pid);
        }
    }

    /// Asks a socket; `at` is the namespace of the process, in which the socket is unless its cookie is another one's.
    fn ask(
        &mut self,
        at: Option<usize>,
        pid: u32,
        number: RawFd,
        process: &mut Option<Result<ForeignProcess, Errno>>,
    ) {
        let is_wanted = |one: &Asked| !one.groups.is_empty() || !one.routing.is_empty();
        let mut candidates = self.namespaces.iter();
        let is_useful = match at {
            Some(at) => is_wanted(&self.namespaces[at]),
            None => !self.by_cookie.is_empty() && candidates.any(is_wanted),
        };
        if !is_useful {
            return;
        }
        let process = process.get_or_insert_with(|| ForeignProcess::open(pid));
        let socket = match process {
            Ok(process) => process.socket(number),
            Err(error) => Err(*error),
        };
        match socket {
            Ok(socket) if socket.may_join() => self.question(at, pid, &socket),
            // It ended, or closed it.
            Ok(_) | Err(Errno::ESRCH | Errno::EBADF) => {}
            Err(_) => {
                if let Some(at) = at {
                    self.namespaces[at].is_refused = true;
                }
            }
        }
    }

    fn question(&mut self, at: Option<usize>, pid: u32, socket: &ForeignSocket) {
        let at = match socket.netns_cookie() {
            Some(cookie) if !self.by_cookie.is_empty() => self.by_cookie.get(&cookie).copied(),
            _ => at,
        };
        let Some(namespace) = at.and_then(|at| self.namespaces.get_mut(at)) else {
            return;
        };
        namespace.count += 1;
        if namespace.count > MOST_ASKED {
            namespace.is_refused = true;
            return;
        }
        let groups = namespace.groups.iter();
        let groups = groups.filter(|(_, index, group)| socket.has_joined(*index, *group));
        let routing = namespace.routing.iter();
        let routing = routing.filter(|(_, family)| socket.may_route(*family));
        let places = groups.map(|(place, ..)| *place);
        let places: Vec<_> = places.chain(routing.map(|(place, _)| *place)).collect();
        self.note(&places, pid);
    }

    fn note(&mut self, places: &[SocketPlace], pid: u32) {
        if places.is_empty() {
            return;
        }
        let Some(program) = program(pid) else { return };
        for place in places {
            let programs = self.found.entry(*place).or_default();
            programs.insert(program.clone());
        }
    }

    /// The answer where the processes cannot be listed.
    fn unlisted(mut self) -> HashMap<SocketPlace, Vec<Program>> {
        for namespace in &mut self.namespaces {
            (namespace.is_refused, namespace.has_process) = (true, true);
        }
        let packets = mem::take(&mut self.packets).into_values().flatten();
        let packets: Vec<_> = packets.map(|place| (place, Vec::new())).collect();
        let mut answer = self.answer();
        answer.extend(packets);
        answer
    }

    fn answer(self) -> HashMap<SocketPlace, Vec<Program>> {
        let mut answer: HashMap<SocketPlace, Vec<Program>> = HashMap::new();
        for namespace in &self.namespaces {
            let groups = namespace.groups.iter().map(|(place, ..)| *place);
            let groups = groups.filter(|_| namespace.is_refused);
            let untold = namespace.untold.iter().copied();
            let untold = untold.filter(|_| namespace.has_process);
            answer.extend(groups.chain(untold).map(|place| (place, Vec::new())));
        }
        let found = self.found.into_iter();
        answer.extend(found.map(|(place, programs)| (place, programs.into_iter().collect())));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::socket::LinkSocket;

    fn suspects() -> Vec<Suspects> {
        let socket = |kind| LinkSocket {
            dev: Some("eth0".parse().unwrap()),
            kind,
        };
        let group = "239.7.7.7".parse().unwrap();
        vec![Suspects {
            pod: None,
            inode: 1,
            cookie: None,
            at_risk: vec![socket(SocketKind::Packet { inode: 2 })],
            gone: vec![socket(SocketKind::Group { index: 3, group })],
        }]
    }

    #[test]
    fn what_the_kernel_does_not_let_be_asked_has_a_program_without_a_name() {
        let all = suspects();
        let group = SocketPlace {
            namespace: 0,
            socket: 1,
        };
        assert_eq!(HolderSearch::new(&all).answer(), HashMap::new());
        let mut search = HolderSearch::new(&all);
        search.namespaces[0].is_refused = true;
        assert_eq!(search.answer(), HashMap::from([(group, Vec::new())]));
        assert_eq!(HolderSearch::new(&all).unlisted().len(), 2);
    }
}

//! What the kernel tells about loaded programs: those at tcx, which no dump lists, and the maps that a program uses.

use nix::libc;
use nix::unistd::close;

/// `BPF_PROG_GET_FD_BY_ID`, `BPF_OBJ_GET_INFO_BY_FD` and `BPF_PROG_QUERY` (`linux/bpf.h`).
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;
/// So many maps of a program are read.
const MOST_MAPS: u32 = 64;

/// The part of `union bpf_attr` for a query, as far as kernels with tcx read and write it.
#[repr(C, align(8))]
#[derive(Default)]
struct ProgramQuery {
    ifindex: u32,
    hook: u32,
    flags: u32,
    attach_flags: u32,
    /// Where to put the numbers of the programs.
    ids: u64,
    count: u32,
    padding: u32,
    attach_flags_of_each: u64,
    links: u64,
    flags_of_each_link: u64,
    revision: u64,
}

/// The part of `union bpf_attr` for a descriptor.
#[repr(C)]
#[derive(Default)]
struct ProgramById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// The part of `union bpf_attr` for what an object is.
#[repr(C, align(8))]
#[derive(Default)]
struct ObjectInfo {
    fd: u32,
    length: u32,
    /// Where to put it.
    info: u64,
}

/// `struct bpf_prog_info` up to the maps.
#[repr(C, align(8))]
#[derive(Default)]
struct ProgramInfo {
    before: [u64; 6],
    created_by: u32,
    maps_count: u32,
    /// Where to put their numbers.
    maps: u64,
}

/// The numbers of the programs that are attached to a link there; none on a kernel without tcx or without `bpf`.
pub(super) fn attached(ifindex: u32, hook: u32) -> Vec<u32> {
    let mut query = ProgramQuery {
        ifindex,
        hook,
        ..ProgramQuery::default()
    };
    if call(PROG_QUERY, &mut query).is_none() || query.count == 0 {
        return Vec::new();
    }
    let mut numbers = vec![0; query.count as usize];
    query.ids = numbers.as_mut_ptr() as u64;
    // One that came meanwhile has no place; without an answer their numbers are 0.
    let _ = call(PROG_QUERY, &mut query);
    numbers
}

/// The numbers of the maps that this program uses.
pub(crate) fn maps(program: u32) -> Vec<u32> {
    let mut by_id = ProgramById {
        id: program,
        ..ProgramById::default()
    };
    let Some(fd) = call(PROG_GET_FD_BY_ID, &mut by_id) else {
        return Vec::new();
    };
    let mut numbers = vec![0; MOST_MAPS as usize];
    let mut info = ProgramInfo {
        maps_count: MOST_MAPS,
        maps: numbers.as_mut_ptr() as u64,
        ..ProgramInfo::default()
    };
    let mut about = ObjectInfo {
        fd: fd.cast_unsigned(),
        length: u32::try_from(size_of::<ProgramInfo>()).unwrap_or_default(),
        info: &raw mut info as u64,
    };
    let answer = call(OBJ_GET_INFO_BY_FD, &mut about);
    let _ = close(fd);
    numbers.truncate(answer.map_or(0, |_| info.maps_count as usize));
    numbers
}

/// The answer to a command of bpf(2), whose part of `union bpf_attr` is `T`.
#[allow(unsafe_code)]
fn call<T>(command: libc::c_int, attributes: &mut T) -> Option<libc::c_int> {
    // SAFETY: `attributes` is laid out as the command expects it, lives through the call, and its size goes with it; so do the
    // places that it names.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    libc::c_int::try_from(result)
        .ok()
        .filter(|result| *result >= 0)
}

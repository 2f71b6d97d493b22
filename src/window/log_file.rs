//! A file of bounded size to which others append: its head and tail are kept, what is between them becomes a hole
//! (fallocate(2)), which costs no memory. Offsets stay what they were, so COMMAND can write and others follow meanwhile.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::{Whence, lseek64};

/// The size of a log unless `--log-limit` sets another one, in bytes.
pub(crate) const DEFAULT_LIMIT: u64 = 10 << 20;
/// Holes begin and end at a page; elsewhere there would be zeros.
const PAGE: u64 = 4096;
/// So much more is collected before a hole is made, in bytes.
const SLACK: u64 = 1 << 20;
/// How much is copied at once, in bytes.
const CHUNK: usize = 64 << 10;

/// Makes a hole of what is too much. A failure costs memory, no more.
pub(crate) fn trim(file: &File, limit: u64) {
    let Ok(meta) = file.metadata() else { return };
    if meta.blocks() * 512 > limit + SLACK {
        let half = limit / 2;
        let end = meta.len().saturating_sub(half) / PAGE * PAGE;
        make_hole(file, half.next_multiple_of(PAGE), end);
    }
}

/// Gives back what a file has before this offset.
pub(crate) fn give_back(file: &File, to: u64) {
    make_hole(file, 0, to / PAGE * PAGE);
}

fn make_hole(file: &File, from: u64, to: u64) {
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let length = i64::try_from(to.saturating_sub(from)).unwrap_or_default();
    if let (Ok(from), 1..) = (i64::try_from(from), length) {
        let _ = fallocate(file, hole, from, length);
    }
}

/// What is kept of a file.
#[derive(Debug, Default)]
pub(crate) struct KeptLog {
    pub head: Vec<u8>,
    /// The bytes between both.
    pub left_out: u64,
    pub tail: Vec<u8>,
}

/// Reads what is kept.
pub(crate) fn read(file: &File, limit: u64) -> io::Result<KeptLog> {
    let size = file.metadata()?.len();
    let half = limit / 2;
    if size <= limit {
        let head = part(file, 0, size)?;
        return Ok(KeptLog {
            head,
            ..KeptLog::default()
        });
    }
    Ok(KeptLog {
        head: part(file, 0, half)?,
        left_out: size - 2 * half,
        tail: part(file, size - half, half)?,
    })
}

fn part(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Copies what is there from the present offset on; `left_out` writes the line about each hole of so many bytes.
pub(crate) fn copy(
    from: &mut File,
    to: &mut dyn Write,
    left_out: &mut dyn FnMut(u64, &mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut copied = 0;
    loop {
        let skipped = skip_hole(from)?;
        if skipped > 0 {
            left_out(skipped, to)?;
        }
        // A read would continue into a hole, with zeros.
        let data = data_left(from)?.min(CHUNK as u64);
        let read = from.read(&mut chunk[..usize::try_from(data).unwrap_or(CHUNK)])?;
        to.write_all(&chunk[..read])?;
        copied += read as u64 + skipped;
        if read == 0 {
            to.flush()?;
            return Ok(copied);
        }
    }
}

/// Moves the offset to the end of the hole that it is in; returns how far.
fn skip_hole(file: &mut File) -> io::Result<u64> {
    let at = file.stream_position()?;
    let data = find(file, at, Whence::SeekData)?.unwrap_or(at);
    file.seek(SeekFrom::Start(data))?;
    Ok(data - at)
}

/// The bytes from the present offset to the next hole or the end.
fn data_left(file: &mut File) -> io::Result<u64> {
    let at = file.stream_position()?;
    let hole = find(file, at, Whence::SeekHole)?;
    file.seek(SeekFrom::Start(at))?;
    Ok(hole.map_or(u64::MAX, |hole| hole - at))
}

/// Where data or a hole begins, from an offset on; `None` at the end, or where the file system does not report it. Moves
/// the offset.
fn find(file: &File, from: u64, what: Whence) -> io::Result<Option<u64>> {
    match lseek64(file, i64::try_from(from).unwrap_or(i64::MAX), what) {
        Ok(found) => Ok(u64::try_from(found).ok()),
        Err(Errno::ENXIO | Errno::EINVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::window::log_file::*;

    const LIMIT: u64 = 64 << 10;

    fn filled(bytes: u64) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let line = |at: u64| format!("{at:015}\n");
        let lines: Vec<String> = (0..bytes / 16).map(line).collect();
        file.write_all(lines.concat().as_bytes()).unwrap();
        file
    }

    #[test]
    fn head_and_tail_stay_and_the_rest_costs_no_memory() {
        let size = 4 << 20;
        let mut file = filled(size);
        trim(&file, LIMIT);
        assert!(file.metadata().unwrap().blocks() * 512 <= LIMIT + 2 * PAGE);
        let kept = read(&file, LIMIT).unwrap();
        assert_eq!(kept.left_out, size - LIMIT);
        assert!(kept.head.starts_with(b"000000000000000\n"));
        assert!(kept.tail.ends_with(b"000000000262143\n"));
        assert!(!kept.head.contains(&0) && !kept.tail.contains(&0));
        file.rewind().unwrap();
        let (mut copied, mut holes) = (Vec::new(), 0);
        let all = copy(&mut file, &mut copied, &mut |hole, _| {
            holes += hole;
            Ok(())
        });
        assert_eq!((all.unwrap(), copied.len() as u64 + holes), (size, size));
        assert!(!copied.contains(&0));
    }

    #[test]
    fn a_small_file_is_whole() {
        let file = filled(LIMIT);
        trim(&file, LIMIT);
        let kept = read(&file, LIMIT).unwrap();
        assert_eq!((kept.head.len() as u64, kept.left_out), (LIMIT, 0));
    }
}

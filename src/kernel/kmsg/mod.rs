//! The lines that the kernel itself writes in its log (`/dev/kmsg`, `Documentation/ABI/testing/dev-kmsg` of Linux). Programs can write
//! there too, with another facility.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use nix::sys::stat::{major, minor};

const PATH: &str = "/dev/kmsg";
/// The number of the device, which a container may have replaced by a link to a terminal.
const DEVICE: (u64, u64) = (1, 11);
/// A record is no longer than this, in bytes (`CONSOLE_EXT_LOG_MAX`, `PRINTKRB_RECORD_MAX`).
const RECORD: usize = 8192;
/// So many records are read at once: a kernel that logs without end must not keep a window from ending.
const MOST: usize = 20_000;

/// A reader of the log.
#[derive(Debug)]
pub(crate) struct KernelLogReader {
    file: File,
    /// The begin of a line whose end was not read yet. The kernel sends whole records, a file of a test may grow.
    rest: Vec<u8>,
    /// The number of the last record.
    last: Option<u64>,
}

impl KernelLogReader {
    /// Opens the log at its end.
    ///
    /// # Errors
    /// Those of open(2): `EPERM` without `CAP_SYSLOG`, `ENOENT` in a container.
    pub(crate) fn at_end() -> io::Result<Self> {
        let mut reader = Self::open()?;
        reader.file.seek(SeekFrom::End(0))?;
        Ok(reader)
    }

    /// Opens the log behind the record of this number.
    ///
    /// # Errors
    /// Those of open(2).
    pub(crate) fn behind(record: u64) -> io::Result<Self> {
        let mut reader = Self::open()?;
        reader.file.seek(SeekFrom::Start(0))?;
        reader.last = Some(record);
        Ok(reader)
    }

    fn open() -> io::Result<Self> {
        Ok(Self::of(file()?))
    }

    pub(crate) fn of(file: File) -> Self {
        Self {
            file,
            rest: Vec::new(),
            last: None,
        }
    }

    /// Passes over all that was logged so far; returns the number of the last record.
    pub(crate) fn last(&mut self) -> Option<u64> {
        self.read(|_| ());
        self.last
    }

    /// Reads what the kernel has logged since the last time.
    pub(crate) fn read(&mut self, mut take: impl FnMut(&str)) {
        let mut buffer = [0; RECORD];
        for _ in 0..MOST {
            match self.file.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => self.rest.extend_from_slice(&buffer[..length]),
                // Records were overwritten before they were read, or a signal came.
                Err(error) if is_passing(&error) => continue,
                Err(_) => return,
            }
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.take(&line[..end], &mut take);
            }
            // A line without an end.
            if self.rest.len() > RECORD {
                self.rest.clear();
            }
        }
    }

    fn take(&mut self, line: &[u8], take: &mut impl FnMut(&str)) {
        let Some(record) = LogRecord::parse(line) else {
            return;
        };
        let is_known = self.last.is_some_and(|last| record.number <= last);
        self.last = self.last.max(Some(record.number));
        if !is_known && record.facility == 0 {
            take(&String::from_utf8_lossy(record.text));
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EPIPE) || error.kind() == io::ErrorKind::Interrupted
}

/// The log, or a file that a test has put in its place.
fn file() -> io::Result<File> {
    #[cfg(feature = "failpoints")]
    if let Some(path) = std::env::var_os("NETFIX_KMSG") {
        return File::open(path);
    }
    let found = std::fs::metadata(PATH)?;
    let device = (major(found.rdev()), minor(found.rdev()));
    if !found.file_type().is_char_device() || device != DEVICE {
        return Err(io::Error::other("not the kernel's log"));
    }
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(PATH)
}

/// A record: `PRIORITY,NUMBER,MICROSECONDS,FLAGS[,...];TEXT`. Lines that begin with a space belong to the one before.
struct LogRecord<'a> {
    number: u64,
    facility: u32,
    text: &'a [u8],
}

impl<'a> LogRecord<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let end = line.iter().position(|byte| *byte == b';')?;
        let mut head = str::from_utf8(&line[..end]).ok()?.split(',');
        // The lowest three bits are the level.
        let facility = head.next()?.parse::<u32>().ok()? >> 3;
        Some(Self {
            number: head.next()?.parse().ok()?,
            facility,
            text: &line[end + 1..],
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(reader: &mut KernelLogReader) -> Vec<String> {
        let mut lines = Vec::new();
        reader.read(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn only_whole_records_of_the_kernel_are_read_and_each_once() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let mut write = |text: &str| log.write_all(text.as_bytes()).unwrap();
        write("6,10,1000,-;first\n");
        write(" SUBSYSTEM=net\n DEVICE=n2\n4,11,2000,-,caller=T1;second; one\n");
        // Facility user, as a program that writes to /dev/kmsg has.
        write("12,12,3000,-;of a program\njunk\n;\n6,x,1,-;no number\n6,13,4000,-;cut");
        let file = log.reopen().unwrap();
        let mut reader = KernelLogReader::of(file);
        assert_eq!(lines(&mut reader), ["first", "second; one"]);
        log.write_all(b" off\n6,14,1,-;last\n").unwrap();
        assert_eq!(lines(&mut reader), ["cut off", "last"]);
        assert_eq!(lines(&mut reader), [""; 0]);
        assert_eq!(reader.last(), Some(14));
        reader.file.rewind().unwrap();
        assert_eq!(lines(&mut reader), [""; 0]);
        reader.file.rewind().unwrap();
        reader.last = Some(11);
        assert_eq!(lines(&mut reader), ["cut off", "last"]);
    }
}

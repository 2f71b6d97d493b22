//! A blocking rtnetlink socket inside one namespace.
//!
//! Requests are batched over netlink-sys: one send carries a pod's addresses and routes, and only the last message requests
//! an ACK, which rtnetlink's own connection cannot do. The rtnetlink crate only composes link messages (`link/add`, `link/change`).

mod query;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NetlinkPayload};
use netlink_sys::{Socket as RawSocket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use nix::{getsockopt_impl, sockopt_impl};

use super::codec::{Dump, NLMSG_DONE, NLMSG_ERROR, Received, decode, decode_dump, encode, split};
use super::error::{Error, errno};
use super::netns::routing;
use super::trace;
use crate::fault::{point, retry_interrupted};
use crate::kernel::codec::message::{Message, Request};

sockopt_impl!(
    /// `SO_NETNS_COOKIE` (Linux 5.14): the number of the socket's namespace, unique until the next boot.
    #[allow(unsafe_code)]
    NetnsCookie,
    GetOnly,
    libc::SOL_SOCKET,
    SO_NETNS_COOKIE,
    u64
);
const SO_NETNS_COOKIE: libc::c_int = 71;
/// Receive buffer for the ACKs of one batch and for dumps, in bytes.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The largest send in bytes: the kernel refuses more than the send buffer (212992 bytes by default).
const MAX_SEND: usize = 128 << 10;
/// The most requests of one send: the socket must hold an answer to each.
const MAX_REQUESTS: usize = 64;
/// The least size of one read. The kernel makes a dump's datagrams as large as the reads that it has seen, up to 32 KiB; few
/// large ones are faster and raced less often.
const DATAGRAM: usize = 64 << 10;
thread_local! {
    /// For a datagram, and for the messages of a dump. No socket keeps a buffer: there are as many as pods.
    static BUFFERS: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// How long a raced dump is repeated, with growing pauses.
const DUMP_PATIENCE: Duration = Duration::from_secs(3);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The waits before a send that found no memory is repeated, in milliseconds.
const SEND_PAUSES: [u64; 3] = [1, 10, 50];

/// An rtnetlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub struct Socket {
    raw: RawSocket,
    sequence: u32,
    until: Option<Instant>,
    most: Option<usize>,
}

impl Socket {
    /// A socket in the calling thread's namespace.
    pub fn open_here() -> Result<Self, Error> {
        let raw = routing::socket(NETLINK_ROUTE)?;
        raw.connect(&SocketAddr::new(0, 0))?;
        raw.set_rx_buf_sz(RECEIVE_BUFFER)?;
        // Smaller ACKs; kernels before 4.2 lack the option.
        let _ = raw.set_cap_ack(true);
        Ok(Self {
            raw,
            sequence: 0,
            until: None,
            most: None,
        })
    }

    /// Limits the time of what follows: after it, a dump ends with [`Error::Late`], and no further batch is sent.
    pub fn limit(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// Limits the entries of a table: a dump of more ends with [`Error::TooMany`].
    pub fn read_at_most(&mut self, most: Option<usize>) {
        self.most = most;
    }

    /// Whether the time is over.
    pub fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The cookie of the socket's namespace; `None` before Linux 5.14.
    pub fn netns_cookie(&self) -> Result<Option<u64>, Errno> {
        netns_cookie(&self.as_fd())
    }

    /// Joins a multicast group (`RTNLGRP_*`).
    pub fn join(&mut self, group: u32) -> Result<(), Error> {
        Ok(self.raw.add_membership(group)?)
    }

    /// Receives the events of all namespaces that have an nsid in the socket's (Linux 4.2).
    pub fn hear_others(&mut self) -> Result<(), Error> {
        Ok(self.raw.set_listen_all_namespaces(true)?)
    }

    /// Every object of a table. Repeats the dump while the kernel flags it as interrupted by a change.
    pub fn dump(&mut self, request: impl Into<Message>) -> Result<Dump, Error> {
        let request = request.into();
        Self::patiently(|| self.dump_once(&request))
    }

    /// The messages of such a dump as the kernel sent them.
    ///
    /// # Errors
    /// Also `EMSGSIZE` for a table that no dump can hold.
    pub(crate) fn dump_bytes(&mut self, request: impl Into<Message>) -> Result<Vec<u8>, Error> {
        let request = request.into();
        Self::patiently(|| {
            let mut messages = Vec::new();
            let sequence = self.send(&[(&request, NLM_F_DUMP)])?;
            let whole = BUFFERS.with_borrow_mut(|[datagram, _]| {
                self.receive_dump(sequence, datagram, &mut messages)
            })?;
            match whole {
                Some(true) => Err(Errno::EMSGSIZE.into()),
                Some(false) => Ok(Some(messages)),
                None => Ok(None),
            }
        })
    }

    /// Repeats an `attempt` while it was raced.
    fn patiently<T>(mut attempt: impl FnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
        let deadline = Instant::now() + DUMP_PATIENCE;
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(dump) = attempt()? {
                return Ok(dump);
            }
            if Instant::now() > deadline {
                return Err(Error::Raced);
            }
            thread::sleep(pause);
            pause = MAX_PAUSE.min(pause * 2);
        }
    }

    fn dump_once(&mut self, request: &Message) -> Result<Option<Dump>, Error> {
        let result = self.read_dump(request);
        trace::dump(self, request, &result);
        result
    }

    /// One attempt; `None` when it was raced. Decoding comes after the last datagram, which keeps the race short.
    fn read_dump(&mut self, request: &Message) -> Result<Option<Dump>, Error> {
        let sequence = self.send(&[(request, NLM_F_DUMP)])?;
        BUFFERS.with_borrow_mut(|[datagram, messages]| {
            messages.clear();
            let Some(is_stuck) = self.receive_dump(sequence, datagram, messages)? else {
                return Ok(None);
            };
            let mut dump = decode_dump(messages)?;
            dump.is_cut |= is_stuck;
            Ok(Some(dump))
        })
    }

    /// Collects the messages of a dump: whether the kernel came no further; `None` when it was raced, or when a datagram was
    /// larger than the buffer, which has grown then.
    fn receive_dump(
        &mut self,
        sequence: u32,
        datagram: &mut Vec<u8>,
        messages: &mut Vec<u8>,
    ) -> Result<Option<bool>, Error> {
        let (mut raced, mut ended, mut is_stuck, mut entries) = (false, false, false, 0);
        while !ended && !is_stuck && !self.is_late() {
            if !self.receive_into(datagram)? {
                self.leave_dump()?;
                return Ok(None);
            }
            is_stuck = datagram.is_empty();
            for part in split(datagram) {
                let (header, message) = part?;
                if header.sequence_number == sequence {
                    entries += 1;
                    raced |= header.flags & NLM_F_DUMP_INTR != 0;
                    ended |= [NLMSG_DONE, NLMSG_ERROR].contains(&header.message_type);
                    messages.extend_from_slice(message);
                    messages.resize(messages.len().next_multiple_of(4), 0);
                }
            }
            if let Some(most) = self.most.filter(|most| entries > *most) {
                self.leave_dump()?;
                return Err(Error::TooMany(most));
            }
        }
        if !ended {
            self.leave_dump()?;
        }
        if !ended && !is_stuck {
            return Err(Error::Late);
        }
        Ok(Some(is_stuck).filter(|_| is_stuck || !raced))
    }

    /// Ends a dump before its end: the kernel allows only one at a time.
    fn leave_dump(&mut self) -> Result<(), Error> {
        let mut socket = Self::open_here()?;
        (socket.until, socket.most) = (self.until, self.most);
        *self = socket;
        Ok(())
    }

    /// Sends `requests` in order, in batches; a failed one does not stop those after it.
    ///
    /// The results are in the order of the requests. Only the last message of each batch requests an ACK: the kernel
    /// reports errors without it, by sequence number. When the socket itself fails, the results are unknown. They are fewer
    /// than the requests when the time was over after a batch.
    pub fn run(&mut self, requests: &[Request]) -> Result<Vec<Result<(), Errno>>, Error> {
        let mut results = Vec::with_capacity(requests.len());
        for batch in batches(requests) {
            results.extend(self.run_batch(batch)?);
            if self.is_late() {
                break;
            }
        }
        Ok(results)
    }

    /// Sends one request, and returns its result.
    pub fn run_one(&mut self, request: Request) -> Result<Result<(), Errno>, Error> {
        let result = self.run(&[request])?.pop();
        Ok(result.unwrap_or(Err(Errno::EIO)))
    }

    fn run_batch(&mut self, batch: &[Request]) -> Result<Vec<Result<(), Errno>>, Error> {
        let mut messages: Vec<_> = batch
            .iter()
            .map(|request| (&request.message, request.flags))
            .collect();
        if let Some((_, flags)) = messages.last_mut() {
            *flags |= NLM_F_ACK;
        }
        let results = self.carry_out(&messages);
        trace::run(self, &messages, &results);
        results
    }

    /// Sends messages in one call and waits for the ACK of the last.
    fn carry_out(&mut self, messages: &[(&Message, u16)]) -> Result<Vec<Result<(), Errno>>, Error> {
        let first = self.send(messages)?;
        let last = self.sequence;
        // The kernel has processed the batch at this point.
        point("netlink answer")?;
        let mut failed = HashMap::new();
        'answers: loop {
            for (header, message) in self.receive()? {
                if let NetlinkPayload::Error(answer) = message?.payload {
                    let sequence = header.sequence_number;
                    if answer.code.is_some() {
                        failed.insert(sequence, errno(answer.raw_code()));
                    }
                    if sequence == last {
                        break 'answers;
                    }
                }
            }
        }
        let sequences = (0..).map(|at| first.wrapping_add(at));
        let results = sequences.take(messages.len());
        let result = |sequence| failed.get(&sequence).map_or(Ok(()), |errno| Err(*errno));
        Ok(results.map(result).collect())
    }

    /// Sends messages in one call; returns the sequence number of the first.
    fn send(&mut self, messages: &[(&Message, u16)]) -> Result<u32, Error> {
        let first = self.sequence.wrapping_add(1);
        let mut buffer = Vec::new();
        for (message, flags) in messages {
            self.sequence = self.sequence.wrapping_add(1);
            encode(message, *flags, self.sequence, &mut buffer);
        }
        self.transmit(&buffer)?;
        Ok(first)
    }

    /// Sends a buffer. Repeats a send that found no memory, of which the kernel has processed nothing.
    fn transmit(&self, buffer: &[u8]) -> io::Result<()> {
        let send =
            || retry_interrupted(|| point("netlink send").and_then(|()| self.raw.send(buffer, 0)));
        for pause in SEND_PAUSES.map(Duration::from_millis) {
            match send() {
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM)) =>
                {
                    thread::sleep(pause);
                }
                result => return result.map(drop),
            }
        }
        send().map(drop)
    }

    /// Waits for the next datagram: each message's header, with the message or the reason why it cannot be decoded.
    pub fn receive(&mut self) -> Result<Vec<Received>, Error> {
        const LENGTH_ONLY: libc::c_int = libc::MSG_PEEK | libc::MSG_TRUNC;
        let length =
            retry_interrupted(|| self.raw.recv(&mut [0_u8; 0].as_mut_slice(), LENGTH_ONLY))?;
        let mut datagram = Vec::with_capacity(length);
        retry_interrupted(|| self.raw.recv(&mut datagram, 0))?;
        split(&datagram)
            .map(|part| part.map(|(header, message)| (header, decode(message))))
            .collect()
    }

    /// Waits for the next datagram of a dump and puts it into the buffer. Returns whether it fitted: if not, it is lost, and the
    /// buffer has grown. A link that has thousands of source MACs is one message.
    fn receive_into(&self, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        buffer.clear();
        buffer.reserve(DATAGRAM);
        let length = retry_interrupted(|| self.raw.recv(buffer, libc::MSG_TRUNC))?;
        let fitted = length <= buffer.len();
        if !fitted {
            buffer.clear();
            buffer.reserve(length);
        }
        Ok(fitted)
    }
}

impl AsFd for Socket {
    #[allow(unsafe_code)]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is owned by `self.raw`, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.raw.as_raw_fd()) }
    }
}

/// The cookie of a socket's namespace; `None` before Linux 5.14.
pub(super) fn netns_cookie(socket: &impl AsFd) -> Result<Option<u64>, Errno> {
    match nix::sys::socket::getsockopt(socket, NetnsCookie) {
        Err(Errno::ENOPROTOOPT) => Ok(None),
        cookie => cookie.map(Some),
    }
}

/// Splits requests so that each part fits into one send.
fn batches(requests: &[Request]) -> impl Iterator<Item = &[Request]> {
    use netlink_packet_core::NetlinkSerializable;
    const HEADER: usize = 16;
    let mut rest = requests;
    std::iter::from_fn(move || {
        let mut size = 0;
        let count = rest
            .iter()
            .take(MAX_REQUESTS)
            .take_while(|request| {
                size += HEADER + request.message.buffer_len() + 4;
                size <= MAX_SEND
            })
            .count()
            .max(1);
        (!rest.is_empty()).then(|| {
            let (batch, later) = rest.split_at(count);
            rest = later;
            batch
        })
    })
}

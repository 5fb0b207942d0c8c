//! A connection of an NBD client: a socket, the state of the protocol, and bytes on their way in and out.
//!
//! A client that does not read its answers, or sends faster than the drive works, is not read from until there is room
//! again. So a connection takes a bounded amount of memory, whatever the client does.

use fulgurite_device::IoError;
use fulgurite_disk::{DiskError, Request};
use fulgurite_nbd::{Command, Errno, Export, Extent, Reason, Session, Step};
use rustix::io::Errno as SystemError;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// The bytes that are read from a socket at once.
const READ_BYTES: usize = 256 << 10;

/// The most bytes of answers that a client may have outstanding before it is read from again.
const OUTSTANDING_BYTES: u64 = 32 << 20;

/// The most requests that a client may have outstanding.
const OUTSTANDING_REQUESTS: u32 = 1_024;

/// The most extents in the answer to a question about the allocation of blocks.
const EXTENTS_AT_MOST: usize = 1_024;

/// A request of a client that the drive has to answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    cookie: u64,
    /// The range of a read.
    read: Option<(u64, u32)>,
    /// The bytes of the answer.
    bytes: u32,
}

/// A connection.
pub(crate) struct Connection {
    socket: OwnedFd,
    session: Session,
    input: Vec<u8>,
    /// The bytes of the input that were processed.
    consumed: usize,
    /// Whether the rest of the input is a part of a message.
    needs_more: bool,
    output: Vec<u8>,
    sent: usize,
    outstanding: u32,
    outstanding_bytes: u64,
    since: Instant,
    /// The reason why the connection ends when its output is sent.
    ending: Option<Reason>,
}

/// The drive, as a connection uses it.
pub(crate) trait Drives {
    /// Whether requests may be submitted. Between the point of a power cut and the cut, none may.
    fn is_open(&self) -> bool;
    /// Submits a request. Returns false if the drive has no power.
    fn submit(&mut self, request: Request<'_>, asked: Asked) -> bool;
    /// Returns the length of the extent from `offset` on, and whether it was written.
    fn extent(&self, offset: u64, length: u64) -> (u64, bool);
}

impl Connection {
    /// Begins the handshake.
    pub(crate) fn new(socket: OwnedFd, export: &Arc<Export>) -> Connection {
        let mut output = Vec::new();
        let session = Session::new(Arc::clone(export), &mut output);
        Connection::with(socket, session, output)
    }

    /// Begins a handshake in which every option is refused with `message`.
    pub(crate) fn refusing(socket: OwnedFd, message: &str) -> Connection {
        let mut output = Vec::new();
        let session = Session::refusing(message, &mut output);
        Connection::with(socket, session, output)
    }

    fn with(socket: OwnedFd, session: Session, output: Vec<u8>) -> Connection {
        Connection {
            socket,
            session,
            input: Vec::new(),
            consumed: 0,
            needs_more: false,
            output,
            sent: 0,
            outstanding: 0,
            outstanding_bytes: 0,
            since: Instant::now(),
            ending: None,
        }
    }

    /// Returns the time of the connection's beginning as long as its handshake has not ended.
    pub(crate) fn shakes_hands_since(&self) -> Option<Instant> {
        (!self.session.is_serving()).then_some(self.since)
    }

    /// Whether the connection is read from now.
    pub(crate) fn wants_input(&self) -> bool {
        self.ending.is_none()
            && self.outstanding < OUTSTANDING_REQUESTS
            && self.outstanding_bytes + (self.output.len() - self.sent) as u64 <= OUTSTANDING_BYTES
    }

    /// Whether there are bytes to send.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Reads from the socket once. Returns false at the end of the connection.
    pub(crate) fn receive(&mut self) -> bool {
        if self.consumed == self.input.len() {
            self.input.clear();
        } else if self.consumed > 0 {
            self.input.drain(..self.consumed);
        }
        self.consumed = 0;
        let room = self.session.needs().saturating_sub(self.input.len()).max(READ_BYTES);
        self.input.reserve(room);
        let buffer = rustix::buffer::spare_capacity(&mut self.input);
        match recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => false,
            Ok(_) => {
                self.needs_more = false;
                true
            }
            Err(SystemError::AGAIN | SystemError::INTR) => true,
            Err(_) => false,
        }
    }

    /// Processes the messages that have arrived, until the client has too much outstanding.
    pub(crate) fn process(&mut self, drive: &mut impl Drives) {
        while self.has_input() && drive.is_open() {
            let (consumed, step) = self.session.step(&self.input[self.consumed..], &mut self.output);
            self.consumed += consumed;
            let request = match step {
                Step::Wait => {
                    self.needs_more = true;
                    return;
                }
                Step::Send => return,
                Step::Closed(reason) => {
                    self.ending = Some(reason);
                    return;
                }
                Step::Request(request) => request,
            };
            let cookie = request.cookie;
            let mut asked = Asked { cookie, read: None, bytes: 0 };
            let request = match request.command {
                Command::Read { offset, length } => {
                    asked = Asked { read: Some((offset, length)), bytes: length, ..asked };
                    Request::Read { offset, length: u64::from(length) }
                }
                Command::Write { offset, data, durable } => Request::Write { offset, data, durable },
                Command::Trim { offset, length, durable } => {
                    Request::Trim { offset, length: u64::from(length), durable }
                }
                Command::WriteZeroes { offset, length, durable, may_trim, .. } => {
                    Request::Zero { offset, length: u64::from(length), durable, trim: may_trim }
                }
                Command::Flush => Request::Flush,
                // The drive keeps nothing in a cache of reads.
                Command::Cache { .. } => {
                    self.session.reply(cookie, Ok(()), &mut self.output);
                    continue;
                }
                Command::BlockStatus { offset, length, one } => {
                    let extents = extents(drive, offset, length, if one { 1 } else { EXTENTS_AT_MOST });
                    self.session.reply_block_status(cookie, &extents, &mut self.output);
                    continue;
                }
            };
            if drive.submit(request, asked) {
                self.outstanding += 1;
                self.outstanding_bytes += u64::from(asked.bytes);
            } else {
                self.session.reply(cookie, Err(Errno::Shutdown), &mut self.output);
            }
        }
    }

    /// Whether messages have arrived that can be processed now. Those of a client with much outstanding must wait.
    pub(crate) fn has_input(&self) -> bool {
        self.wants_input() && !self.needs_more && self.consumed < self.input.len()
    }

    /// Appends the answer to a request. `copy` appends the bytes of a read.
    pub(crate) fn answer(
        &mut self,
        asked: Asked,
        status: Result<(), DiskError>,
        copy: impl FnOnce(u64, usize, &mut Vec<u8>),
    ) {
        self.outstanding -= 1;
        self.outstanding_bytes -= u64::from(asked.bytes);
        match (status, asked.read) {
            (Ok(()), Some((offset, length))) => {
                self.session.begin_read_reply(asked.cookie, offset, length, &mut self.output);
                copy(offset, length as usize, &mut self.output);
            }
            (status, _) => self.session.reply(asked.cookie, status.map_err(errno), &mut self.output),
        }
    }

    /// Sends what the socket takes. Returns false at the end of the connection.
    pub(crate) fn send(&mut self) -> bool {
        while self.has_output() {
            match send(&self.socket, &self.output[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(SystemError::INTR) => {}
                Err(SystemError::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        self.output.clear();
        self.sent = 0;
        // A client that ends the connection gets the answers to what it asked before.
        self.ending.is_none() || self.outstanding > 0
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the extents of a range: written ones, and holes, which read as zeros.
fn extents(drive: &impl Drives, offset: u64, length: u32, most: usize) -> Vec<Extent> {
    let mut extents = Vec::new();
    let (mut at, end) = (offset, offset + u64::from(length));
    while at < end && extents.len() < most {
        let (bytes, is_written) = drive.extent(at, end - at);
        // The extent is at most as long as the range, whose length has 32 bits.
        extents.push(Extent { bytes: bytes as u32, hole: !is_written, zero: !is_written });
        at += bytes;
    }
    extents
}

/// Returns the error number that tells a client why its request failed.
fn errno(error: DiskError) -> Errno {
    match error {
        DiskError::OutOfRange => Errno::Invalid,
        DiskError::NoSpace | DiskError::Device(IoError::WornOut) => Errno::NoSpace,
        DiskError::Device(_) => Errno::Io,
    }
}

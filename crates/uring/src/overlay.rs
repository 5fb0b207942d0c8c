//! An overlay device: it reads a file or block device and stores all writes in another file, so the original
//! never changes.

use crate::read_only::ReadOnlyFile;
use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{
    Arena, Caps, Command, Completion, Device, Doing, Failure, IoError, Operation, QueueFull,
};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The size of a page, in bytes.
const PAGE_BYTES: u32 = 4096;

/// A read-only file as a drive. Written pages are stored in a second file and read from there. So a store
/// that was not closed can be recovered and read without a change of its file.
///
/// Commands are executed one after the other with plain system calls, through the page cache, which reads
/// ahead.
pub struct OverlayDevice {
    below: ReadOnlyFile,
    /// The second file, with the written pages, each at its own address.
    beside: File,
    /// The numbers of the written pages.
    written: BTreeSet<u64>,
    caps: Caps,
    queue: VecDeque<Command>,
    /// The buffer for commands that have none.
    scratch: Arc<Arena>,
    opened: Instant,
}

impl OverlayDevice {
    /// Creates a drive with the contents of `below`. The file `beside` must be empty and have no other users.
    pub fn new(below: ReadOnlyFile, beside: File) -> OverlayDevice {
        let caps = Caps {
            pages_per_command: (1 << 20) / PAGE_BYTES,
            // This is the value of the file below, so that a store protects its pages here as it does there.
            atomic_bytes: below.atomic_bytes(),
            ..Caps::plain(PAGE_BYTES, below.bytes() / u64::from(PAGE_BYTES), 256)
        };
        let longest = (caps.page_bytes * caps.pages_per_command) as usize;
        OverlayDevice {
            below,
            beside,
            written: BTreeSet::new(),
            caps,
            queue: VecDeque::new(),
            scratch: Arena::new(longest),
            opened: Instant::now(),
        }
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), IoError> {
        if let Some(fault) = operation.fault(&self.caps) {
            return Err(fault);
        }
        let scratch = |pages: u32| self.scratch.buffer(0, (pages * PAGE_BYTES) as usize);
        let outcome = match operation {
            Operation::Read { lpn, pages, into } => {
                let buffer = into.clone().unwrap_or_else(|| scratch(*pages));
                // SAFETY: from submission to completion the buffer belongs to the device.
                self.read(*lpn, unsafe { buffer.bytes_mut() })
            }
            Operation::Write { lpn, pages, from, .. } => {
                let buffer = from.clone().unwrap_or_else(|| scratch(*pages));
                // SAFETY: from submission to completion no other code changes the buffer.
                self.write(*lpn, unsafe { buffer.bytes() })
            }
            Operation::Trim { lpn, pages } => {
                let zeros = vec![0; PAGE_BYTES as usize];
                (lpn.0..lpn.0 + u64::from(*pages)).try_for_each(|page| self.write(Lpn(page), &zeros))
            }
            Operation::Share { .. } => return Err(IoError::Unsupported),
            // Written pages do not outlive the device, so a flush has nothing to make durable.
            Operation::Flush => Ok(()),
        };
        outcome.map_err(|error| {
            let failure = Failure::of(operation, &error);
            // A trim writes zeros here, so its failure is that of a write to the second file.
            let is_read = failure.doing == Doing::Read;
            IoError::System(if is_read { failure } else { Failure { doing: Doing::WriteBeside, ..failure } })
        })
    }

    /// Reads pages from `first` on. Consecutive pages in the same file are read together.
    fn read(&self, first: Lpn, into: &mut [u8]) -> io::Result<()> {
        let page = PAGE_BYTES as usize;
        let pages = (into.len() / page) as u64;
        let mut done = 0;
        while done < pages {
            let is_written = self.written.contains(&(first.0 + done));
            let same = |next: &u64| self.written.contains(&(first.0 + next)) == is_written;
            let end = (done + 1..pages).take_while(same).last().map_or(done + 1, |last| last + 1);
            let part = &mut into[done as usize * page..end as usize * page];
            let place = (first.0 + done) * u64::from(PAGE_BYTES);
            if is_written {
                self.beside.read_exact_at(part, place)?;
            } else {
                self.below.read_at(place, part)?;
            }
            done = end;
        }
        Ok(())
    }

    fn write(&mut self, first: Lpn, bytes: &[u8]) -> io::Result<()> {
        self.beside.write_all_at(bytes, first.0 * u64::from(PAGE_BYTES))?;
        self.written.extend(first.0..first.0 + (bytes.len() / PAGE_BYTES as usize) as u64);
        Ok(())
    }
}

impl Device for OverlayDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        Nanos(self.opened.elapsed().as_nanos() as u64)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.queue.len() >= self.caps.queue_depth as usize {
            return Err(QueueFull(command));
        }
        self.queue.push_back(command);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        // A command blocks until it ends, so each wait executes one command and returns its completion.
        if let Some(Command { tag, operation }) = self.queue.pop_front() {
            let status = self.perform(&operation);
            completions.push(Completion { tag, at: self.now(), status });
        } else if let Some(deadline) = deadline {
            std::thread::sleep(Duration::from_nanos(deadline.saturating_sub(self.now()).0));
        }
    }
}

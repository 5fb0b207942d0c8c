//! An ideal drive: it stores the contents in memory, each command has a fixed latency, and commands do not
//! delay each other.
//!
//! The ideal drive is the reference for comparing other devices, and the drive for runs that only count hits
//! and misses. Completions are ordered by time, and at equal times by submission.

use crate::{Caps, Command, Completion, Device, IoError, Operation, QueueFull, ShareRun, Tag};
use fulgurite_base::Nanos;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The ideal drive, in memory.
pub struct MemDevice {
    caps: Caps,
    latency: Nanos,
    now: Nanos,
    submitted: u64,
    /// The commands in flight, each as its end time and its number in the order of submission. The heap gives
    /// the next command to complete.
    pending: BinaryHeap<Reverse<(Nanos, u64)>>,
    in_flight: FxHashMap<u64, (Tag, Result<(), IoError>)>,
    contents: FxHashMap<u64, Box<[u8]>>,
}

impl MemDevice {
    /// Creates a drive of `pages` pages of `page_bytes` bytes each. Every command takes `latency`.
    pub fn new(pages: u64, page_bytes: u32, queue_depth: u32, latency: Nanos) -> MemDevice {
        let caps = Caps {
            pages_per_command: 1024,
            atomic_bytes: page_bytes,
            share_pages: 1024,
            ..Caps::plain(page_bytes, pages, queue_depth)
        };
        MemDevice {
            caps,
            latency,
            now: Nanos::ZERO,
            submitted: 0,
            pending: BinaryHeap::new(),
            in_flight: FxHashMap::default(),
            contents: FxHashMap::default(),
        }
    }

    /// Executes the operation at once; only its completion is delayed.
    fn perform(&mut self, operation: &Operation) {
        let page_bytes = self.caps.page_bytes as usize;
        match operation {
            Operation::Read { lpn, into: Some(buffer), .. } => {
                // SAFETY: the buffer belongs to the device until completion.
                let bytes = unsafe { buffer.bytes_mut() };
                for (at, page) in (lpn.0..).zip(bytes.chunks_exact_mut(page_bytes)) {
                    match self.contents.get(&at) {
                        Some(stored) => page.copy_from_slice(stored),
                        None => page.fill(0),
                    }
                }
            }
            Operation::Write { lpn, from: Some(buffer), .. } => {
                // SAFETY: the submitter keeps the bytes unchanged until completion.
                let bytes = unsafe { buffer.bytes() };
                for (at, page) in (lpn.0..).zip(bytes.chunks_exact(page_bytes)) {
                    self.contents.insert(at, page.into());
                }
            }
            Operation::Trim { lpn, pages } => {
                for at in lpn.0..lpn.0 + u64::from(*pages) {
                    self.contents.remove(&at);
                }
            }
            Operation::Share { runs } => self.share(runs),
            Operation::Read { .. } | Operation::Write { .. } | Operation::Flush => {}
        }
    }

    fn share(&mut self, runs: &[ShareRun]) {
        for ShareRun { destination, source, pages } in runs {
            for at in 0..u64::from(*pages) {
                match self.contents.get(&(source.0 + at)).cloned() {
                    Some(page) => self.contents.insert(destination.0 + at, page),
                    None => self.contents.remove(&(destination.0 + at)),
                };
            }
        }
    }
}

impl Device for MemDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.pending.len() >= self.caps.queue_depth as usize {
            return Err(QueueFull(command));
        }
        let fault = command.operation.fault(&self.caps);
        if fault.is_none() {
            self.perform(&command.operation);
        }
        self.pending.push(Reverse((self.now + self.latency, self.submitted)));
        self.in_flight.insert(self.submitted, (command.tag, fault.map_or(Ok(()), Err)));
        self.submitted += 1;
        Ok(())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.pending.peek().map(|Reverse((at, _))| *at)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        // The clock does not go back if the deadline has already passed.
        let deadline = deadline.map(|deadline| deadline.max(self.now));
        let next = self.pending.peek().map(|Reverse((at, _))| *at);
        let Some(until) = next.into_iter().chain(deadline).min() else { return };
        self.now = until;
        while let Some(Reverse((at, order))) =
            self.pending.peek().copied().filter(|Reverse((at, _))| *at <= until)
        {
            self.pending.pop();
            let (tag, status) = self.in_flight.remove(&order).expect("pending and in_flight agree");
            completions.push(Completion { tag, at, status });
        }
    }
}

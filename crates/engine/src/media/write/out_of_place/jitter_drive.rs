//! A drive for tests with random latencies. Commands take effect when they complete. Optionally, some pages
//! cannot be written.

use crate::bytes;
use fulgurite_base::{Lpn, Nanos, Prng, StreamId};
use fulgurite_device::{Caps, Command, Completion, Device, IoError, MemDevice, Operation, QueueFull};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct JitterDrive {
    caps: Caps,
    now: Nanos,
    prng: Prng,
    submitted: u64,
    pending: BTreeMap<(Nanos, u64), Command>,
    contents: Vec<u8>,
    /// The first page of the range in which one page in [`BAD_IN`] cannot be written; `None` if all pages can
    /// be written.
    bad_from: Option<u64>,
    /// The first pages of all write commands, with their streams.
    written: BTreeSet<(Lpn, StreamId)>,
}

/// The number of pages of which one cannot be written.
const BAD_IN: u64 = 500;

impl JitterDrive {
    pub(super) fn new(pages: u64, seed: u64) -> JitterDrive {
        let caps = MemDevice::new(pages, 4096, 64, Nanos::ZERO).caps().clone();
        let contents = vec![0; pages as usize * 4096];
        let (pending, prng) = (BTreeMap::new(), Prng::new(seed, "uneven"));
        let written = BTreeSet::new();
        JitterDrive { caps, now: Nanos::ZERO, prng, submitted: 0, pending, contents, bad_from: None, written }
    }

    /// Sets the number of streams that the drive has.
    pub(super) fn with_streams(mut self, streams: u16) -> JitterDrive {
        self.caps.streams = streams;
        self
    }

    /// Returns the streams of the writes that begin at wanted pages.
    pub(super) fn streams(&self, is_wanted: impl Fn(Lpn) -> bool) -> BTreeSet<u16> {
        self.written.iter().filter(|(lpn, _)| is_wanted(*lpn)).map(|(_, stream)| stream.0).collect()
    }

    /// Makes some of the pages from `first` on unwritable from now on.
    pub(super) fn be_bad_from(&mut self, first: u64) {
        self.bad_from = Some(first);
    }

    /// Whether an operation writes a page that cannot be written. Such a write destroys the old contents of
    /// its pages.
    fn fails(&mut self, operation: &Operation) -> bool {
        let (Some(first), Operation::Write { lpn, pages, .. }) = (self.bad_from, operation) else {
            return false;
        };
        let pages = lpn.0..lpn.0 + u64::from(*pages);
        let fails = pages.clone().any(|page| page >= first && page.is_multiple_of(BAD_IN));
        if fails {
            self.contents[pages.start as usize * 4096..pages.end as usize * 4096].fill(0xBB);
        }
        fails
    }

    fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Read { lpn, into: Some(into), .. } => {
                let at = lpn.0 as usize * 4096;
                bytes::fill(&into, &self.contents[at..at + into.len()]);
            }
            Operation::Write { lpn, from: Some(from), stream, .. } => {
                self.written.insert((lpn, stream));
                let at = lpn.0 as usize * 4096;
                bytes::look(&from, |bytes| self.contents[at..at + bytes.len()].copy_from_slice(bytes));
            }
            // Overwrite trimmed pages, because they must not be read.
            Operation::Trim { lpn, pages } => {
                self.contents[lpn.0 as usize * 4096..][..pages as usize * 4096].fill(0xEE);
            }
            _ => {}
        }
    }
}

impl Device for JitterDrive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        // One command in eight takes far longer than others, on average.
        let most = if self.prng.below(8) == 0 { 2_000 } else { 60 };
        let end = self.now + Nanos::from_micros(1 + self.prng.below(most));
        self.submitted += 1;
        self.pending.insert((end, self.submitted), command);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let next = self.pending.first_key_value().map(|((end, _), _)| *end);
        match next.filter(|next| deadline.is_none_or(|deadline| *next <= deadline)) {
            None => self.now = self.now.max(deadline.unwrap_or(self.now)),
            Some(next) => {
                self.now = self.now.max(next);
                let (_, Command { tag, operation }) = self.pending.pop_first().expect("there is a next");
                let fails = self.fails(&operation);
                if !fails {
                    self.perform(operation);
                }
                let status = if fails { Err(IoError::Media) } else { Ok(()) };
                completions.push(Completion { tag, at: self.now, status });
            }
        }
    }
}

//! Putting records together from the blocks of the log.

use crate::Lsn;
use crate::format::log_block::{Block, HEADER};
use crate::format::log_record::{Entry, FRAME};
use crate::format::page::get_u32;

/// The records in blocks that follow each other. Memory holds one record and one block.
#[derive(Default)]
pub struct RecordReader {
    /// Bytes of records, and how many of them are taken.
    bytes: Vec<u8>,
    taken: usize,
    /// Where the bytes lie: place in `bytes`, place in the log.
    places: Vec<(usize, Lsn)>,
}

impl RecordReader {
    /// Adds the next block, once [`RecordReader::next`] has nothing more. What lies before `redo` is not wanted.
    pub fn add(&mut self, header: &Block, block: &[u8], redo: Lsn) {
        if header.first {
            // A record that is not finished here never will be: its flush was cut off.
            self.taken = self.bytes.len();
        }
        self.drop_taken();
        let at = header.at.0 + HEADER as u64;
        let skip = (redo.0.saturating_sub(at) as usize).min(header.used as usize);
        self.places.push((self.bytes.len(), Lsn(at + skip as u64)));
        self.bytes.extend_from_slice(&block[HEADER + skip..HEADER + header.used as usize]);
    }

    fn drop_taken(&mut self) {
        self.bytes.drain(..self.taken);
        for (from, at) in &mut self.places {
            *at = Lsn(at.0 + self.taken.saturating_sub(*from) as u64);
            *from = from.saturating_sub(self.taken);
        }
        // Of runs that now begin at 0 the last one counts.
        let at_zero = self.places.iter().filter(|(from, _)| *from == 0).count();
        self.places.drain(..at_zero.saturating_sub(1));
        self.taken = 0;
    }

    /// The next record with its place and end, as `read` gives it from place and payload; `None` where its end is not here
    /// yet. An error is the place of one that is not what was written there, or that `read` makes no sense of.
    pub fn next<T>(
        &mut self,
        read: impl FnOnce(Lsn, &[u8]) -> Option<T>,
    ) -> Option<Result<(Lsn, Lsn, T), Lsn>> {
        let frame = self.bytes.get(self.taken..self.taken + FRAME)?;
        let (len, crc) = (get_u32(frame, 0) as usize, get_u32(frame, 4));
        let from = self.taken + FRAME;
        let payload = self.bytes.get(from..from + len)?;
        let at = self.place(self.taken);
        let entry = if crc == Entry::crc(at, payload) { read(at, payload) } else { None };
        let Some(entry) = entry else { return Some(Err(at)) };
        self.taken = from + len;
        // Behind the last byte, which may be the last of its block.
        let end = Lsn(self.place(self.taken - 1).0 + 1);
        Some(Ok((at, end, entry)))
    }

    /// The place in the log of a byte.
    fn place(&self, index: usize) -> Lsn {
        let run = self.places.partition_point(|(from, _)| *from <= index) - 1;
        let (from, at) = self.places[run];
        Lsn(at.0 + (index - from) as u64)
    }
}

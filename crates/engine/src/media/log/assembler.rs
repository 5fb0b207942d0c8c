//! Assembles records from the blocks of the log.

use crate::Lsn;
use crate::format::log_block::{Block, HEADER};
use crate::format::log_record::{Entry, FRAME};
use crate::format::page::get_u32;

/// Assembles the records of consecutive blocks. It buffers at most one record and one block.
#[derive(Default)]
pub(crate) struct RecordAssembler {
    /// Bytes of records, followed by the number of these bytes that are consumed.
    bytes: Vec<u8>,
    taken: usize,
    /// For each block, the index of its first byte in `bytes` and the LSN of that byte.
    positions: Vec<(usize, Lsn)>,
}

impl RecordAssembler {
    /// Adds the next block, after [`RecordAssembler::next`] has returned `None`. Records before `redo` are
    /// skipped.
    pub(crate) fn add(&mut self, header: &Block, block: &[u8], redo: Lsn) {
        if header.first {
            // A record that is still incomplete when a flush begins was cut off by the interruption of its
            // own flush, so drop it.
            self.taken = self.bytes.len();
        }
        self.drop_taken();
        let at = header.at.0 + HEADER as u64;
        let skip = (redo.0.saturating_sub(at) as usize).min(header.used as usize);
        self.positions.push((self.bytes.len(), Lsn(at + skip as u64)));
        self.bytes.extend_from_slice(&block[HEADER + skip..HEADER + header.used as usize]);
    }

    fn drop_taken(&mut self) {
        self.bytes.drain(..self.taken);
        for (from, at) in &mut self.positions {
            *at = Lsn(at.0 + self.taken.saturating_sub(*from) as u64);
            *from = from.saturating_sub(self.taken);
        }
        // If several entries begin at index 0 now, only the last one is valid.
        let at_zero = self.positions.iter().filter(|(from, _)| *from == 0).count();
        self.positions.drain(..at_zero.saturating_sub(1));
        self.taken = 0;
    }

    /// Returns the next record as its LSN, its end, and the value that `read` decodes from LSN and payload.
    /// Returns `None` if the end of the record is not in the blocks so far. The error is the LSN of a record
    /// that is damaged or that `read` rejects.
    pub(crate) fn next<T>(
        &mut self,
        read: impl FnOnce(Lsn, &[u8]) -> Option<T>,
    ) -> Option<Result<(Lsn, Lsn, T), Lsn>> {
        let frame = self.bytes.get(self.taken..self.taken + FRAME)?;
        let (len, crc) = (get_u32(frame, 0) as usize, get_u32(frame, 4));
        let from = self.taken + FRAME;
        let payload = self.bytes.get(from..from + len)?;
        let at = self.lsn_of(self.taken);
        let entry = if crc == Entry::crc(at, payload) { read(at, payload) } else { None };
        let Some(entry) = entry else { return Some(Err(at)) };
        self.taken = from + len;
        // The record may end with its block, so its end is computed from its last byte: the next byte may
        // have another LSN.
        let end = Lsn(self.lsn_of(self.taken - 1).0 + 1);
        Some(Ok((at, end, entry)))
    }

    /// Returns the LSN of the byte at an index in `bytes`.
    fn lsn_of(&self, index: usize) -> Lsn {
        let last = self.positions.partition_point(|(from, _)| *from <= index) - 1;
        let (from, at) = self.positions[last];
        Lsn(at.0 + (index - from) as u64)
    }
}

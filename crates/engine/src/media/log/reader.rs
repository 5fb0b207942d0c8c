//! Reads the log after a crash. It follows the chain of blocks and returns the records.

use super::assembler::RecordAssembler;
use super::writer::LogStart;
use crate::bytes;
use crate::format::log_block::Block;
use crate::{Error, Lsn, Options};
use fulgurite_base::Lpn;
use fulgurite_device::executor::Io;
use fulgurite_device::{Arena, Buffer, Handle, Operation};
use std::ops::Range;

/// The size of one read in bytes.
const PIECE: u64 = 1 << 20;

/// The largest number of positions more than a window behind the log's end that are searched for blocks. A
/// log with few blocks is searched completely.
const SAMPLES: u64 = 1024;
/// The number of these positions that are read concurrently.
const LOOKED_AT_TOGETHER: usize = 64;

/// The end of a log, to which the log is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The LSN that the next block gets.
    pub at: Lsn,
    pub crc: u32,
}

/// Reads the records of a log from its redo point on.
pub(crate) struct LogReader {
    handle: Handle,
    start: LogStart,
    options: Options,
    /// The piece that is being read ahead: its LSN, its buffer and its read.
    ahead: Option<(Lsn, Buffer, Io)>,
    /// The last piece that was read, and its LSN.
    piece: Vec<u8>,
    piece_at: Lsn,
    /// The LSN of the next block, and the CRC of the block before it; `None` until that CRC is known.
    next: Lsn,
    previous: Option<u32>,
    /// The highest LSN up to which the blocks read so far say that the log was durable.
    durable: Lsn,
    /// Assembles the records of the blocks read so far.
    records: RecordAssembler,
    /// The end of the log; `None` while it is unknown.
    end: Option<Tail>,
}

impl LogReader {
    /// Creates a reader that begins at `start.redo`, which is the beginning of a record or the end of the
    /// log. `end` is the end of the log if it is known.
    pub(crate) fn new(handle: Handle, start: LogStart, end: Option<Tail>, options: &Options) -> LogReader {
        let block = u64::from(start.block_bytes);
        let first = Lsn(start.redo.0 / block * block);
        LogReader {
            handle,
            start,
            options: options.clone(),
            ahead: None,
            piece: Vec::new(),
            piece_at: Lsn(0),
            next: first,
            // If the redo point is the end of the durable log, the block at the redo point must continue the
            // chain.
            previous: (first == start.tail).then_some(start.crc),
            durable: Lsn(0),
            records: RecordAssembler::default(),
            end,
        }
    }

    /// Whether a block that continues the chain exists at the position where the reader begins.
    pub(crate) async fn continues(&mut self) -> Result<bool, Error> {
        let found = self.look(self.next).await?;
        Ok(found.is_some_and(|(block, ..)| Some(block.previous) == self.previous))
    }

    /// Returns the next record as its LSN, its end, and the value that `read` decodes from LSN and payload.
    /// Returns `None` at the end of the log. Fails if the log ends before its known end.
    pub(crate) async fn next<T>(
        &mut self,
        mut read: impl FnMut(Lsn, &[u8]) -> Option<T>,
    ) -> Result<Option<(Lsn, Lsn, T)>, Error> {
        loop {
            if let Some(record) = self.records.next(&mut read) {
                let what = "a record is damaged".to_owned();
                return record.map(Some).map_err(|at| Error::LogCorrupt { at, what });
            }
            if !self.block().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the next block. Returns false at the end of the log.
    async fn block(&mut self) -> Result<bool, Error> {
        if self.end.is_some_and(|end| self.next >= end.at) {
            return Ok(false);
        }
        let last = self.previous;
        let follows = |block: &Block| last.is_none_or(|last| last == block.previous);
        let found = self.look(self.next).await?;
        let found = found.filter(|(block, ..)| follows(block) || planted!(self.options, ChainIgnored));
        let Some((block, crc, range)) = found else {
            // When the log is read again, it can end earlier only if it was damaged or the drive returned
            // wrong data.
            return match self.end {
                Some(end) => Err(self.lost(end.at)),
                None => Ok(false),
            };
        };
        self.records.add(&block, &self.piece[range], self.start.redo);
        self.previous = Some(crc);
        self.durable = self.durable.max(block.durable);
        self.next = Lsn(self.next.0 + u64::from(self.start.block_bytes));
        Ok(true)
    }

    /// Returns the block at an LSN, its CRC, and its range in `piece`. Returns `None` if the drive has no
    /// block of this LSN.
    async fn look(&mut self, at: Lsn) -> Result<Option<(Block, u32, Range<usize>)>, Error> {
        let range = self.bytes_at(at).await?;
        let trusting = planted!(self.options, TornLogBlockAccepted);
        let found = Block::read(&self.piece[range.clone()], trusting, self.start.salt);
        Ok(found.filter(|(block, _)| block.at == at).map(|(block, crc)| (block, crc, range)))
    }

    /// Whether the position of an LSN holds the header of the block for this LSN, even if the rest is
    /// damaged.
    async fn has_head(&mut self, at: Lsn) -> Result<bool, Error> {
        let range = self.bytes_at(at).await?;
        let head = Block::read(&self.piece[range], true, self.start.salt);
        Ok(head.is_some_and(|(block, _)| block.at == at))
    }

    /// Returns the range in `piece` of the block at an LSN.
    async fn bytes_at(&mut self, at: Lsn) -> Result<Range<usize>, Error> {
        let len = self.start.block_bytes as usize;
        if at < self.piece_at || at.0 + len as u64 > self.piece_at.0 + self.piece.len() as u64 {
            self.fetch(at).await?;
        }
        let from = (at.0 - self.piece_at.0) as usize;
        Ok(from..from + len)
    }

    /// Makes the ring's bytes from `at` on the current piece, and begins to read the next piece.
    async fn fetch(&mut self, at: Lsn) -> Result<(), Error> {
        let ahead = self.ahead.take().filter(|(begun, ..)| *begun == at);
        let (_, piece, io) = ahead.unwrap_or_else(|| self.read_piece(at));
        let outcome = io.await;
        let behind = Lsn(at.0 + piece.len() as u64);
        // Do not read ahead with the first piece, because the check of a closed store's log needs only one
        // piece.
        if !self.piece.is_empty() && self.end.is_none_or(|end| behind < end.at) {
            self.ahead = Some(self.read_piece(behind));
            self.handle.pause().await;
        }
        outcome.map_err(Error::Io)?;
        self.piece.clear();
        bytes::look(&piece, |read| self.piece.extend_from_slice(read));
        self.piece_at = at;
        Ok(())
    }

    /// Begins to read the piece of the ring at an LSN.
    fn read_piece(&self, at: Lsn) -> (Lsn, Buffer, Io) {
        let caps = self.handle.caps();
        let (block, page) = (u64::from(self.start.block_bytes), u64::from(caps.page_bytes));
        let index = at.0 / block % self.start.blocks;
        let bytes = ((self.start.blocks - index) * block).min(PIECE / block * block).max(block);
        let longest = u64::from(caps.pages_per_command) * page;
        let first = self.block_at(at).0.0;
        let buffer = Arena::new(bytes as usize).buffer(0, bytes as usize);
        let mut operations = Vec::new();
        let mut from = 0;
        while from < bytes {
            let len = longest.min(bytes - from);
            let into = Some(buffer.part(from as usize, len as usize));
            let (lpn, pages) = (Lpn(first + from / page), (len / page) as u32);
            operations.push(Operation::Read { lpn, pages, into });
            from += len;
        }
        let io = self.handle.submit_all(operations.into_iter());
        (at, buffer, io)
    }

    /// Returns the end of the log, after [`LogReader::next`] has returned `None`. Also returns the positions
    /// after this end of blocks, intact or damaged, that belong to an interrupted flush. Fails if the log was
    /// durable beyond its end.
    pub(crate) async fn tail(&mut self) -> Result<(Tail, Vec<Lsn>), Error> {
        let mut left_over = Vec::new();
        let end = self.next;
        if self.durable > end || self.start.tail > end {
            return Err(self.lost(self.durable.max(self.start.tail)));
        }
        let block = u64::from(self.start.block_bytes);
        let first = self.start.redo.0 / block * block;
        // The ring holds one round of blocks from the redo point on.
        let round = first + self.start.blocks * block;
        let window = round.min(end.0 + self.start.window()).max(end.0);
        for at in (end.0 + block..window).step_by(block as usize).map(Lsn) {
            if let Some((found, ..)) = self.look(at).await?
                && found.durable > end
            {
                return Err(self.lost(found.durable));
            }
            if self.has_head(at).await? {
                left_over.push(at);
            }
        }
        let blocks = round.saturating_sub(window) / block;
        if blocks <= SAMPLES {
            for at in (window..round).step_by(block as usize).map(Lsn) {
                if self.look(at).await?.is_some() {
                    return Err(self.lost(at));
                }
            }
        } else {
            let step = blocks.div_ceil(SAMPLES) * block;
            let samples: Vec<Lsn> = (window..round).step_by(step as usize).map(Lsn).collect();
            for places in samples.chunks(LOOKED_AT_TOGETHER) {
                if let Some(at) = self.look_together(places).await? {
                    return Err(self.lost(at));
                }
            }
        }
        Ok((Tail { at: end, crc: self.previous.unwrap_or(self.start.crc) }, left_over))
    }

    fn lost(&self, at: Lsn) -> Error {
        let what = format!("the log was durable up to {at} and ends before");
        Error::LogCorrupt { at: self.next, what }
    }

    /// Reads several positions concurrently. Returns the first one that holds an intact block of its LSN.
    async fn look_together(&self, places: &[Lsn]) -> Result<Option<Lsn>, Error> {
        let len = self.start.block_bytes as usize;
        let buffer = Arena::new(places.len() * len).buffer(0, places.len() * len);
        let parts: Vec<Buffer> = (0..places.len()).map(|index| buffer.part(index * len, len)).collect();
        let read = |(at, into): (&Lsn, &Buffer)| {
            let (lpn, pages) = self.block_at(*at);
            Operation::Read { lpn, pages, into: Some(into.clone()) }
        };
        let reads: Vec<Operation> = std::iter::zip(places, &parts).map(read).collect();
        self.handle.submit_all(reads.into_iter()).await.map_err(Error::Io)?;
        let is_there = |(at, part): &(&Lsn, &Buffer)| {
            let found = bytes::look(part, |bytes| Block::read(bytes, false, self.start.salt));
            found.is_some_and(|(block, _)| block.at == **at)
        };
        Ok(std::iter::zip(places, &parts).find(is_there).map(|(at, _)| *at))
    }

    /// Returns the first device page of the block at an LSN, and the number of its device pages.
    fn block_at(&self, at: Lsn) -> (Lpn, u32) {
        let block = u64::from(self.start.block_bytes);
        let pages = block / u64::from(self.handle.caps().page_bytes);
        (Lpn(self.start.first.0 + at.0 / block % self.start.blocks * pages), pages as u32)
    }
}

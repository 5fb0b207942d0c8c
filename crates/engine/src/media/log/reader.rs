//! Reading the log after a crash: along the chain of blocks, record by record.

use super::frames::RecordReader;
use super::writer::LogStart;
use crate::bytes;
use crate::format::log_block::Block;
use crate::{Error, Lsn, Options};
use fulgurite_base::Lpn;
use fulgurite_device::executor::Io;
use fulgurite_device::{Arena, Buffer, Device, Handle, Operation};
use std::ops::Range;

/// Bytes that are read from the drive at once.
const PIECE: u64 = 1 << 20;

/// Places further than a window behind the log's end where blocks are looked for, at most. A small log has no more.
const SAMPLES: u64 = 1024;
/// How many of them are read at once.
const LOOKED_AT_TOGETHER: usize = 64;

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where the next block goes.
    pub at: Lsn,
    /// CRC of the last block.
    pub crc: u32,
}

/// Reads a log from its redo point on.
pub struct LogReader<D: Device + 'static> {
    handle: Handle<D>,
    start: LogStart,
    options: Options,
    /// The piece that is being read ahead: where it lies in the log, its bytes on their way, and the end of that.
    ahead: Option<(Lsn, Buffer, Io<D>)>,
    /// What was read last, and where it lies in the log.
    piece: Vec<u8>,
    piece_at: Lsn,
    /// The block that comes next, and the CRC of the one before, once it is known.
    next: Lsn,
    previous: Option<u32>,
    /// The last block's durable place.
    durable: Lsn,
    /// The records of the blocks so far.
    records: RecordReader,
    /// How much of the log a record may be read from: all, or to a known end.
    end: Option<Tail>,
}

impl<D: Device + 'static> LogReader<D> {
    /// Begins at `start.redo`, which is the beginning of a record or the end of the log. `end` where it is known.
    pub fn new(handle: Handle<D>, start: LogStart, end: Option<Tail>, options: &Options) -> LogReader<D> {
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
            // Where nothing is known to be durable behind the redo point, the block there must follow the last one.
            previous: (first == start.tail).then_some(start.crc),
            durable: Lsn(0),
            records: RecordReader::default(),
            end,
        }
    }

    /// Whether a block follows the place where the reader begins.
    pub async fn continues(&mut self) -> Result<bool, Error> {
        let found = self.look(self.next).await?;
        Ok(found.is_some_and(|(block, ..)| Some(block.previous) == self.previous))
    }

    /// The next record with its place and end, as `read` gives it from place and payload; `None` at the end of the log. Fails
    /// where the log ends before an end that was known.
    pub async fn next<T>(
        &mut self,
        mut read: impl FnMut(Lsn, &[u8]) -> Option<T>,
    ) -> Result<Option<(Lsn, Lsn, T)>, Error> {
        loop {
            if let Some(record) = self.records.next(&mut read) {
                let what = "a record is not what was written there".to_owned();
                return record.map(Some).map_err(|at| Error::LogCorrupt { at, what });
            }
            if !self.block().await? {
                return Ok(None);
            }
        }
    }

    /// Reads one block more. False at the end of the log.
    async fn block(&mut self) -> Result<bool, Error> {
        if self.end.is_some_and(|end| self.next >= end.at) {
            return Ok(false);
        }
        let last = self.previous;
        let follows = |block: &Block| last.is_none_or(|last| last == block.previous);
        let found = self.look(self.next).await?;
        let found = found.filter(|(block, ..)| follows(block) || planted!(self.options, ChainIgnored));
        let Some((block, crc, range)) = found else {
            // Read once more, the log cannot end earlier. What is missing was destroyed since, or is not what the drive gave.
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

    /// The block at a place of the log, its CRC, and where it lies in `piece`; `None` where there is no such block.
    async fn look(&mut self, at: Lsn) -> Result<Option<(Block, u32, Range<usize>)>, Error> {
        let range = self.bytes_at(at).await?;
        let trusting = planted!(self.options, TornLogBlockAccepted);
        let found = Block::read(&self.piece[range.clone()], trusting, self.start.salt);
        Ok(found.filter(|(block, _)| block.at == at).map(|(block, crc)| (block, crc, range)))
    }

    /// Whether the head of a block for this place is there, whatever follows it.
    async fn has_head(&mut self, at: Lsn) -> Result<bool, Error> {
        let range = self.bytes_at(at).await?;
        let head = Block::read(&self.piece[range], true, self.start.salt);
        Ok(head.is_some_and(|(block, _)| block.at == at))
    }

    /// Where the bytes of a place of the log lie in `piece`.
    async fn bytes_at(&mut self, at: Lsn) -> Result<Range<usize>, Error> {
        let len = self.start.block_bytes as usize;
        if at < self.piece_at || at.0 + len as u64 > self.piece_at.0 + self.piece.len() as u64 {
            self.fetch(at).await?;
        }
        let from = (at.0 - self.piece_at.0) as usize;
        Ok(from..from + len)
    }

    /// Takes the piece of the ring from `at` on, and begins to read the one behind it.
    async fn fetch(&mut self, at: Lsn) -> Result<(), Error> {
        let ahead = self.ahead.take().filter(|(begun, ..)| *begun == at);
        let (_, piece, io) = ahead.unwrap_or_else(|| self.read_piece(at));
        let outcome = io.await;
        let behind = Lsn(at.0 + piece.len() as u64);
        // Who looks at the end of a closed store's log needs one piece.
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

    /// Asks the drive for a piece of the ring.
    fn read_piece(&self, at: Lsn) -> (Lsn, Buffer, Io<D>) {
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

    /// Where the log ends, once [`LogReader::next`] has given `None`, and the places behind it that have blocks of the flush that
    /// was cut off, or the heads of such blocks. Fails where something behind the end was durable.
    pub async fn tail(&mut self) -> Result<(Tail, Vec<Lsn>), Error> {
        let mut left_over = Vec::new();
        let end = self.next;
        if self.durable > end || self.start.tail > end {
            return Err(self.lost(self.durable.max(self.start.tail)));
        }
        let block = u64::from(self.start.block_bytes);
        let first = self.start.redo.0 / block * block;
        // The ring has no room for more than one round behind the redo point.
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

    /// The first of some places that has a block of its own.
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

    /// Where the drive has the block at a place of the log, and how many of its pages that are.
    fn block_at(&self, at: Lsn) -> (Lpn, u32) {
        let block = u64::from(self.start.block_bytes);
        let pages = block / u64::from(self.handle.caps().page_bytes);
        (Lpn(self.start.first.0 + at.0 / block % self.start.blocks * pages), pages as u32)
    }
}

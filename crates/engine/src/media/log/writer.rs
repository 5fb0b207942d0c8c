//! Appends records to the log, and flushes the log.
//!
//! `append` only copies a record into memory. A task takes the buffered records, writes their blocks, and
//! flushes the drive. While few commits share a flush, a second flush may be in progress. Records that are
//! appended during a flush are written with the next flush, so commits share flushes automatically (group
//! commit). A commit that can wait lets the task begin later: when as many commits wait as the last flush
//! covered, or when the group window is over. The order in which flushes begin is the order in which they
//! count, whichever ends first, so a crash leaves no gap in the log.

use crate::bytes;
use crate::format::log_block::{Block, HEADER};
use crate::format::log_record::Entry;
use crate::format::page::Salt;
use crate::media::barrier::Barrier;
use crate::wait::{Health, Signal};
use crate::{Error, Lsn, Options};
use fulgurite_base::{Lpn, Nanos, StreamId};
use fulgurite_device::{Arena, Handle, Operation};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The number of bytes of a flush that are written before the next piece is prepared.
const PIECE: usize = 256 << 10;

/// The largest number of log flushes in progress.
const AT_ONCE: usize = 2;

/// The largest number of commits of a flush during which another flush may begin. If more commits share a
/// flush, a second concurrent flush is not worth its cost: it delays other commands of the drive, and its
/// commits can share the next flush.
const FEW: u64 = 4;

/// The largest number of buffered bytes. More bytes are written even if no commit waits for them.
const MOST_GATHERED: usize = 1 << 20;

/// The largest window in bytes. [`crate::media::log`] describes windows.
const LONGEST_WINDOW: u64 = 8 << 20;

/// The position of a log on the drive and in the stream of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogStart {
    /// The device page of the first block.
    pub first: Lpn,
    /// The size of a block in bytes, a multiple of the drive's page size.
    pub block_bytes: u32,
    pub blocks: u64,
    /// The LSN of the next block, which is the end of the durable log.
    pub tail: Lsn,
    /// The CRC of the block before `tail`.
    pub crc: u32,
    pub redo: Lsn,
    /// The salt with which the CRCs of the blocks start.
    pub salt: Salt,
}

impl LogStart {
    /// Returns the window in bytes: this much of a flush is written before it is made durable.
    /// [`crate::media::log`] describes windows.
    pub(crate) fn window(&self) -> u64 {
        let block = u64::from(self.block_bytes);
        (self.blocks / 4).clamp(1, (LONGEST_WINDOW / block).max(1)) * block
    }
}

/// The blocks that no flush has taken yet.
struct Pending {
    /// The LSN of the first of these blocks.
    base: Lsn,
    bytes: Vec<u8>,
    /// The CRC of the block before `base`.
    crc: u32,
    /// The ends of flushes and the CRCs of their last blocks, from the durable end on. A checkpoint stores
    /// the durable end with its CRC, from which recovery continues the chain.
    crcs: VecDeque<(Lsn, u32)>,
}

struct State {
    handle: Handle,
    barrier: Rc<Barrier>,
    health: Health,
    first: Lpn,
    block_bytes: u32,
    blocks: u64,
    window: usize,
    salt: Salt,
    pending: RefCell<Pending>,
    /// The LSN up to which the log is durable. Other shards read it (`memory::decisions`).
    durable: Arc<AtomicU64>,
    redo: Cell<Lsn>,
    /// The flushes in progress, in the order in which they began. A flush that ended before an earlier one
    /// remains.
    flights: RefCell<VecDeque<Flight>>,
    /// The numbers of the free parts of the arena. Each task uses one part.
    idle: RefCell<Vec<usize>>,
    /// Whether a task was spawned that has not taken the buffered records yet.
    beginning: Cell<bool>,
    /// The timers for group commits and for relaxed commits, which say when the buffered records are due.
    timers: [Timer; 2],
    /// The number of group commits that wait for the next flush, and the number that the last flush covered.
    gathered: Cell<u64>,
    last_gathered: Cell<u64>,
    /// The highest LSN that a caller waits for.
    wanted: Cell<Lsn>,
    changed: Signal,
    flushes: Cell<u64>,
    written: Cell<u64>,
    arena: Arc<Arena>,
    options: Options,
}

/// A flush in progress.
struct Flight {
    /// The LSN at which the blocks of the flush end.
    end: Lsn,
    ended: bool,
}

/// A timer: the time when the buffered records are due, and whether a task sleeps until then. The delay of a
/// timer is constant, so later requests are due later.
#[derive(Default)]
struct Timer {
    due: Cell<Option<Nanos>>,
    is_set: Cell<bool>,
}

/// The index of the timer of group commits.
const GROUP: usize = 0;
/// The index of the timer of relaxed commits.
const RELAXED: usize = 1;

/// The log of a store. All clones are the same log.
pub(crate) struct Log(Rc<State>);

impl Clone for Log {
    fn clone(&self) -> Log {
        Log(Rc::clone(&self.0))
    }
}

impl Log {
    /// Creates a log that continues at `start`.
    pub(crate) fn new(
        handle: Handle,
        barrier: Rc<Barrier>,
        health: Health,
        start: LogStart,
        options: &Options,
    ) -> Log {
        let changed = Signal::default();
        health.tell(&changed);
        let arena = Arena::new(AT_ONCE * PIECE.max(start.block_bytes as usize));
        handle.register(&arena);
        let crcs = VecDeque::from([(start.tail, start.crc)]);
        let pending = Pending { base: start.tail, bytes: Vec::new(), crc: start.crc, crcs };
        Log(Rc::new(State {
            handle,
            barrier,
            health,
            first: start.first,
            block_bytes: start.block_bytes,
            blocks: start.blocks,
            window: usize::try_from(start.window()).unwrap_or(usize::MAX),
            salt: start.salt,
            pending: RefCell::new(pending),
            durable: Arc::new(AtomicU64::new(start.tail.0)),
            redo: Cell::new(start.redo),
            flights: RefCell::default(),
            idle: RefCell::new((0..AT_ONCE).collect()),
            beginning: Cell::new(false),
            timers: Default::default(),
            gathered: Cell::new(0),
            last_gathered: Cell::new(0),
            wanted: Cell::new(Lsn(0)),
            changed,
            flushes: Cell::new(0),
            written: Cell::new(0),
            arena,
            options: options.clone(),
        }))
    }

    /// Appends a record to the buffer. Returns the LSNs of the record's beginning and end. The end is the LSN
    /// of the record.
    pub(crate) fn append(&self, entry: &Entry) -> (Lsn, Lsn) {
        let pending = &mut *self.0.pending.borrow_mut();
        let block = self.0.block_bytes as usize;
        if pending.bytes.len().is_multiple_of(block) {
            pending.bytes.resize(pending.bytes.len() + HEADER, 0);
        }
        let start = Lsn(pending.base.0 + pending.bytes.len() as u64);
        let mut record = Vec::new();
        entry.encode(start, &mut record);
        let mut rest = &record[..];
        while !rest.is_empty() {
            if pending.bytes.len().is_multiple_of(block) {
                pending.bytes.resize(pending.bytes.len() + HEADER, 0);
            }
            let room = block - pending.bytes.len() % block;
            let (now, later) = rest.split_at(room.min(rest.len()));
            pending.bytes.extend_from_slice(now);
            rest = later;
        }
        (start, Lsn(pending.base.0 + pending.bytes.len() as u64))
    }

    /// Returns the LSN of the end of the last appended record.
    pub(crate) fn tail(&self) -> Lsn {
        let pending = self.0.pending.borrow();
        Lsn(pending.base.0 + pending.bytes.len() as u64)
    }

    /// Returns the same with the CRC of the last block that a flush has taken.
    pub(crate) fn end(&self) -> (Lsn, u32) {
        (self.tail(), self.0.pending.borrow().crc)
    }

    /// Clears the block at the log's end and the blocks in `left_over`, before anything is appended.
    ///
    /// These blocks belong to an interrupted flush. The next flush may begin with the same bytes, for example
    /// those of the same split. The chain would then continue with the old blocks, and another torn write
    /// might complete one of them. Commits would reappear that the store did not have when it was opened.
    pub(crate) async fn clear(&self, left_over: &[Lsn]) -> Result<(), Error> {
        let block = u64::from(self.0.block_bytes);
        let next = self.0.pending.borrow().base;
        let mut places = std::iter::once(next).chain(left_over.iter().copied()).peekable();
        while let Some(first) = places.next() {
            let mut len = block;
            while len + block <= self.part_bytes() as u64 && places.next_if_eq(&Lsn(first.0 + len)).is_some()
            {
                len += block;
            }
            self.write(0, first, &vec![0; len as usize], false).await?;
        }
        self.0.barrier.flush().await
    }

    /// Returns the LSN up to which the log is durable.
    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.0.durable.load(Relaxed))
    }

    /// Returns the same as a counter that other threads can read.
    pub(crate) fn durable_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.durable)
    }

    /// Returns the number of bytes of log that fit into the ring.
    pub(crate) fn capacity(&self) -> u64 {
        self.0.blocks * u64::from(self.0.block_bytes)
    }

    /// Returns the number of bytes of log after the redo point, including those not yet written.
    pub(crate) fn used(&self) -> u64 {
        let block = u64::from(self.0.block_bytes);
        self.tail().0.next_multiple_of(block) - self.0.redo.get().0 / block * block
    }

    /// Sets the redo point. Log before the redo point may be overwritten.
    pub(crate) fn set_redo(&self, redo: Lsn) {
        self.0.redo.set(redo);
        self.0.changed.notify();
    }

    pub(crate) fn redo(&self) -> Lsn {
        self.0.redo.get()
    }

    /// Returns the end of the durable log, and the CRC of its last block.
    pub(crate) fn durable_end(&self) -> (Lsn, u32) {
        let durable = self.durable();
        let pending = self.0.pending.borrow();
        let known = pending.crcs.iter().find(|(at, _)| *at == durable);
        (durable, known.map_or(pending.crc, |(_, crc)| *crc))
    }

    /// Returns the number of flushes of the log and the number of bytes written to it since the store was
    /// opened.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.0.flushes.get(), self.0.written.get())
    }

    /// Writes the log at once, and waits until it is durable up to `lsn`.
    pub(crate) async fn sync(&self, lsn: Lsn) -> Result<(), Error> {
        if planted!(self.0.options, NoFlushBeforeAcknowledge) {
            self.later(Nanos::ZERO);
            return Ok(());
        }
        self.request(lsn)?;
        self.until_durable(lsn).await
    }

    /// Waits until the log is durable up to `lsn`, as a group commit. The log is written when as many commits
    /// wait as the last flush covered, or after the group window. So a lone commit does not wait for others,
    /// and commits that arrive during a flush share the next flush.
    pub(crate) async fn sync_together(&self, lsn: Lsn) -> Result<(), Error> {
        let state = &self.0;
        if planted!(state.options, NoFlushBeforeAcknowledge) {
            self.later(state.options.group_window);
            return Ok(());
        }
        if self.want(lsn)? {
            state.gathered.set(state.gathered.get() + 1);
            if state.gathered.get() >= state.last_gathered.get() {
                self.begin();
            } else if state.flights.borrow().is_empty() && !state.beginning.get() {
                self.set_timer(GROUP, state.options.group_window);
            }
        }
        self.until_durable(lsn).await
    }

    /// Registers a request to make the log durable up to `lsn`. Returns false if it is durable up to there
    /// already.
    fn want(&self, lsn: Lsn) -> Result<bool, Error> {
        let state = &self.0;
        if self.durable() >= lsn {
            return Ok(false);
        }
        // Stop the store instead of waiting for ever: an LSN that was never appended never becomes durable.
        if lsn > self.tail() {
            return Err(state
                .health
                .stop(format!("a page has changes up to {lsn}, beyond the end of the log")));
        }
        state.wanted.set(state.wanted.get().max(lsn));
        Ok(true)
    }

    /// Begins to make the log durable up to `lsn`, which is not awaited.
    pub(crate) fn request(&self, lsn: Lsn) -> Result<(), Error> {
        if self.want(lsn)? {
            self.begin();
        }
        Ok(())
    }

    async fn until_durable(&self, lsn: Lsn) -> Result<(), Error> {
        let state = &self.0;
        let done = || {
            if let Err(error) = state.health.check() {
                return Some(Err(error));
            }
            (self.durable() >= lsn).then_some(Ok(()))
        };
        state.changed.until(done).await
    }

    /// Writes the buffered records within `delay`, or at once if they are many bytes.
    pub(crate) fn later(&self, delay: Nanos) {
        if self.0.pending.borrow().bytes.len() >= MOST_GATHERED {
            self.write_all();
        } else {
            self.set_timer(RELAXED, delay);
        }
    }

    /// Sets one of the timers, which writes the buffered records within `delay`. The delay of a timer must be
    /// constant.
    fn set_timer(&self, which: usize, delay: Nanos) {
        let timer = &self.0.timers[which];
        if timer.due.get().is_some() {
            return;
        }
        timer.due.set(Some(Nanos(self.0.handle.now().0.saturating_add(delay.0))));
        if timer.is_set.replace(true) {
            return;
        }
        let log = self.clone();
        self.0.handle.spawn(async move {
            let timer = &log.0.timers[which];
            // A flush covers all records that are due. Records that are appended later are due later.
            while let Some(due) = timer.due.get() {
                if log.0.handle.now() >= due {
                    timer.due.set(None);
                    log.write_all();
                } else {
                    log.0.handle.sleep_until(due).await;
                }
            }
            timer.is_set.set(false);
        });
    }

    fn write_all(&self) {
        self.0.wanted.set(self.0.wanted.get().max(self.tail()));
        self.begin();
    }

    /// Whether a flush of the requested records may begin now. A crash may cut off at most one window of the
    /// log.
    fn may_flush(&self) -> bool {
        let state = &self.0;
        let block = u64::from(state.block_bytes);
        let is_wanted = state.wanted.get() > state.pending.borrow().base;
        let cut_off = self.tail().0.next_multiple_of(block) - self.durable().0;
        let few = cut_off <= state.window as u64 && state.last_gathered.get() <= FEW;
        let fits = few || state.flights.borrow().is_empty();
        is_wanted && fits && state.health.check().is_ok()
    }

    /// Spawns a task that writes the buffered records, unless enough such tasks run.
    fn begin(&self) {
        if self.0.beginning.get() || !self.may_flush() {
            return;
        }
        let Some(part) = self.0.idle.borrow_mut().pop() else { return };
        self.0.beginning.set(true);
        let log = self.clone();
        // The task is spawned for all threads, so that threads of waiting commits may execute its commands.
        self.0.handle.spawn_for_all(async move {
            log.0.beginning.set(false);
            while log.may_flush() {
                if let Err(error) = log.flush(part).await {
                    // If the barrier has stopped the store already, the first reason is kept.
                    log.0.health.stop(format!("the log could not be written: {error}"));
                }
                log.0.changed.notify();
            }
            log.0.idle.borrow_mut().push(part);
        });
    }

    /// Writes the buffered records from a part of the arena, and flushes the drive.
    async fn flush(&self, part: usize) -> Result<(), Error> {
        let state = &self.0;
        let (base, bytes) = self.take();
        let end = Lsn(base.0 + bytes.len() as u64);
        state.flights.borrow_mut().push_back(Flight { end, ended: false });
        state.timers.iter().for_each(|timer| timer.due.set(None));
        state.last_gathered.set(state.gathered.take());
        // Callers of `append` check that the ring has space. Check again, because recovery needs the records
        // that would be overwritten.
        let block = u64::from(state.block_bytes);
        if end.0 - state.redo.get().0 / block * block > self.capacity() {
            return Err(state.health.stop("the log is full; with more memory the store needs less log"));
        }
        let mut at = base;
        for window in bytes.chunks(state.window) {
            let mut is_durable = false;
            for piece in window.chunks(self.part_bytes()) {
                is_durable = self.write(part, at, piece, bytes.len() == piece.len()).await?;
                at.0 += piece.len() as u64;
            }
            if !is_durable {
                state.barrier.flush().await?;
            }
        }
        state.flushes.set(state.flushes.get() + 1);
        state.written.set(state.written.get() + bytes.len() as u64);
        self.land(end);
        Ok(())
    }

    /// Marks the flush with this end as ended. The log is durable up to the last flush for which all earlier
    /// flushes have ended too.
    fn land(&self, end: Lsn) {
        let state = &self.0;
        let mut flights = state.flights.borrow_mut();
        flights.iter_mut().filter(|flight| flight.end == end).for_each(|flight| flight.ended = true);
        if planted!(state.options, FlushOutOfOrder) {
            flights.retain(|flight| flight.end > end);
            state.durable.fetch_max(end.0, Release);
        }
        while let Some(landed) = flights.front().filter(|first| first.ended) {
            state.durable.store(landed.end.0, Release);
            flights.pop_front();
        }
        let crcs = &mut state.pending.borrow_mut().crcs;
        while crcs.len() > 1 && crcs.front().is_some_and(|(at, _)| *at < self.durable()) {
            crcs.pop_front();
        }
    }

    /// Returns the size of a part of the arena in bytes.
    fn part_bytes(&self) -> usize {
        self.0.arena.len() / AT_ONCE
    }

    /// Takes the buffered records. Returns them as whole blocks with headers, with the LSN of the first
    /// block.
    fn take(&self) -> (Lsn, Vec<u8>) {
        let pending = &mut *self.0.pending.borrow_mut();
        let block = self.0.block_bytes as usize;
        let (base, mut bytes) = (pending.base, std::mem::take(&mut pending.bytes));
        let end = bytes.len();
        bytes.resize(end.next_multiple_of(block), 0);
        for (index, one) in bytes.chunks_mut(block).enumerate() {
            let used = end.saturating_sub(index * block).min(block).saturating_sub(HEADER);
            let header = Block {
                at: Lsn(base.0 + (index * block) as u64),
                durable: self.durable(),
                previous: pending.crc,
                used: used as u16,
                first: index == 0,
            };
            pending.crc = header.seal(one, self.0.salt);
        }
        pending.base = Lsn(base.0 + bytes.len() as u64);
        let (at, crc) = (pending.base, pending.crc);
        pending.crcs.push_back((at, crc));
        (base, bytes)
    }

    /// Writes whole blocks at an LSN from a part of the arena, in as few commands as the ring and the drive
    /// allow. If `alone` is true, the blocks are a whole flush. If they also fit into one command, that
    /// command is a durable write if the drive supports such writes. Returns whether the blocks are durable.
    async fn write(&self, part: usize, at: Lsn, bytes: &[u8], alone: bool) -> Result<bool, Error> {
        let state = &self.0;
        let caps = state.handle.caps();
        let buffer = state.arena.buffer(part * self.part_bytes(), bytes.len());
        bytes::fill(&buffer, bytes);
        let (page, block) = (caps.page_bytes as usize, state.block_bytes as usize);
        let longest = (caps.pages_per_command as usize * page / block).max(1) * block;
        let mut operations = Vec::new();
        let (mut from, mut is_durable) = (0, false);
        while from < bytes.len() {
            let index = (at.0 + from as u64) / block as u64 % state.blocks;
            // No command crosses the end of the ring.
            let to_end = (state.blocks - index) as usize * block;
            let len = longest.min(to_end).min(bytes.len() - from);
            let lpn = Lpn(state.first.0 + index * (block / page) as u64);
            let part = buffer.part(from, len);
            let pages = (len / page) as u32;
            let durable = alone && caps.durable_writes && len == bytes.len();
            let stream = StreamId::default();
            operations.push(Operation::Write { lpn, pages, from: Some(part), stream, durable });
            is_durable = durable;
            from += len;
        }
        state.handle.submit_all(operations.into_iter()).await.map_err(Error::Io)?;
        Ok(is_durable)
    }
}

//! Appending to the log, and bringing it to the drive.
//!
//! `append` only copies into memory. A task takes what has gathered, writes its blocks, and has the drive flush; what
//! gathers meanwhile goes with the next flush. So commits share flushes by themselves (group commit). A commit that can
//! wait lets the task begin later: when as many have come as the last flush took, or when its window is over.

use super::block::{Block, HEADER};
use super::record::Entry;
use crate::barrier::Barrier;
use crate::page::Salt;
use crate::wait::{Health, Signal};
use crate::{Error, Lsn, Options, memory};
use fulgurite_base::{Lpn, Nanos, StreamId};
use fulgurite_device::{Arena, Device, Handle, Operation};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of a flush that are written before the next piece is prepared.
const PIECE: usize = 256 << 10;

/// Bytes that gather before they are written although nobody waits for them.
const MOST_GATHERED: usize = 1 << 20;

/// Bytes of a flush that are on their way at once at most, in a large log.
const LONGEST_WINDOW: u64 = 8 << 20;

/// Where a log lies and where it goes on.
#[derive(Clone, Copy, Debug)]
pub struct LogStart {
    /// The drive's page of the first block.
    pub first: Lpn,
    /// Bytes in a block: a multiple of the drive's page.
    pub block_bytes: u32,
    /// Blocks in the ring.
    pub blocks: u64,
    /// Where the next block goes.
    pub tail: Lsn,
    /// CRC of the block before it.
    pub crc: u32,
    /// What recovery would begin with.
    pub redo: Lsn,
    /// What the CRCs of the blocks begin with.
    pub salt: Salt,
}

impl LogStart {
    /// Bytes of a flush that are on their way at once at most; see [`crate::log`].
    pub fn window(&self) -> u64 {
        let block = u64::from(self.block_bytes);
        (self.blocks / 4).clamp(1, (LONGEST_WINDOW / block).max(1)) * block
    }
}

/// Blocks that are not on the drive yet.
struct Pending {
    /// Where the first of them lies in the log.
    base: Lsn,
    bytes: Vec<u8>,
    /// CRC of the block before.
    crc: u32,
    /// How far the log is on the drive and flushed, by block, to restart the chain at a checkpoint.
    crcs: VecDeque<(Lsn, u32)>,
}

struct State<D> {
    handle: Handle<D>,
    barrier: Rc<Barrier<D>>,
    health: Health,
    first: Lpn,
    block_bytes: u32,
    blocks: u64,
    window: usize,
    salt: Salt,
    pending: RefCell<Pending>,
    durable: Cell<Lsn>,
    redo: Cell<Lsn>,
    /// Whether a task writes.
    writing: Cell<bool>,
    /// When what has gathered is to be written, for commits that others may join, and for those that wait for nobody.
    timers: [Timer; 2],
    /// Commits that others may join: those that wait for the next flush, and those that the last one took.
    gathered: Cell<u64>,
    last_gathered: Cell<u64>,
    /// Somebody waits for a flush.
    wanted: Cell<Lsn>,
    changed: Signal,
    flushes: Cell<u64>,
    written: Cell<u64>,
    arena: Arc<Arena>,
    options: Options,
}

/// When something is due, and whether a task sleeps until then. What comes later is due later.
#[derive(Default)]
struct Timer {
    due: Cell<Option<Nanos>>,
    is_set: Cell<bool>,
}

/// Commits that others may join.
const GROUP: usize = 0;
/// Commits that wait for nobody.
const RELAXED: usize = 1;

/// The log of a store. Clones share it.
pub struct Log<D>(Rc<State<D>>);

impl<D> Clone for Log<D> {
    fn clone(&self) -> Log<D> {
        Log(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> Log<D> {
    /// A log that goes on at `start`.
    pub fn new(
        handle: Handle<D>,
        barrier: Rc<Barrier<D>>,
        health: Health,
        start: LogStart,
        options: &Options,
    ) -> Log<D> {
        let changed = Signal::default();
        health.tell(&changed);
        let arena = Arena::new(PIECE.max(start.block_bytes as usize));
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
            durable: Cell::new(start.tail),
            redo: Cell::new(start.redo),
            writing: Cell::new(false),
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

    /// Appends a record. Returns where it begins and where it ends; the end is its LSN.
    pub fn append(&self, entry: &Entry) -> (Lsn, Lsn) {
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

    /// The end of the last record.
    pub fn tail(&self) -> Lsn {
        let pending = self.0.pending.borrow();
        Lsn(pending.base.0 + pending.bytes.len() as u64)
    }

    /// Makes the place of the next block empty, and those of blocks that recovery has left out, before anything is appended.
    ///
    /// What is there is of a flush that was cut off. The next flush may begin with the same bytes, say of the same split, so that
    /// the chain leads on to them; and a write that is cut off as well may make a block of them whole. With them would come
    /// commits that the store had already been opened without.
    pub async fn clear(&self, left_over: &[Lsn]) -> Result<(), Error> {
        let block = u64::from(self.0.block_bytes);
        let next = self.0.pending.borrow().base;
        let mut places = std::iter::once(next).chain(left_over.iter().copied()).peekable();
        while let Some(first) = places.next() {
            let mut len = block;
            while len + block <= self.0.arena.len() as u64 && places.next_if_eq(&Lsn(first.0 + len)).is_some()
            {
                len += block;
            }
            self.write(first, &vec![0; len as usize]).await?;
        }
        self.0.barrier.flush().await
    }

    /// The log is durable up to here.
    pub fn durable(&self) -> Lsn {
        self.0.durable.get()
    }

    /// Bytes of log that fit into the ring.
    pub fn capacity(&self) -> u64 {
        self.0.blocks * u64::from(self.0.block_bytes)
    }

    /// Bytes of log that recovery would read, those not yet written among them.
    pub fn used(&self) -> u64 {
        let block = u64::from(self.0.block_bytes);
        self.tail().0.next_multiple_of(block) - self.0.redo.get().0 / block * block
    }

    /// What recovery begins with: everything before may be overwritten from now on.
    pub fn set_redo(&self, redo: Lsn) {
        self.0.redo.set(redo);
        self.0.changed.notify();
    }

    /// The place that recovery begins with.
    pub fn redo(&self) -> Lsn {
        self.0.redo.get()
    }

    /// Where the durable log ends, and the CRC of its last block.
    pub fn durable_end(&self) -> (Lsn, u32) {
        let durable = self.0.durable.get();
        let pending = self.0.pending.borrow();
        let known = pending.crcs.iter().find(|(at, _)| *at == durable);
        (durable, known.map_or(pending.crc, |(_, crc)| *crc))
    }

    /// Flushes of the log, and bytes written to it, since the store was opened.
    pub fn counters(&self) -> (u64, u64) {
        (self.0.flushes.get(), self.0.written.get())
    }

    /// Waits until the log is durable up to `lsn`. It is written at once.
    pub async fn sync(&self, lsn: Lsn) -> Result<(), Error> {
        if planted!(self.0.options, NoFlushBeforeAcknowledge) {
            self.later(Nanos::ZERO);
            return Ok(());
        }
        if self.want(lsn)? {
            self.begin();
        }
        self.until_durable(lsn).await
    }

    /// Waits until the log is durable up to `lsn`. Others may join: it is written when as many wait as the last flush took, or
    /// after the group window. So who is alone does not wait for anybody, and who comes while the log is written shares the next flush.
    pub async fn sync_together(&self, lsn: Lsn) -> Result<(), Error> {
        let state = &self.0;
        if planted!(state.options, NoFlushBeforeAcknowledge) {
            self.later(state.options.group_window);
            return Ok(());
        }
        if self.want(lsn)? {
            state.gathered.set(state.gathered.get() + 1);
            if state.gathered.get() >= state.last_gathered.get() {
                self.begin();
            } else if !state.writing.get() {
                self.set_timer(GROUP, state.options.group_window);
            }
        }
        self.until_durable(lsn).await
    }

    /// Notes that somebody waits for `lsn`. False where it is durable already.
    fn want(&self, lsn: Lsn) -> Result<bool, Error> {
        let state = &self.0;
        if state.durable.get() >= lsn {
            return Ok(false);
        }
        // What was never appended never becomes durable: nobody may wait for it.
        if lsn > self.tail() {
            return Err(state
                .health
                .stop(format!("something has changes up to {lsn}, which the log does not have")));
        }
        state.wanted.set(state.wanted.get().max(lsn));
        Ok(true)
    }

    async fn until_durable(&self, lsn: Lsn) -> Result<(), Error> {
        let state = &self.0;
        let done = || {
            if let Err(error) = state.health.check() {
                return Some(Err(error));
            }
            (state.durable.get() >= lsn).then_some(Ok(()))
        };
        state.changed.until(done).await
    }

    /// Has what was appended written within `delay`, or as soon as it is much.
    pub fn later(&self, delay: Nanos) {
        if self.0.pending.borrow().bytes.len() >= MOST_GATHERED {
            self.write_all();
        } else {
            self.set_timer(RELAXED, delay);
        }
    }

    /// Has what was appended written within `delay`, which is the same for each use of a timer.
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
            // A flush takes along what is due, and what gathers behind it is due later.
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

    /// Has everything written that was appended.
    fn write_all(&self) {
        self.0.wanted.set(self.0.wanted.get().max(self.tail()));
        self.begin();
    }

    /// Begins to write unless a task does already.
    fn begin(&self) {
        if self.0.writing.replace(true) {
            return;
        }
        let log = self.clone();
        // Those who wait for it may carry its commands out.
        self.0.handle.spawn_for_all(async move {
            while log.0.wanted.get() > log.0.durable.get() && log.0.health.check().is_ok() {
                if let Err(error) = log.flush().await {
                    // The barrier may have stopped the store already; then its reason stays.
                    log.0.health.stop(format!("the log could not be written: {error}"));
                }
                log.0.changed.notify();
            }
            log.0.writing.set(false);
            log.0.changed.notify();
        });
    }

    /// Writes what has gathered and waits for the drive's flush.
    async fn flush(&self) -> Result<(), Error> {
        let (base, bytes) = self.take();
        self.0.timers.iter().for_each(|timer| timer.due.set(None));
        self.0.last_gathered.set(self.0.gathered.take());
        if bytes.is_empty() {
            return Ok(());
        }
        // Whoever appends has seen to it that there is room. Should that ever be wrong, nothing that recovery needs is written over.
        let block = u64::from(self.0.block_bytes);
        if base.0 + bytes.len() as u64 - self.0.redo.get().0 / block * block > self.capacity() {
            return Err(self
                .0
                .health
                .stop("the log is full; a store that is opened with more memory needs less of it"));
        }
        let mut at = base;
        for window in bytes.chunks(self.0.window) {
            for piece in window.chunks(self.0.arena.len()) {
                self.write(at, piece).await?;
                at.0 += piece.len() as u64;
            }
            self.0.barrier.flush().await?;
        }
        self.0.flushes.set(self.0.flushes.get() + 1);
        self.0.written.set(self.0.written.get() + bytes.len() as u64);
        self.0.durable.set(Lsn(base.0 + bytes.len() as u64));
        let crcs = &mut self.0.pending.borrow_mut().crcs;
        while crcs.len() > 1 && crcs.front().is_some_and(|(at, _)| *at < self.0.durable.get()) {
            crcs.pop_front();
        }
        Ok(())
    }

    /// What has gathered, as whole blocks with their headers.
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
                durable: self.0.durable.get(),
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

    /// Writes whole blocks at a place of the log, in as few commands as the ring and the drive allow.
    async fn write(&self, at: Lsn, bytes: &[u8]) -> Result<(), Error> {
        let state = &self.0;
        let caps = state.handle.caps();
        let buffer = state.arena.buffer(0, bytes.len());
        memory::fill(&buffer, bytes);
        let (page, block) = (caps.page_bytes as usize, state.block_bytes as usize);
        let longest = (caps.pages_per_command as usize * page / block).max(1) * block;
        let mut operations = Vec::new();
        let mut from = 0;
        while from < bytes.len() {
            let index = (at.0 + from as u64) / block as u64 % state.blocks;
            // A command ends where the ring does.
            let to_end = (state.blocks - index) as usize * block;
            let len = longest.min(to_end).min(bytes.len() - from);
            let lpn = Lpn(state.first.0 + index * (block / page) as u64);
            let part = buffer.part(from, len);
            let pages = (len / page) as u32;
            operations.push(Operation::Write { lpn, pages, from: Some(part), stream: StreamId::default() });
            from += len;
        }
        state.handle.submit_all(operations.into_iter()).await.map_err(Error::Io)
    }
}

//! The durable state of a store: the superblock, the log, and the pages behind the pool.

use crate::format::layout::Superblock;
use crate::media::barrier::Barrier;
use crate::media::log::Log;
use crate::media::write::Pages;
use crate::{Error, Lsn};
use fulgurite_pool::BufferPool;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

/// The durable state of a store, and the pool through which its pages are read and written.
pub(crate) struct Durable {
    superblock: RefCell<Superblock>,
    barrier: Rc<Barrier>,
    log: Log,
    pages: Pages,
    pool: BufferPool,
    unredone: Cell<Option<Lsn>>,
    next_large: Cell<u64>,
    last_structure: Cell<Lsn>,
}

impl Durable {
    /// Creates the state of a store whose log ends at `tail`. `next_large` is the number of the next large
    /// value.
    pub(crate) fn new(
        superblock: Superblock,
        barrier: Rc<Barrier>,
        (log, pages, pool): (Log, Pages, BufferPool),
        next_large: u64,
        tail: Lsn,
    ) -> Durable {
        Durable {
            superblock: RefCell::new(superblock),
            barrier,
            log,
            pages,
            pool,
            unredone: Cell::new(None),
            next_large: Cell::new(next_large),
            // Recovery has redone every earlier change, so no earlier structure change is of interest.
            last_structure: Cell::new(tail),
        }
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the pages on the drive, with their protection against torn writes.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Returns the buffer pool.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// Returns the superblock that was written last.
    pub(crate) fn superblock(&self) -> Ref<'_, Superblock> {
        self.superblock.borrow()
    }

    /// Records that `written` is the superblock on the drive now. Returns the previous one.
    pub(crate) fn replace_superblock(&self, written: Superblock) -> Superblock {
        self.superblock.replace(written)
    }

    /// Flushes the drive.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.barrier.flush().await
    }

    /// Returns the number of flushes of the drive since the store was opened.
    pub(crate) fn flushes(&self) -> u64 {
        self.barrier.flushes()
    }

    /// Returns the LSN from which recovery has yet to redo operations; `None` after recovery.
    pub(crate) fn unredone(&self) -> Option<Lsn> {
        self.unredone.get()
    }

    /// Records the LSN up to which recovery has redone operations; `None` at the end of recovery.
    pub(crate) fn set_unredone(&self, from: Option<Lsn>) {
        self.unredone.set(from);
    }

    /// Returns the number of the next large value.
    pub(crate) fn next_large(&self) -> u64 {
        self.next_large.get()
    }

    /// Returns the number for a new large value.
    pub(crate) fn take_large_number(&self) -> u64 {
        self.take_large_numbers(1)
    }

    /// Returns the first of `count` successive numbers for new large values.
    pub(crate) fn take_large_numbers(&self, count: u64) -> u64 {
        self.next_large.replace(self.next_large.get() + count)
    }

    /// Whether the store has ever had a large value.
    pub(crate) fn has_had_large_values(&self) -> bool {
        self.next_large.get() > 1
    }

    /// Returns the LSN at which the log record of the last structure change ends.
    pub(crate) fn last_structure(&self) -> Lsn {
        self.last_structure.get()
    }

    /// Records that the log record of the last structure change ends at `lsn`.
    pub(crate) fn set_last_structure(&self, lsn: Lsn) {
        self.last_structure.set(lsn);
    }
}

//! The durable side of a store: the superblock, the log, and the pages behind the pool.

use crate::format::layout::Superblock;
use crate::media::barrier::Barrier;
use crate::media::log::Log;
use crate::media::write::Pages;
use crate::{Error, Lsn};
use fulgurite_device::Device;
use fulgurite_pool::BufferPool;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

/// The superblock, the log, the pages and the pool.
pub(crate) struct Durable<D: Device + 'static> {
    superblock: RefCell<Superblock>,
    barrier: Rc<Barrier<D>>,
    log: Log<D>,
    pages: Pages<D>,
    pool: BufferPool<D>,
    unredone: Cell<Option<Lsn>>,
    next_large: Cell<u64>,
    last_structure: Cell<Lsn>,
}

impl<D: Device + 'static> Durable<D> {
    /// The parts of a store whose log ends at `tail`. `next_large` is the number of the next large value.
    pub(crate) fn new(
        superblock: Superblock,
        barrier: Rc<Barrier<D>>,
        (log, pages, pool): (Log<D>, Pages<D>, BufferPool<D>),
        next_large: u64,
        tail: Lsn,
    ) -> Durable<D> {
        Durable {
            superblock: RefCell::new(superblock),
            barrier,
            log,
            pages,
            pool,
            unredone: Cell::new(None),
            next_large: Cell::new(next_large),
            // Recovery has redone every earlier change.
            last_structure: Cell::new(tail),
        }
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log<D> {
        &self.log
    }

    /// The pages on the drive, with their protection.
    pub(crate) fn pages(&self) -> &Pages<D> {
        &self.pages
    }

    /// The pages in memory.
    pub(crate) fn pool(&self) -> &BufferPool<D> {
        &self.pool
    }

    /// The superblock that was written last.
    pub(crate) fn superblock(&self) -> Ref<'_, Superblock> {
        self.superblock.borrow()
    }

    /// Notes that a superblock was written. Returns the one before.
    pub(crate) fn replace_superblock(&self, written: Superblock) -> Superblock {
        self.superblock.replace(written)
    }

    /// Has the drive flush.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.barrier.flush().await
    }

    /// Flushes of the drive since the store was opened.
    pub(crate) fn flushes(&self) -> u64 {
        self.barrier.flushes()
    }

    /// The place in the log from which recovery has yet to redo operations.
    pub(crate) fn unredone(&self) -> Option<Lsn> {
        self.unredone.get()
    }

    /// Notes how far recovery has redone operations; `None` at its end.
    pub(crate) fn set_unredone(&self, from: Option<Lsn>) {
        self.unredone.set(from);
    }

    /// The number of the next large value.
    pub(crate) fn next_large(&self) -> u64 {
        self.next_large.get()
    }

    /// Takes the number of a new large value.
    pub(crate) fn take_large_number(&self) -> u64 {
        self.next_large.replace(self.next_large.get() + 1)
    }

    /// Whether the store has ever had a large value.
    pub(crate) fn has_had_large_values(&self) -> bool {
        self.next_large.get() > 1
    }

    /// The end of the log record of the last structure change.
    pub(crate) fn last_structure(&self) -> Lsn {
        self.last_structure.get()
    }

    /// Notes a structure change.
    pub(crate) fn set_last_structure(&self, lsn: Lsn) {
        self.last_structure.set(lsn);
    }
}

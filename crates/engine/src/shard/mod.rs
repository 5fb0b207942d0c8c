//! A store as its parts see it: one core, one drive, one pool, one log.

mod pages;
mod locking;
pub mod tree;
mod records;
pub mod commit;
mod checkpoint_notes;
mod checkpoint;
pub mod recovery;

use crate::format::layout::Superblock;
use crate::format::tree::Tree;
use crate::media::barrier::Barrier;
use crate::media::log::Log;
use crate::media::write::Pages;
use crate::memory::backup_watch::BackupWatch;
use crate::memory::catalogue::Catalogue;
use crate::memory::checkpoint_notes::CheckpointNotes;
use crate::memory::commits::Commits;
use crate::memory::locks::{Locks, TxnId};
use crate::memory::record_cache::RecordCache;
use crate::memory::space::Space;
use crate::memory::versions::Versions;
use crate::wait::{Health, Signal, Turns};
use crate::{Error, Lsn, Options};
use fulgurite_base::PageId;
use fulgurite_device::{Device, Handle};
use fulgurite_pool::BufferPool;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

/// A waiting request for a lock.
pub struct LockWait {
    /// What has become of it: granted, or given up to end a deadlock.
    pub answer: Cell<Option<Result<(), Error>>>,
    /// Whom to wake when there is an answer.
    pub waker: RefCell<Option<Waker>>,
}

/// Counts of what a store has done since it was opened.
#[derive(Default)]
pub struct Counters {
    pub commits: Cell<u64>,
    pub aborts: Cell<u64>,
    pub deadlocks: Cell<u64>,
    pub user_bytes: Cell<u64>,
    pub checkpoints: Cell<u64>,
    pub recovered_ops: Cell<u64>,
    pub restored_pages: Cell<u64>,
}

/// A store.
pub struct Shard<D: Device + 'static> {
    pub handle: Handle<D>,
    pub options: Options,
    pub superblock: RefCell<Superblock>,
    pub health: Health,
    pub barrier: Rc<Barrier<D>>,
    pub log: Log<D>,
    pub pages: Pages<D>,
    pub pool: BufferPool<D>,
    pub frames: u32,
    pub space: Space,
    pub catalogue: RefCell<Catalogue>,
    /// By tree: the records of the leaf that was scanned last.
    pub scanned: RefCell<FxHashMap<u32, usize>>,
    /// One change of a structure at a time.
    pub structure: Turns,
    /// Pages that the log's images of them lack something of.
    pub stored: RefCell<CheckpointNotes>,
    /// The last change of a structure.
    pub last_structure: Cell<Lsn>,
    pub splits: Cell<u64>,
    pub merges: Cell<u64>,
    /// Records in memory by themselves.
    pub records: RefCell<RecordCache>,
    /// Entries of it go, in a task of its own.
    pub evicting: Cell<bool>,
    /// Frames for it are borrowed, in a task of its own.
    pub borrowing: Cell<bool>,
    pub versions: RefCell<Versions>,
    pub commits: RefCell<Commits>,
    /// More is visible, or the store has stopped.
    pub visible: Signal,
    pub locks: RefCell<Locks>,
    pub lock_waits: RefCell<FxHashMap<TxnId, Rc<LockWait>>>,
    pub next_txn: Cell<u64>,
    pub next_large: Cell<u64>,
    /// Bytes of log that commits under way may still need.
    pub promised_log: Cell<u64>,
    /// Room in the log, or a promise, was given back.
    pub room: Signal,
    pub checkpointing: Cell<bool>,
    /// Commits that were applied, or given up with what was promised to them.
    pub ended: Cell<u64>,
    /// The goal of the last checkpoint, if it could not move the redo point, and [`Shard::progress`] when it began.
    pub vain_checkpoint: Cell<Option<(Lsn, u64)>>,
    pub checkpoint_turn: Turns,
    /// Recovery has not done the log again from here on.
    pub unread: Cell<Option<Lsn>>,
    /// What a backup under way wants to know.
    pub watch: RefCell<Option<BackupWatch>>,
    pub backup_turn: Turns,
    pub closed: Cell<bool>,
    pub counters: Counters,
}

/// Adds to a counter.
pub fn count(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

impl<D: Device + 'static> Shard<D> {
    /// Records that a leaf of the tree has, as far as scans have seen.
    pub fn records_of_a_leaf(&self, tree: Tree) -> Option<usize> {
        self.scanned.borrow().get(&tree.id).copied()
    }

    /// Notes how many records a scan has found in a leaf of the tree.
    pub fn note_records_of_a_leaf(&self, tree: Tree, records: usize) {
        self.scanned.borrow_mut().insert(tree.id, records);
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> u32 {
        self.superblock.borrow().page_bytes
    }

    /// A tree by its number.
    pub fn tree(&self, id: u32) -> Result<Tree, Error> {
        self.catalogue.borrow().tree(id).ok_or_else(|| Error::LogCorrupt {
            at: self.log.durable(),
            what: format!("it names tree {id}, which does not exist"),
        })
    }

    /// Fails once the store has stopped or was closed.
    pub fn check_open(&self) -> Result<(), Error> {
        self.health.check()?;
        if self.closed.get() { Err(Error::Closed) } else { Ok(()) }
    }

    /// A page is changed, as the log says from `since` on.
    pub fn mark(&self, page: PageId, since: Lsn) {
        self.pages.mark(page, since);
        if let Some(watch) = &mut *self.watch.borrow_mut() {
            watch.touch(page);
        }
    }

    /// The newest visible state.
    pub fn visible_lsn(&self) -> Lsn {
        self.commits.borrow().visible()
    }

    /// Moves on what is visible as far as it goes.
    pub fn advance(&self) {
        let bug = planted!(self.options, UndurableVisible | NoFlushBeforeAcknowledge);
        let durable = if bug { Lsn(u64::MAX) } else { self.log.durable() };
        let moved = self.commits.borrow_mut().advance(durable);
        if moved {
            let visible = self.visible_lsn();
            self.versions.borrow_mut().trim(visible);
            self.visible.notify();
        }
    }

    /// Waits until everything up to `lsn` is visible.
    pub async fn until_visible(&self, lsn: Lsn) -> Result<(), Error> {
        let done = || {
            if self.visible_lsn() >= lsn {
                return Some(Ok(()));
            }
            self.health.check().err().map(Err)
        };
        self.visible.until(done).await
    }
}

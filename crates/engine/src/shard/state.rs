//! The state of a store in memory: free pages, names, cached records, old versions, and notes for checkpoints
//! and backups.

use crate::format::layout::Superblock;
use crate::format::tree::Tree;
use crate::memory::backup_watch::BackupWatch;
use crate::memory::catalogue::Catalogue;
use crate::memory::checkpoint_notes::CheckpointNotes;
use crate::memory::record_cache::RecordCache;
use crate::memory::space::Space;
use crate::memory::versions::Versions;
use rustc_hash::FxHashMap;
use std::cell::{Ref, RefCell, RefMut};

/// The state in memory.
pub(crate) struct State {
    frames: u32,
    space: Space,
    catalogue: RefCell<Catalogue>,
    records: RefCell<RecordCache>,
    versions: RefCell<Versions>,
    notes: RefCell<CheckpointNotes>,
    backup: RefCell<Option<BackupWatch>>,
    /// By tree: the records of the leaf that was scanned last.
    leaf_records: RefCell<FxHashMap<u32, usize>>,
}

impl State {
    /// The state of a store with this superblock. The pool has `frames`, and old versions have `version_bytes`.
    pub(crate) fn new(
        superblock: &Superblock,
        frames: u32,
        records: RecordCache,
        version_bytes: u64,
    ) -> State {
        let catalogue = Catalogue::new(superblock.catalogue_root(), superblock.large_root());
        State {
            frames,
            space: Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes),
            catalogue: RefCell::new(catalogue),
            records: RefCell::new(records),
            versions: RefCell::new(Versions::new(version_bytes)),
            notes: RefCell::default(),
            backup: RefCell::default(),
            leaf_records: RefCell::default(),
        }
    }

    /// Frames of the pool.
    pub(crate) fn frames(&self) -> u32 {
        self.frames
    }

    /// The free pages.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The tables and indexes.
    pub(crate) fn catalogue(&self) -> Ref<'_, Catalogue> {
        self.catalogue.borrow()
    }

    /// The tables and indexes, to change.
    pub(crate) fn catalogue_mut(&self) -> RefMut<'_, Catalogue> {
        self.catalogue.borrow_mut()
    }

    /// The record cache.
    pub(crate) fn records(&self) -> Ref<'_, RecordCache> {
        self.records.borrow()
    }

    /// The record cache, to change.
    pub(crate) fn records_mut(&self) -> RefMut<'_, RecordCache> {
        self.records.borrow_mut()
    }

    /// The old versions that readers may need.
    pub(crate) fn versions(&self) -> Ref<'_, Versions> {
        self.versions.borrow()
    }

    /// The old versions, to change.
    pub(crate) fn versions_mut(&self) -> RefMut<'_, Versions> {
        self.versions.borrow_mut()
    }

    /// The pages whose image in the log is incomplete, to change.
    pub(crate) fn notes_mut(&self) -> RefMut<'_, CheckpointNotes> {
        self.notes.borrow_mut()
    }

    /// Records in a leaf of the tree, as far as scans have seen.
    pub(crate) fn leaf_records(&self, tree: Tree) -> Option<usize> {
        self.leaf_records.borrow().get(&tree.id).copied()
    }

    /// Notes how many records a scan has found in a leaf of the tree.
    pub(crate) fn note_leaf_records(&self, tree: Tree, records: usize) {
        self.leaf_records.borrow_mut().insert(tree.id, records);
    }

    /// Begins to watch pages for a backup.
    pub(crate) fn begin_backup(&self) {
        *self.backup.borrow_mut() = Some(BackupWatch::default());
    }

    /// Ends the watch.
    pub(crate) fn end_backup(&self) {
        *self.backup.borrow_mut() = None;
    }

    /// Whether a backup is under way.
    pub(crate) fn is_backup_running(&self) -> bool {
        self.backup.borrow().is_some()
    }

    /// Changes the notes of a backup under way; `None` if there is none.
    pub(crate) fn with_backup<T>(&self, change: impl FnOnce(&mut BackupWatch) -> T) -> Option<T> {
        self.backup.borrow_mut().as_mut().map(change)
    }
}

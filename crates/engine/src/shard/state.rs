//! The state of a store in memory: free pages, the catalogue, cached records, old versions, and the
//! bookkeeping of checkpoints and backups.

use crate::format::layout::Superblock;
use crate::format::tree::Tree;
use crate::memory::backup_watch::BackupWatch;
use crate::memory::catalogue::Catalogue;
use crate::memory::checkpoint_notes::CheckpointNotes;
use crate::memory::record_cache::RecordCache;
use crate::memory::space::Space;
use crate::memory::versions::Versions;
use rustc_hash::FxHashMap;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;

/// The state of a store in memory.
pub(crate) struct State {
    frames: u32,
    space: Space,
    catalogue: RefCell<Catalogue>,
    records: RefCell<RecordCache>,
    versions: RefCell<Versions>,
    notes: RefCell<CheckpointNotes>,
    backup: RefCell<Option<BackupWatch>>,
    /// The number of records in the leaf that was scanned last, by tree.
    leaf_records: RefCell<FxHashMap<u32, usize>>,
    /// Leaves that could not be merged with a neighbour because the log had no room: their trees, and a key of
    /// each.
    sparse: RefCell<BTreeMap<(u32, Vec<u8>), Tree>>,
    /// The number of bytes of the keys in `sparse`.
    sparse_bytes: Cell<usize>,
    /// The marks of the large values that transactions and bulk loads in progress have stored: the first number
    /// of each, and the number behind its last.
    staged: RefCell<BTreeMap<u64, u64>>,
    /// Whether large values may have marks that the task that deletes them has not seen.
    has_marks: Cell<bool>,
}

/// The most bytes of memory for leaves that are remembered for a merge, and those of each beside its key.
const SPARSE_BYTES_AT_MOST: usize = 2 << 20;
const SPARSE_BYTES: usize = 64;

impl State {
    /// Creates the state of a store with this superblock. The pool has `frames` frames, and old versions may
    /// take `version_bytes` bytes.
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
            sparse: RefCell::default(),
            sparse_bytes: Cell::new(0),
            staged: RefCell::default(),
            has_marks: Cell::new(false),
        }
    }

    /// Returns the number of frames of the pool.
    pub(crate) fn frames(&self) -> u32 {
        self.frames
    }

    /// Returns the free-space management.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Remembers a leaf that should be merged with a neighbour once the log has room.
    pub(crate) fn remember_sparse(&self, tree: Tree, key: Vec<u8>) {
        let bytes = self.sparse_bytes.get() + key.len() + SPARSE_BYTES;
        if bytes <= SPARSE_BYTES_AT_MOST && self.sparse.borrow_mut().insert((tree.id, key), tree).is_none() {
            self.sparse_bytes.set(bytes);
        }
    }

    /// Takes the first leaf that was remembered, in the order of the keys, so that neighbours follow each other.
    pub(crate) fn take_sparse(&self) -> Option<(Tree, Vec<u8>)> {
        let ((_, key), tree) = self.sparse.borrow_mut().pop_first()?;
        self.sparse_bytes.set(self.sparse_bytes.get() - key.len() - SPARSE_BYTES);
        Some((tree, key))
    }

    /// Borrows the marks of the large values that transactions and bulk loads in progress have stored, to change
    /// them.
    pub(crate) fn staged_mut(&self) -> RefMut<'_, BTreeMap<u64, u64>> {
        self.staged.borrow_mut()
    }

    /// Sets whether large values may have marks to look at. Returns what held before.
    pub(crate) fn set_has_marks(&self, has: bool) -> bool {
        self.has_marks.replace(has)
    }

    /// Borrows the catalogue of tables and indexes.
    pub(crate) fn catalogue(&self) -> Ref<'_, Catalogue> {
        self.catalogue.borrow()
    }

    /// Borrows the catalogue of tables and indexes, to change it.
    pub(crate) fn catalogue_mut(&self) -> RefMut<'_, Catalogue> {
        self.catalogue.borrow_mut()
    }

    /// Borrows the record cache.
    pub(crate) fn records(&self) -> Ref<'_, RecordCache> {
        self.records.borrow()
    }

    /// Borrows the record cache, to change it.
    pub(crate) fn records_mut(&self) -> RefMut<'_, RecordCache> {
        self.records.borrow_mut()
    }

    /// Borrows the old versions that readers may need.
    pub(crate) fn versions(&self) -> Ref<'_, Versions> {
        self.versions.borrow()
    }

    /// Borrows the old versions, to change them.
    pub(crate) fn versions_mut(&self) -> RefMut<'_, Versions> {
        self.versions.borrow_mut()
    }

    /// Borrows the list of pages whose image in the log is incomplete, to change it.
    pub(crate) fn notes_mut(&self) -> RefMut<'_, CheckpointNotes> {
        self.notes.borrow_mut()
    }

    /// Returns the number of records in the leaf of a tree that was scanned last; `None` before the first
    /// scan.
    pub(crate) fn leaf_records(&self, tree: Tree) -> Option<usize> {
        self.leaf_records.borrow().get(&tree.id).copied()
    }

    /// Records how many records a scan has found in a leaf of the tree.
    pub(crate) fn note_leaf_records(&self, tree: Tree, records: usize) {
        self.leaf_records.borrow_mut().insert(tree.id, records);
    }

    /// Begins to record the pages that change during a backup.
    pub(crate) fn begin_backup(&self) {
        *self.backup.borrow_mut() = Some(BackupWatch::default());
    }

    /// Ends the recording for a backup.
    pub(crate) fn end_backup(&self) {
        *self.backup.borrow_mut() = None;
    }

    /// Whether a backup is in progress.
    pub(crate) fn is_backup_running(&self) -> bool {
        self.backup.borrow().is_some()
    }

    /// Changes the bookkeeping of the backup in progress; returns `None` if there is none.
    pub(crate) fn with_backup<T>(&self, change: impl FnOnce(&mut BackupWatch) -> T) -> Option<T> {
        self.backup.borrow_mut().as_mut().map(change)
    }
}

//! Background jobs of a store: which of them run, and the order of tasks that exclude each other.

use crate::Lsn;
use crate::wait::{Turn, Turns};
use std::cell::Cell;

/// A background job of which at most one instance runs.
#[derive(Default)]
pub(crate) struct Single(Cell<bool>);

impl Single {
    /// Begins the job. Returns false if it runs already.
    pub(crate) fn begin(&self) -> bool {
        !self.0.replace(true)
    }

    /// Ends the job.
    pub(crate) fn end(&self) {
        self.0.set(false);
    }
}

/// The background jobs of a store, and the turns of tasks that exclude each other.
#[derive(Default)]
pub(crate) struct Jobs {
    eviction: Single,
    borrowing: Single,
    checkpoint: Single,
    deletion: Single,
    dropping: Single,
    /// The goal of the last checkpoint and the progress count of the store at its beginning, if this
    /// checkpoint could not move the redo point; `None` if it could.
    vain_checkpoint: Cell<Option<(Lsn, u64)>>,
    structure: Turns,
    checkpoint_turns: Turns,
    backups: Turns,
    names: Turns,
    drops: Turns,
    closing: Turns,
    closed: Cell<bool>,
}

impl Jobs {
    /// The job that evicts records from the record cache.
    pub(crate) fn eviction(&self) -> &Single {
        &self.eviction
    }

    /// The job that borrows frames of the pool for the record cache.
    pub(crate) fn borrowing(&self) -> &Single {
        &self.borrowing
    }

    /// The checkpoint that was begun because the log became full.
    pub(crate) fn checkpoint(&self) -> &Single {
        &self.checkpoint
    }

    /// The job that deletes large values that belong to no record.
    pub(crate) fn deletion(&self) -> &Single {
        &self.deletion
    }

    /// The job that frees the pages of dropped tables and indexes.
    pub(crate) fn dropping(&self) -> &Single {
        &self.dropping
    }

    /// Whether a checkpoint with this goal would be in vain, because an earlier one could not move the redo
    /// point and nothing that could help has ended since.
    pub(crate) fn is_vain(&self, goal: Lsn, progress: u64) -> bool {
        self.vain_checkpoint.get().is_some_and(|(vain, then)| goal <= vain && then == progress)
    }

    /// Records the goal and the progress count of a checkpoint that could not move the redo point; `None` for
    /// a checkpoint that could.
    pub(crate) fn set_vain(&self, vain: Option<(Lsn, u64)>) {
        self.vain_checkpoint.set(vain);
    }

    /// Waits for the turn to change the structure of the trees. One task at a time has it.
    pub(crate) async fn structure_turn(&self) -> Turn<'_> {
        self.structure.take().await
    }

    /// Waits for the turn to change the catalogue, from the look at its names until the change is applied. One
    /// task at a time has it. It is taken before the turn to change the structure.
    pub(crate) async fn names_turn(&self) -> Turn<'_> {
        self.names.take().await
    }

    /// Waits for the turn to free the pages of dropped trees. One task at a time has it.
    pub(crate) async fn drops_turn(&self) -> Turn<'_> {
        self.drops.take().await
    }

    /// Waits for the turn to close the store. One task at a time has it.
    pub(crate) async fn closing_turn(&self) -> Turn<'_> {
        self.closing.take().await
    }

    /// Whether the store was closed without an error.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Notes that the store is closed.
    pub(crate) fn set_closed(&self) {
        self.closed.set(true);
    }

    /// Waits for the turn to write a superblock. One task at a time has it.
    pub(crate) async fn checkpoint_turn(&self) -> Turn<'_> {
        self.checkpoint_turns.take().await
    }

    /// Waits for the turn to make a backup or to trim free pages. One task at a time has it.
    pub(crate) async fn backup_turn(&self) -> Turn<'_> {
        self.backups.take().await
    }

    /// Ends the turn to make a backup, whose guard was forgotten.
    pub(crate) fn end_backup_turn(&self) {
        self.backups.release();
    }
}

//! Jobs of the store's own: which run, and whose turn it is.

use crate::Lsn;
use crate::wait::{Turn, Turns};
use std::cell::Cell;

/// A job that one task does at a time; a second one is not begun.
#[derive(Default)]
pub(crate) struct Single(Cell<bool>);

impl Single {
    /// Begins the job. False if it is under way.
    pub(crate) fn begin(&self) -> bool {
        !self.0.replace(true)
    }

    /// Ends the job.
    pub(crate) fn end(&self) {
        self.0.set(false);
    }
}

/// The jobs of a store.
#[derive(Default)]
pub(crate) struct Jobs {
    eviction: Single,
    borrowing: Single,
    checkpoint: Single,
    /// The goal of the last checkpoint, if it could not move the redo point, and the store's progress when it began.
    vain_checkpoint: Cell<Option<(Lsn, u64)>>,
    structure: Turns,
    checkpoint_turns: Turns,
    backups: Turns,
}

impl Jobs {
    /// Evicting records from the record cache.
    pub(crate) fn eviction(&self) -> &Single {
        &self.eviction
    }

    /// Borrowing frames for records.
    pub(crate) fn borrowing(&self) -> &Single {
        &self.borrowing
    }

    /// A checkpoint that was begun because the log became full.
    pub(crate) fn checkpoint(&self) -> &Single {
        &self.checkpoint
    }

    /// Whether a checkpoint with this goal would be in vain: an earlier one could not move the redo point,
    /// and nothing has happened since.
    pub(crate) fn is_vain(&self, goal: Lsn, progress: u64) -> bool {
        self.vain_checkpoint.get().is_some_and(|(vain, then)| goal <= vain && then == progress)
    }

    /// Notes a checkpoint that could not move the redo point; `None` for one that could.
    pub(crate) fn set_vain(&self, vain: Option<(Lsn, u64)>) {
        self.vain_checkpoint.set(vain);
    }

    /// Waits for the turn to change the structure of trees.
    pub(crate) async fn structure_turn(&self) -> Turn<'_> {
        self.structure.take().await
    }

    /// Waits for the turn to write a superblock.
    pub(crate) async fn checkpoint_turn(&self) -> Turn<'_> {
        self.checkpoint_turns.take().await
    }

    /// Waits for the turn to make a backup, or to give pages back.
    pub(crate) async fn backup_turn(&self) -> Turn<'_> {
        self.backups.take().await
    }
}

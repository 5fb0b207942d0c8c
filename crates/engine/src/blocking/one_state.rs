//! Lets snapshots of several shards see a transaction of several shards in all of them or in none.
//!
//! Such a transaction becomes visible in one shard after the other. Meanwhile its thread holds a lock *shared*, which
//! a thread that takes a snapshot of several shards holds *alone*. So the snapshot comes before the first of these
//! moments or after the last. Nobody else takes the lock.
//!
//! A commit takes the lock before its coordinator appends the record, not when that record becomes visible. Commits
//! become visible in the order of each log. A thread that had appended the record and waited for the lock would hold
//! back those behind it, whose threads have the lock and for which the snapshot waits. A thread that waits for the lock
//! holds back nobody's visibility.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The lock. It is fair: those who wait get it before those who come later.
#[derive(Default)]
pub(super) struct OneState(RwLock<()>);

impl OneState {
    /// Waits until no snapshot is taken, and lets none be taken until the guard is dropped.
    pub(super) fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read()
    }

    /// Waits until no transaction of several shards becomes visible, and lets none become visible until the guard is
    /// dropped.
    pub(super) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write()
    }
}

//! Deadlocks over several shards, through the handle for threads.
//!
//! Nobody keeps the waits-for graphs of the shards together. While a call of a transaction of several shards waits, its
//! thread looks at all of them every millisecond, each under its shard's lock.
//!
//! All transactions that cross in a cycle ([`crate::sharded::cycles`]) have several sides, so they all look, and the
//! youngest of them ends. The waits of a deadlock stay until then, so it is found. A
//! cycle that was never there as a whole may be found too, because the graphs are read one after the other; then a
//! transaction is repeated in vain.
//!
//! A drop of a table and a bulk load have locks in several shards, and do not look. They are older than every
//! transaction.

use super::asking::{ASK_EVERY, GoesOn};
use super::db::Db;
use crate::memory::locks::TxnId;
use crate::sharded::cycles::is_victim;
use fulgurite_base::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The time between two looks.
const LOOK_EVERY: Nanos = Nanos(1_000_000);

/// The look-out of a call of a transaction of several shards.
pub(super) struct LookOut {
    /// The function that the call asks.
    pub goes_on: GoesOn,
    is_victim: Arc<AtomicBool>,
}

impl LookOut {
    /// Looks while a call of a transaction waits in a shard.
    pub(super) fn new(db: &Db, shard: usize, txn: TxnId) -> LookOut {
        let is_victim = Arc::new(AtomicBool::new(false));
        let (found, db, looks) = (Arc::clone(&is_victim), db.clone(), AtomicU64::new(1));
        let goes_on = GoesOn::at_times(LOOK_EVERY, move || {
            // The handle's own function is called as often as for other calls.
            let is_asked = looks.fetch_add(1, Relaxed).is_multiple_of(ASK_EVERY.0 / LOOK_EVERY.0);
            if is_asked && !db.goes_on().is_none_or(GoesOn::ask) {
                return false;
            }
            found.store(is_deadlocked(&db, shard, txn), Relaxed);
            !found.load(Relaxed)
        });
        LookOut { goes_on, is_victim }
    }

    /// Whether the call was ended to resolve a deadlock.
    pub(super) fn is_victim(&self) -> bool {
        self.is_victim.load(Relaxed)
    }
}

/// Whether a transaction that waits in a shard must end to resolve a deadlock. A shard that fails tells its own calls.
fn is_deadlocked(db: &Db, shard: usize, txn: TxnId) -> bool {
    let edges = |shard: usize| db.shard(shard).at_once(|inside| inside.edges()).unwrap_or_default();
    // Mostly it waits for the drive, and the other shards need not be asked.
    if !edges(shard).iter().any(|edge| edge.waiter == txn) {
        return false;
    }
    let edges = (0..db.shards()).flat_map(|shard| edges(shard).into_iter().map(move |edge| (shard, edge)));
    is_victim(txn, &edges.collect::<Vec<_>>())
}

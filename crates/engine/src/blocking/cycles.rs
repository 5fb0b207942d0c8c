//! Deadlocks over several shards.
//!
//! The lock manager of a shard finds the cycles of its own waits-for graph. A transaction of several shards has the
//! same number in all of them, so the graphs together have the other cycles. Nobody keeps them together. While a call
//! of such a transaction waits, its thread looks at all of them every millisecond, each under its shard's lock.
//!
//! In a cycle over several shards some transactions *cross*: others wait for them in one shard, and they wait in
//! another. They all have several sides, so they all look. The youngest of those that cross ends, which is one
//! transaction, and each can tell whether it is the one. The waits of a deadlock stay until then, so it is found. A
//! cycle that was never there as a whole may be found too, because the graphs are read one after the other; then a
//! transaction is repeated in vain.
//!
//! A drop of a table and a bulk load have locks in several shards, and do not look. They are older than every
//! transaction.

use super::asking::{ASK_EVERY, GoesOn};
use super::db::Db;
use crate::memory::locks::{TxnId, WaitsFor};
use fulgurite_base::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
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

/// A transaction that waits.
#[derive(Default)]
struct Waiting {
    shard: usize,
    age: TxnId,
    blockers: Vec<TxnId>,
}

/// Whether there is a cycle in which `own` crosses, and is the youngest of those that cross. The edges name their
/// shards.
fn is_victim(own: TxnId, edges: &[(usize, WaitsFor)]) -> bool {
    let mut waiting: FxHashMap<TxnId, Waiting> = FxHashMap::default();
    for (shard, WaitsFor { waiter, age, blocker }) in edges {
        let waiter = waiting.entry(*waiter).or_default();
        (waiter.shard, waiter.age) = (*shard, *age);
        waiter.blockers.push(*blocker);
    }
    let Some(begin) = waiting.get(&own) else { return false };
    let (mut seen, mut left) = (FxHashSet::default(), vec![begin]);
    while let Some(from) = left.pop() {
        for blocker in &from.blockers {
            let Some(to) = waiting.get(blocker) else { continue };
            let crosses = to.shard != from.shard;
            if *blocker == own {
                if crosses {
                    return true;
                }
            } else if (!crosses || (to.age, *blocker) < (begin.age, own)) && seen.insert(*blocker) {
                left.push(to);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: exactly one transaction of a cycle over several shards ends: the youngest of those that wait in one
    /// shard and are waited for in another. Other cycles and chains are none of its business.
    #[test]
    fn the_youngest_that_crosses_ends() {
        let edge = |shard: usize, waiter: u64, blocker: u64| {
            (shard, WaitsFor { waiter: TxnId(waiter), age: TxnId(waiter), blocker: TxnId(blocker) })
        };
        let victims = |edges: &[(usize, WaitsFor)]| -> Vec<u64> {
            (1..10).filter(|txn| is_victim(TxnId(*txn), edges)).collect()
        };
        assert_eq!(victims(&[edge(0, 1, 2), edge(1, 2, 1)]), [2]);
        // The youngest, 9, has one side, and does not look.
        assert_eq!(victims(&[edge(0, 9, 2), edge(1, 2, 1), edge(0, 1, 9)]), [2]);
        assert_eq!(victims(&[edge(0, 3, 1), edge(1, 1, 2), edge(2, 2, 3), edge(0, 8, 3)]), [3]);
        // Two cycles with the transaction 1 in common.
        assert_eq!(victims(&[edge(0, 1, 2), edge(0, 1, 3), edge(1, 2, 1), edge(2, 3, 1)]), [2, 3]);
        assert!(victims(&[edge(0, 1, 2), edge(1, 2, 3), edge(2, 4, 1)]).is_empty());
        assert!(victims(&[edge(0, 1, 2), edge(0, 2, 1)]).is_empty(), "the lock manager finds it");
        // A repeated transaction is as old as its first attempt.
        let repeated = (1, WaitsFor { waiter: TxnId(7), age: TxnId(1), blocker: TxnId(5) });
        assert_eq!(victims(&[edge(0, 5, 7), repeated]), [5]);
    }
}

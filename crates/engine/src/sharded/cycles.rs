//! Cycles in the waits-for graphs of several shards.
//!
//! The lock manager of a shard finds the cycles of its own waits-for graph. A transaction of several shards has the
//! same number in all of them, so the graphs together have the other cycles.
//!
//! In a cycle over several shards some transactions *cross*: others wait for them in one shard, and they wait in
//! another. They all have several sides. The youngest of those that cross ends, which is one transaction, and each can
//! tell whether it is the one.

use crate::memory::locks::{TxnId, WaitsFor};
use rustc_hash::{FxHashMap, FxHashSet};

/// A transaction that waits.
#[derive(Default)]
struct Waiting {
    shard: usize,
    age: TxnId,
    blockers: Vec<TxnId>,
}

/// Whether there is a cycle in which `own` crosses, and is the youngest of those that cross. The edges name their
/// shards.
pub(crate) fn is_victim(own: TxnId, edges: &[(usize, WaitsFor)]) -> bool {
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

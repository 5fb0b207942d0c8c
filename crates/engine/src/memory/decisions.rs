//! The transactions of several shards, as far as this shard's log must keep their records.
//!
//! - A transaction that is *prepared* here waits for the decision of its coordinator. Its record may be needed until
//!   the operations are in the pages. When the transaction is decided, its commit holds the redo point from then on.
//! - A transaction that is *decided* here may be prepared in other shards. If they crash, they ask for the decision,
//!   until their own logs have it. Each log counts how far it is durable, and the counter can be read from here.

use crate::Lsn;
use crate::format::part::GlobalId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

/// A transaction that is prepared here and not decided.
#[derive(Debug)]
struct Prepared {
    /// The LSN at which its record begins.
    since: Lsn,
    /// Its encoded operations if recovery has found it; `None` if a thread commits it now.
    ops: Option<Box<[u8]>>,
}

/// A transaction that is decided here.
#[derive(Debug)]
struct Decided {
    /// The LSN at which the last record begins that says so.
    since: Lsn,
    /// For each other shard, how far its log is durable, and the LSN of the decision there. `None` as long as some of
    /// them may not have logged the decision.
    others: Option<Vec<LoggedAt>>,
}

/// A place in the log of a shard, which may be another one.
#[derive(Clone, Debug)]
pub(crate) struct LoggedAt {
    /// The LSN up to which the log is durable.
    pub durable: Arc<AtomicU64>,
    pub lsn: Lsn,
}

impl LoggedAt {
    fn is_durable(&self) -> bool {
        self.durable.load(Acquire) >= self.lsn.0
    }
}

/// The transactions of several shards that concern this one.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// The number of this opening of the shard.
    opening: u64,
    drawn: u64,
    prepared: BTreeMap<GlobalId, Prepared>,
    decided: BTreeMap<GlobalId, Decided>,
}

impl Decisions {
    /// Creates the state after recovery has found prepared transactions without a decision, with the LSNs of their
    /// records and their operations, and transactions that were decided here, with the LSNs of the records.
    pub(crate) fn new(
        opening: u64,
        in_doubt: impl IntoIterator<Item = (GlobalId, Lsn, Box<[u8]>)>,
        decided: impl IntoIterator<Item = (GlobalId, Lsn)>,
    ) -> Decisions {
        let in_doubt = in_doubt.into_iter();
        let decided = decided.into_iter();
        Decisions {
            opening,
            drawn: 0,
            prepared: in_doubt.map(|(id, since, ops)| (id, Prepared { since, ops: Some(ops) })).collect(),
            decided: decided.map(|(id, since)| (id, Decided { since, others: None })).collect(),
        }
    }

    /// Returns an identity for a transaction that this shard, whose index is `shard`, will decide.
    pub(crate) fn draw(&mut self, shard: u32) -> GlobalId {
        self.drawn += 1;
        GlobalId { coordinator: shard, opening: self.opening, number: self.drawn }
    }

    /// Notes that a transaction is prepared by a record that begins at `since`.
    pub(crate) fn prepare(&mut self, id: GlobalId, since: Lsn) {
        self.prepared.insert(id, Prepared { since, ops: None });
    }

    /// Forgets a prepared transaction, because the log says how it ended.
    pub(crate) fn settle(&mut self, id: GlobalId) {
        self.prepared.remove(&id);
    }

    /// Whether a thread is about to decide a transaction that is prepared.
    pub(crate) fn is_any_prepared(&self) -> bool {
        self.prepared.values().any(|prepared| prepared.ops.is_none())
    }

    /// Returns the transactions that recovery has found prepared and not decided.
    pub(crate) fn in_doubt(&self) -> Vec<GlobalId> {
        self.prepared.iter().filter(|(_, prepared)| prepared.ops.is_some()).map(|(id, _)| *id).collect()
    }

    /// Returns the beginning of the record and the operations of a transaction in doubt; `None` for any other.
    pub(crate) fn doubtful(&self, id: GlobalId) -> Option<(Lsn, Box<[u8]>)> {
        let prepared = self.prepared.get(&id)?;
        Some((prepared.since, prepared.ops.clone()?))
    }

    /// Notes that a transaction is decided by a record that begins at `since`.
    pub(crate) fn decide(&mut self, id: GlobalId, since: Lsn) {
        self.decided.insert(id, Decided { since, others: None });
    }

    /// Whether this shard has decided that the transaction is committed.
    pub(crate) fn is_decided(&self, id: GlobalId) -> bool {
        self.decided.contains_key(&id)
    }

    /// Notes where the other shards have logged the decision.
    pub(crate) fn logged_by_others(&mut self, id: GlobalId, others: Vec<LoggedAt>) {
        if let Some(decided) = self.decided.get_mut(&id) {
            decided.others = Some(others);
        }
    }

    /// Forgets every decision that recovery has found, because no shard is in doubt.
    pub(crate) fn end_doubt(&mut self) {
        self.decided.clear();
    }

    /// Returns the number of decisions that other shards may need.
    pub(crate) fn decided(&self) -> u64 {
        self.decided.len() as u64
    }

    /// Returns the LSN from which the log must be kept for prepared transactions; `None` if there is none.
    pub(crate) fn least_prepared(&self) -> Option<Lsn> {
        self.prepared.values().map(|prepared| prepared.since).min()
    }

    /// Returns the LSN from which the log must be kept for decisions; `None` if there is none.
    pub(crate) fn least_decided(&mut self) -> Option<Lsn> {
        self.forget_logged();
        self.decided.values().map(|decided| decided.since).min()
    }

    /// Returns the decisions that others may need, and whose records begin before `goal`.
    pub(crate) fn decided_before(&mut self, goal: Lsn) -> Vec<GlobalId> {
        self.forget_logged();
        self.decided.iter().filter(|(_, decided)| decided.since < goal).map(|(id, _)| *id).collect()
    }

    /// Notes that a record which begins at `since` repeats a decision, and is durable.
    pub(crate) fn carried(&mut self, id: GlobalId, since: Lsn) {
        if let Some(decided) = self.decided.get_mut(&id) {
            decided.since = since;
        }
    }

    /// Forgets the decisions that every other shard has in its durable log.
    fn forget_logged(&mut self) {
        let is_logged = |others: &Vec<LoggedAt>| others.iter().all(LoggedAt::is_durable);
        self.decided.retain(|_, decided| !decided.others.as_ref().is_some_and(is_logged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the log is kept from the first record on that a shard may need: prepared here and not decided, or
    /// decided here and not durable elsewhere.
    #[test]
    fn records_are_kept_as_long_as_a_shard_may_need_them() {
        let least = |decisions: &mut Decisions| {
            decisions.least_prepared().into_iter().chain(decisions.least_decided()).min()
        };
        let id = |number| GlobalId { coordinator: 0, opening: 9, number };
        let mut decisions = Decisions::new(9, [(id(50), Lsn(70), Box::default())], [(id(40), Lsn(60))]);
        assert_eq!((decisions.draw(0), decisions.draw(0)), (id(1), id(2)));
        assert_eq!((decisions.in_doubt(), decisions.is_decided(id(40))), (vec![id(50)], true));
        assert_eq!(least(&mut decisions), Some(Lsn(60)));
        decisions.end_doubt();
        assert_eq!(least(&mut decisions), Some(Lsn(70)));
        decisions.settle(id(50));
        decisions.prepare(id(7), Lsn(100));
        decisions.decide(id(1), Lsn(120));
        assert_eq!((least(&mut decisions), decisions.is_any_prepared()), (Some(Lsn(100)), true));
        assert!(decisions.in_doubt().is_empty() && decisions.doubtful(id(7)).is_none());
        decisions.settle(id(7));
        let durable = Arc::new(AtomicU64::new(199));
        decisions.logged_by_others(id(1), vec![LoggedAt { durable: Arc::clone(&durable), lsn: Lsn(200) }]);
        assert_eq!((least(&mut decisions), decisions.decided_before(Lsn(120))), (Some(Lsn(120)), Vec::new()));
        assert_eq!(decisions.decided_before(Lsn(121)), [id(1)]);
        decisions.carried(id(1), Lsn(300));
        assert_eq!(least(&mut decisions), Some(Lsn(300)));
        durable.store(200, std::sync::atomic::Ordering::Release);
        assert_eq!((least(&mut decisions), decisions.is_decided(id(1))), (None, false));
    }
}

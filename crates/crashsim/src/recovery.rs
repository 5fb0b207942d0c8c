//! Checks that a store has kept its guarantees after a restart.
//!
//! Every transaction that writes also writes a marker of its own. After a restart the marker shows whether
//! the transaction survived. A store keeps these rules:
//!
//! 1. A transaction that survived was committed or may have been: its commit was called and did not fail.
//! 2. An acknowledged transaction survives, unless it was `relaxed`.
//! 3. The survivors of a shard are a prefix of the commit order. If transaction T survived, so did each transaction
//!    that was acknowledged before the commit of T was called and wrote in a shard of T, and each transaction whose
//!    writes T read.
//! 4. The writes that an acknowledged reader or a snapshot saw survive, except those of `relaxed` commits,
//!    which are visible before they are durable.
//! 5. If the drive may damage the tail of the log, the last commits may be lost, including those of earlier
//!    generations. If commits of an earlier generation are lost, no later commit survives.
//! 6. Transactions survive completely or not at all. All their reads and the records after the restart have
//!    one serial order. The records after the restart count as a read of all records at the end of the
//!    history.

use crate::device::Allowed;
use crate::history::{Action, History, Kind, Outcome, Txn};
use crate::serial::{self, AnomalyName};
use crate::value::{Key, TableName, TxnId, Version};
use crate::violation::{Violation, ViolationKind};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Decides which transactions survived a restart, and whether the rules allow it.
struct Judge<'a> {
    history: &'a History,
    found: &'a BTreeMap<Key, Version>,
    allowed: Allowed,
    /// The index of each transaction in the history, by its number.
    places: FxHashMap<TxnId, usize>,
    /// Whether the writes of each transaction survived; true for a transaction without writes.
    there: Vec<bool>,
}

/// Checks that the records `found` after a restart follow from `history`, given the losses that the fault
/// model allows.
pub(crate) fn judge(
    history: &History,
    found: &BTreeMap<Key, Version>,
    allowed: Allowed,
) -> Result<(), Violation> {
    let places: FxHashMap<TxnId, usize> =
        history.txns.iter().enumerate().map(|(at, txn)| (txn.id, at)).collect();
    let there =
        history.txns.iter().map(|txn| !txn.writes() || found.contains_key(&Key::marker(txn.id))).collect();
    let judge = Judge { history, found, allowed, places, there };
    judge.issued()?;
    if let Some(lost) = judge.lost_before().filter(|_| allowed.lost_tail) {
        return judge.nothing_since(lost);
    }
    judge.acknowledged()?;
    judge.prefix()?;
    judge.readers()?;
    judge.serial()
}

fn violation(kind: ViolationKind, text: String) -> Violation {
    Violation { kind, text }
}

impl Judge<'_> {
    fn present(&self) -> impl Iterator<Item = &Txn> {
        self.history
            .txns
            .iter()
            .zip(&self.there)
            .filter(|(txn, there)| **there && txn.writes())
            .map(|(txn, _)| txn)
    }

    fn absent(&self) -> impl Iterator<Item = &Txn> {
        self.history.txns.iter().zip(&self.there).filter(|(_, there)| !**there).map(|(txn, _)| txn)
    }

    /// Whether the transaction that wrote `version` survived. Transactions of earlier generations count as
    /// survivors here, because they were checked after their own restart.
    fn is_there(&self, version: Version) -> bool {
        self.places.get(&version.writer()).is_none_or(|at| self.there[*at])
    }

    /// Returns a marker from an earlier generation that is missing now; `None` if there is none. The block of
    /// this commit is the last one of the log until another commit follows. If the drive damages the block,
    /// it looks like a torn block.
    fn lost_before(&self) -> Option<Key> {
        let mut before = self.history.initial.keys().filter(|key| key.table == TableName::Markers);
        before.find(|key| !self.found.contains_key(key)).copied()
    }

    /// Fails if a transaction of this generation survived although a commit of an earlier generation is lost.
    fn nothing_since(&self, lost: Key) -> Result<(), Violation> {
        match self.present().next() {
            Some(txn) => {
                let text = format!("{} survived, but {lost} of an earlier generation is lost", txn.id);
                Err(violation(ViolationKind::NotAPrefix, text))
            }
            None => Ok(()),
        }
    }

    fn issued(&self) -> Result<(), Violation> {
        for txn in self.present() {
            if txn.outcome == Outcome::Failed || txn.committing.is_none() {
                let text = format!("{} did not commit, but its marker survived the restart", txn.id);
                return Err(violation(ViolationKind::Unissued, text));
            }
        }
        Ok(())
    }

    fn acknowledged(&self) -> Result<(), Violation> {
        let lost = self.absent().find(|txn| txn.outcome == Outcome::Committed && !txn.relaxed);
        match lost {
            Some(txn) if !self.allowed.lost_tail => {
                let text = format!("{} was acknowledged, but is lost after the restart", txn.id);
                Err(violation(ViolationKind::Lost, text))
            }
            _ => Ok(()),
        }
    }

    fn prefix(&self) -> Result<(), Violation> {
        let mut lost: Vec<&Txn> = self.absent().filter(|txn| txn.outcome == Outcome::Committed).collect();
        lost.sort_by_key(|txn| txn.ended);
        for txn in self.present() {
            let earlier = lost.iter().find(|lost| lost.shards & txn.shards != 0);
            if let Some(lost) = earlier.filter(|lost| lost.ended < txn.committing) {
                let text =
                    format!("{} survived, but {}, acknowledged before its commit, is lost", txn.id, lost.id);
                return Err(violation(ViolationKind::NotAPrefix, text));
            }
            if let Some((key, version)) = txn.seen().find(|(_, version)| !self.is_there(*version)) {
                let text = format!("{} survived, but {version}, which it saw at {key}, is lost", txn.id);
                return Err(violation(ViolationKind::NotAPrefix, text));
            }
        }
        Ok(())
    }

    /// Checks that no acknowledged reader saw a lost commit.
    fn readers(&self) -> Result<(), Violation> {
        let readers =
            self.history.txns.iter().filter(|txn| !txn.writes() && txn.outcome == Outcome::Committed);
        for txn in readers.filter(|_| !self.allowed.lost_tail) {
            let lost =
                txn.seen().find(|(_, version)| !self.is_there(*version) && !self.excused(txn, *version));
            if let Some((key, version)) = lost {
                let who = if txn.kind == Kind::Snapshot { "the snapshot" } else { "the reader" };
                let text =
                    format!("{who} {} saw {version} at {key}, which is lost after the restart", txn.id);
                return Err(violation(ViolationKind::SeenAndLost, text));
            }
        }
        Ok(())
    }

    /// Whether the rules allow that a reader saw a commit that was lost.
    fn excused(&self, reader: &Txn, version: Version) -> bool {
        let relaxed = self.places.get(&version.writer()).is_some_and(|at| self.history.txns[*at].relaxed);
        relaxed || reader.relaxed
    }

    fn serial(&self) -> Result<(), Violation> {
        let lost = self.absent().any(|txn| txn.outcome == Outcome::Committed);
        if lost {
            // The transactions before the restart must have a serial order too, including the lost ones.
            let mut history = self.history.clone();
            let uncertain = self.deleted_by_lost(|txn| txn.outcome == Outcome::Unknown);
            history.txns.iter_mut().for_each(|txn| forget_absences(&mut txn.actions, &uncertain));
            check(&history, &self.committed_before())?;
        }
        let mut history = self.history.clone();
        let uncertain = self.deleted_by_lost(|_| true);
        let readers = history.txns.iter_mut().filter(|txn| !txn.writes());
        readers.for_each(|txn| forget_absences(&mut txn.actions, &uncertain));
        let mut committed: Vec<bool> = (0..history.txns.len()).map(|at| self.counts_after(at)).collect();
        let reader = TxnId(u32::MAX);
        let at = history.begin(reader, u32::MAX, Kind::Locking);
        history.txns[at].actions = TableName::ALL.map(|table| self.scan_of(table)).to_vec();
        history.end(at, Outcome::Committed);
        committed.push(true);
        check(&history, &committed)
    }

    /// Returns the keys whose deletion was lost. A reader that found no record under such a key may have seen
    /// this deletion, because a missing record does not tell which transaction deleted it.
    fn deleted_by_lost(&self, which: impl Fn(&Txn) -> bool) -> BTreeSet<Key> {
        let lost = self.absent().filter(|txn| txn.committing.is_some() && txn.outcome != Outcome::Failed);
        lost.filter(|txn| which(txn)).flat_map(|txn| &txn.actions).filter_map(deleted).collect()
    }

    /// Whether a transaction belongs to the state after the restart.
    fn counts_after(&self, at: usize) -> bool {
        let txn = &self.history.txns[at];
        if txn.writes() {
            return self.there[at];
        }
        txn.outcome == Outcome::Committed && txn.seen().all(|(_, version)| self.is_there(version))
    }

    /// Returns which transactions were committed before the restart: those that were acknowledged or
    /// survived, and those whose writes they read.
    fn committed_before(&self) -> Vec<bool> {
        let txns = &self.history.txns;
        let mut committed: Vec<bool> = txns
            .iter()
            .zip(&self.there)
            .map(|(txn, there)| txn.outcome == Outcome::Committed || (txn.writes() && *there))
            .collect();
        let mut pending: Vec<usize> = (0..txns.len()).filter(|at| committed[*at]).collect();
        while let Some(at) = pending.pop() {
            for (_, version) in txns[at].seen() {
                let Some(writer) = self.places.get(&version.writer()).copied() else { continue };
                let possible = txns[writer].outcome == Outcome::Unknown && txns[writer].committing.is_some();
                if possible && !committed[writer] {
                    committed[writer] = true;
                    pending.push(writer);
                }
            }
        }
        committed
    }

    fn scan_of(&self, table: TableName) -> Action {
        let [first, last] = [0, u32::MAX].map(|number| Key::new(table, number));
        let rows = self.found.range(first..=last).map(|(key, version)| (*key, *version)).collect();
        Action::Scan { first, last, rows }
    }
}

fn deleted(action: &Action) -> Option<Key> {
    match action {
        Action::Write { key, deletes: true, .. } => Some(*key),
        _ => None,
    }
}

/// Removes from `actions` the observations that there was no record under the keys in `uncertain`.
fn forget_absences(actions: &mut Vec<Action>, uncertain: &BTreeSet<Key>) {
    if uncertain.is_empty() {
        return;
    }
    let mut kept = Vec::new();
    for action in actions.drain(..) {
        match action {
            Action::Read { key, seen: None } if uncertain.contains(&key) => {}
            Action::Scan { first, last, rows } => {
                kept.extend(without_absences(first, last, &rows, uncertain))
            }
            action => kept.push(action),
        }
    }
    *actions = kept;
}

/// Splits a scan at the uncertain keys under which it found no record.
fn without_absences(
    first: Key,
    last: Key,
    rows: &[(Key, Version)],
    uncertain: &BTreeSet<Key>,
) -> Vec<Action> {
    let mut scans = Vec::new();
    let mut add = |from: u64, to: u64| {
        if from <= to {
            let [first, last] = [from, to].map(|number| Key::new(first.table, number as u32));
            let rows = rows.iter().copied().filter(|(key, _)| (first..=last).contains(key)).collect();
            scans.push(Action::Scan { first, last, rows });
        }
    };
    // The keys are 64-bit numbers here, so that the key after the last one can be represented.
    let mut from = u64::from(first.number);
    for hole in uncertain.range(first..=last).filter(|key| !rows.iter().any(|(row, _)| row == *key)) {
        let hole = u64::from(hole.number);
        if hole > from {
            add(from, hole - 1);
        }
        from = hole + 1;
    }
    add(from, u64::from(last.number));
    scans
}

fn check(history: &History, committed: &[bool]) -> Result<(), Violation> {
    match serial::check(history, committed) {
        Ok(_) => Ok(()),
        Err(anomaly) => {
            let text = anomaly.to_string().replace(&TxnId(u32::MAX).to_string(), "the restart");
            let kind = match anomaly.name {
                AnomalyName::Unwritten => ViolationKind::WrongData,
                _ => ViolationKind::NotSerialisable,
            };
            Err(violation(kind, text))
        }
    }
}

#[cfg(test)]
mod tests;

//! Is what a store has after a restart what it promised?
//!
//! Every transaction that writes also writes a marker of its own, so its presence needs no guess. The rules:
//!
//! 1. What is there was committed or may have been: its commit had been called and had not failed.
//! 2. What was acknowledged is there, `relaxed` commits excepted.
//! 3. What is there is a prefix of the commits: nothing is missing that had been acknowledged before the commit of
//!    something that is there was called, and nothing that a transaction saw which is there.
//! 4. What an acknowledged reader or a snapshot saw is there, `relaxed` commits excepted: those are visible before they are
//!    durable.
//! 5. Where the drive may damage the log's tail, the last commits may be gone, also those of earlier generations; then nothing
//!    that came later is there.
//! 6. Transactions are there as a whole, and all they read and the records after the restart have one serial order. A
//!    reader of every record that comes after all others stands for the records.

use crate::device::Allowed;
use crate::history::{Action, History, Kind, Outcome, Txn};
use crate::serial::{self, AnomalyName};
use crate::value::{Key, TableName, TxnId, Version};
use crate::violation::{Violation, ViolationKind};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Which transactions are there after a restart.
struct Judge<'a> {
    history: &'a History,
    found: &'a BTreeMap<Key, Version>,
    allowed: Allowed,
    /// Places in the history.
    places: FxHashMap<TxnId, usize>,
    /// Whether the transaction's writes are there; true of what wrote nothing.
    there: Vec<bool>,
}

/// Checks that `found`, which the store holds after a restart, is what `history` and a fault model that allows
/// `allowed` explain.
pub fn judge(history: &History, found: &BTreeMap<Key, Version>, allowed: Allowed) -> Result<(), Violation> {
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

    /// Whether the transaction that wrote `version` is there; those of earlier generations were checked then.
    fn is_there(&self, version: Version) -> bool {
        self.places.get(&version.writer()).is_none_or(|at| self.there[*at])
    }

    /// The marker of a transaction of an earlier generation that is gone: as long as no commit has come behind it, its block
    /// is the last of the log, and cannot be told from a torn one if the drive damages it now.
    fn lost_before(&self) -> Option<Key> {
        let mut before = self.history.initial.keys().filter(|key| key.table == TableName::Markers);
        before.find(|key| !self.found.contains_key(key)).copied()
    }

    /// Nothing of this generation is there where the end of an earlier one is gone. What is left of that one was checked then.
    fn nothing_since(&self, lost: Key) -> Result<(), Violation> {
        match self.present().next() {
            Some(txn) => {
                let text = format!("{} is there, and {lost}, of an earlier generation, is gone", txn.id);
                Err(violation(ViolationKind::NotAPrefix, text))
            }
            None => Ok(()),
        }
    }

    fn issued(&self) -> Result<(), Violation> {
        for txn in self.present() {
            if txn.outcome == Outcome::Failed || txn.committing.is_none() {
                let text = format!("{} did not commit, and its marker is there after the restart", txn.id);
                return Err(violation(ViolationKind::Unissued, text));
            }
        }
        Ok(())
    }

    fn acknowledged(&self) -> Result<(), Violation> {
        let lost = self.absent().find(|txn| txn.outcome == Outcome::Committed && !txn.relaxed);
        match lost {
            Some(txn) if !self.allowed.lost_tail => {
                let text = format!("{} was acknowledged, and is gone after the restart", txn.id);
                Err(violation(ViolationKind::Lost, text))
            }
            _ => Ok(()),
        }
    }

    fn prefix(&self) -> Result<(), Violation> {
        let acknowledged = self.absent().filter(|txn| txn.outcome == Outcome::Committed);
        let first = acknowledged.min_by_key(|txn| txn.ended);
        for txn in self.present() {
            if let Some(lost) = first.filter(|lost| lost.ended < txn.committing) {
                let text =
                    format!("{} is there, and {}, acknowledged before its commit, is gone", txn.id, lost.id);
                return Err(violation(ViolationKind::NotAPrefix, text));
            }
            if let Some((key, version)) = txn.seen().find(|(_, version)| !self.is_there(*version)) {
                let text = format!("{} is there, and {version}, which it saw at {key}, is gone", txn.id);
                return Err(violation(ViolationKind::NotAPrefix, text));
            }
        }
        Ok(())
    }

    /// What acknowledged readers saw.
    fn readers(&self) -> Result<(), Violation> {
        let readers =
            self.history.txns.iter().filter(|txn| !txn.writes() && txn.outcome == Outcome::Committed);
        for txn in readers.filter(|_| !self.allowed.lost_tail) {
            let lost =
                txn.seen().find(|(_, version)| !self.is_there(*version) && !self.excused(txn, *version));
            if let Some((key, version)) = lost {
                let who = if txn.kind == Kind::Snapshot { "the snapshot" } else { "the reader" };
                let text =
                    format!("{who} {} saw {version} at {key}, which is gone after the restart", txn.id);
                return Err(violation(ViolationKind::SeenAndLost, text));
            }
        }
        Ok(())
    }

    /// Whether a reader may have seen a commit that was lost.
    fn excused(&self, reader: &Txn, version: Version) -> bool {
        let relaxed = self.places.get(&version.writer()).is_some_and(|at| self.history.txns[*at].relaxed);
        relaxed || reader.relaxed
    }

    fn serial(&self) -> Result<(), Violation> {
        let lost = self.absent().any(|txn| txn.outcome == Outcome::Committed);
        if lost {
            // What was there before the restart had an order as well.
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

    /// Keys that transactions deleted which are gone. A reader that found nothing there may have seen such a deletion:
    /// unlike a record, nothing does not name who left it.
    fn deleted_by_lost(&self, which: impl Fn(&Txn) -> bool) -> BTreeSet<Key> {
        let lost = self.absent().filter(|txn| txn.committing.is_some() && txn.outcome != Outcome::Failed);
        lost.filter(|txn| which(txn)).flat_map(|txn| &txn.actions).filter_map(deleted).collect()
    }

    /// Whether a transaction is part of what the restart left.
    fn counts_after(&self, at: usize) -> bool {
        let txn = &self.history.txns[at];
        if txn.writes() {
            return self.there[at];
        }
        txn.outcome == Outcome::Committed && txn.seen().all(|(_, version)| self.is_there(version))
    }

    /// What was committed before the restart: what was acknowledged, what is there, and what those saw.
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

/// Takes out of `actions` that nothing was found at the keys of `uncertain`.
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

/// A scan as scans of the parts between the uncertain keys at which it found nothing.
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
    // In 64 bits there is a number below each key but the first and above every key.
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

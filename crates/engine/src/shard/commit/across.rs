//! Commits a transaction of several shards, by two-phase commit with presumed abort. The transaction has a *side* in
//! each of its shards, which moves through the stages of an ordinary commit and waits for the others in between.
//! `blocking::across` moves the sides.
//!
//! 1. *Admit*: each side with writes reserves its space, one shard after the other in the order of their numbers. So
//!    sides that wait for log space wait in no circle, and no side that holds back a redo point waits for space.
//! 2. *Prepare*: each side but one appends a record with its operations, and makes it durable. The operations are not
//!    applied. Their locks and their space are kept, and the record holds back the redo point. It covers everything
//!    that the side has read, because that is earlier in its log.
//! 3. *Decide*: the other side, the *coordinator*, appends its ordinary commit record, which also names the
//!    transaction, and makes it durable. This record is the decision: without it the transaction is aborted.
//! 4. *Finish*: each prepared side appends a small record with the decision, which gives the commit its place in the
//!    order of commits, and applies its operations. It need not wait until this record is durable, because the first
//!    one and the coordinator's are.
//!
//! The coordinator's record holds back its redo point until the decision is in the durable logs of all others, because
//! they ask for it after a crash. They may be idle, so a checkpoint does not wait for them. It repeats the decision at
//! the end of the log instead.
//!
//! A side that is dropped before the decision appends a record that it is aborted. The record need not become durable.

use super::stage::{Admitted, Write};
use crate::format::log_record::Entry;
use crate::format::part::{GlobalId, PART_RECORD, Part};
use crate::memory::decisions::LoggedAt;
use crate::memory::locks::TxnId;
use crate::shard::Shard;
use crate::{Durability, Error, Lsn};
use std::cell::Cell;
use std::mem::take;
use std::rc::Rc;

/// The log space of a side beside its operations: a record of its own is in a block that the next flush does not
/// fill, and so is the decision.
const BESIDE: u64 = 2 * 4096 + 2 * PART_RECORD;

/// The writes of a transaction in one of its shards. Dropping the value gives them up, and releases their space.
pub(crate) struct Side {
    shard: Rc<Shard>,
    stage: Option<Stage>,
}

enum Stage {
    Admitted(Admitted),
    Prepared {
        id: GlobalId,
        /// The LSN at which the record begins.
        since: Lsn,
        admitted: Admitted,
    },
}

impl Side {
    /// Waits until there is space for writes, whose keys are locked, and reserves it.
    pub(crate) async fn admit(shard: &Rc<Shard>, writes: Vec<Write>) -> Result<Side, Error> {
        let prepared = shard.prepare(writes).await?;
        let admitted = shard.admit(prepared, BESIDE).await?;
        Ok(Side { shard: Rc::clone(shard), stage: Some(Stage::Admitted(admitted)) })
    }

    /// Appends the operations as prepared, and begins to make them durable. Returns the LSN up to which the log must
    /// be durable before the transaction is decided.
    pub(crate) fn prepare(&mut self, id: GlobalId) -> Result<Lsn, Error> {
        let shard = &self.shard;
        shard.check_open()?;
        let Some(Stage::Admitted(mut admitted)) = self.stage.take() else { return Err(Error::Closed) };
        let ops = take(&mut admitted.operations.ops);
        let entry = Entry { part: Some(Part::Prepared(id)), ..Entry::of_ops(ops) };
        let (since, lsn) = shard.durable.log().append(&entry);
        admitted.operations.ops = entry.ops;
        shard.transactions.decisions_mut().prepare(id, since);
        self.stage = Some(Stage::Prepared { id, since, admitted });
        shard.durable.log().request(lsn).map(|()| lsn)
    }

    /// Commits the side of the coordinator, which decides the transaction; or the only side with writes, if `id` is
    /// `None`. `in_log` is set when the record is appended; from then on only the next opening knows the outcome if
    /// this fails.
    pub(crate) async fn decide(
        mut self,
        txn: TxnId,
        id: Option<GlobalId>,
        durability: Durability,
        in_log: &Cell<bool>,
    ) -> Result<(), Error> {
        self.shard.check_open()?;
        let Some(Stage::Admitted(admitted)) = self.stage.take() else { return Err(Error::Closed) };
        // The decisions of the others may become durable at any time, so this one must be durable before.
        let is_relaxed = durability == Durability::Relaxed && id.is_some();
        let durability = if is_relaxed { Durability::Group } else { durability };
        let entry = Entry { part: id.map(Part::Decides), ..Entry::default() };
        self.shard.commit_admitted(txn, admitted, entry, durability, in_log).await.map(drop)
    }

    /// Commits a prepared side. Returns the place of the decision in the log. `in_log` is set, and the locks are
    /// released when the operations are applied.
    pub(crate) fn finish(mut self, txn: TxnId, in_log: &Cell<bool>) -> Result<LoggedAt, Error> {
        let shard = Rc::clone(&self.shard);
        let Some(Stage::Prepared { id, since, admitted }) = self.stage.take() else {
            return Err(Error::Closed);
        };
        let lsn = shard.log_outcome(id, true);
        let appended = shard.appended(admitted, (since, lsn), Durability::Relaxed);
        in_log.set(true);
        shard.apply_later(txn, appended);
        shard.durable.log().later(shard.options.relaxed_window);
        shard.counters.count(|counts| counts.commits += 1);
        Ok(LoggedAt { durable: shard.durable.log().durable_counter(), lsn })
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let room = match self.stage.take() {
            None => return,
            Some(Stage::Admitted(admitted)) => admitted.room,
            // A shard that has stopped may not know the outcome; the next opening does.
            Some(Stage::Prepared { .. }) if self.shard.health.check().is_err() => return,
            Some(Stage::Prepared { id, admitted, .. }) => {
                self.shard.log_outcome(id, false);
                admitted.room
            }
        };
        self.shard.give_back(room);
    }
}

impl Shard {
    /// Appends the decision about a prepared transaction. Returns the LSN of the record.
    pub(crate) fn append_decision(&self, id: GlobalId, committed: bool) -> Lsn {
        let entry = Entry { part: Some(Part::Decided { id, committed }), ..Entry::default() };
        self.durable.log().append(&entry).1
    }

    /// Does the same, and ends the wait for the decision.
    fn log_outcome(&self, id: GlobalId, committed: bool) -> Lsn {
        let lsn = self.append_decision(id, committed);
        self.transactions.decisions_mut().settle(id);
        self.transactions.notify_visible();
        lsn
    }

    /// Waits until no transaction is prepared and undecided.
    pub(crate) async fn until_decided(&self) -> Result<(), Error> {
        let done = || match self.health.check() {
            Err(error) => Some(Err(error)),
            Ok(()) => (!self.transactions.decisions().is_any_prepared()).then_some(Ok(())),
        };
        self.transactions.until_visible(done).await
    }

    /// Returns the log space that is kept to repeat decisions.
    pub(crate) fn room_for_decisions(&self) -> u64 {
        match self.transactions.decisions().decided() {
            0 => 0,
            decided => u64::from(self.durable.superblock().block_bytes) + decided * PART_RECORD,
        }
    }

    /// Repeats the decisions from before `goal` that other shards may need, if nothing else holds the redo point back.
    pub(crate) async fn carry_decisions(&self, goal: Lsn) -> Result<(), Error> {
        let unwritten = self.durable.pages().changed(|changed| changed.least());
        let goal = goal.min(self.durable.log().tail());
        let goal = [self.first_own_in_no_page(), unwritten].into_iter().flatten().fold(goal, Lsn::min);
        let ids = self.transactions.decisions_mut().decided_before(goal);
        let mut carried = Vec::with_capacity(ids.len());
        for id in ids {
            let entry = Entry { part: Some(Part::Decides(id)), ..Entry::default() };
            carried.push((id, self.durable.log().append(&entry)));
        }
        if let Some((_, (_, last))) = carried.last() {
            self.durable.log().sync(*last).await?;
        }
        let mut decisions = self.transactions.decisions_mut();
        carried.into_iter().for_each(|(id, (since, _))| decisions.carried(id, since));
        Ok(())
    }
}

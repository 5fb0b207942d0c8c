//! Commits a transaction. A commit is one value that moves from stage to stage (see [`stage`]):
//!
//! 1. *Prepare* ([`prepare`]) gives each write its target, the record cache or its leaf. The leaves are read
//!    into the pool, many at once. Large values that are replaced are read too, because readers of older
//!    states may need them and their pieces are deleted.
//! 2. *Admit* ([`admit`]) reserves space in the record cache, free pages and log space, for the worst case of
//!    the operations. A record in the log must be applied, so from here on a commit cannot fail for lack of
//!    space.
//! 3. *Append* appends the record to the log. It fixes the position of the commit in the commit order.
//! 4. *Apply* executes the operations in a background task. Nobody else reads or changes the keys meanwhile,
//!    because they are locked.
//! 5. *Release* releases the locks once all operations are applied, before the commit is durable. A
//!    transaction that then reads the changes comes later in the log, so it becomes durable and visible
//!    later.
//!
//! A transaction of several shards commits in each of them in this way, and in more steps; see [`across`].

mod stage;
mod admit;
mod prepare;
pub(crate) mod across;

pub(crate) use admit::Size;
pub(crate) use stage::Write;

use crate::format::log_record::Entry;
use crate::format::tree::{CATALOGUE, FIRST_USER_TREE};
use crate::memory::locks::TxnId;
use crate::shard::Shard;
use crate::shard::tree::Applied;
use crate::wait::insist;
use crate::{Durability, Error, Lsn};
use stage::{Admitted, Appended, Replaced, Target};
use std::cell::Cell;
use std::mem::take;
use std::rc::Rc;

impl Shard {
    /// Commits the writes of a transaction, whose keys are locked. Returns its LSN once the commit is
    /// visible, and durable as far as `durability` asks. `in_log` is set when the record is appended; from
    /// then on this function releases the locks.
    pub(crate) async fn commit(
        self: &Rc<Self>,
        txn: TxnId,
        writes: Vec<Write>,
        durability: Durability,
        in_log: &Cell<bool>,
    ) -> Result<Lsn, Error> {
        let prepared = self.prepare(writes).await?;
        let admitted = self.admit(prepared, 0).await?;
        self.check_open().inspect_err(|_| self.give_back(admitted.room))?;
        let entry = Entry::default();
        self.commit_admitted(txn, admitted, entry, durability, in_log).await
    }

    /// Commits writes that have their space. `entry` is the record of the commit without its operations.
    async fn commit_admitted(
        self: &Rc<Self>,
        txn: TxnId,
        admitted: Admitted,
        entry: Entry,
        durability: Durability,
        in_log: &Cell<bool>,
    ) -> Result<Lsn, Error> {
        let appended = self.append(admitted, entry, durability);
        in_log.set(true);
        if planted!(self.options, LockReleasedEarly) {
            self.release_locks(txn);
        }
        let lsn = appended.lsn;
        self.apply_later(txn, appended);
        let given_up = GivenUp { shard: self, lsn };
        let durable = self.make_durable(lsn, durability).await;
        std::mem::forget(given_up);
        durable?;
        self.until_visible(lsn).await?;
        self.counters.count(|counts| counts.commits += 1);
        Ok(lsn)
    }

    /// Appends the record of a commit to the log.
    fn append(&self, mut admitted: Admitted, entry: Entry, durability: Durability) -> Appended {
        let entry = Entry { ops: take(&mut admitted.operations.ops), ..entry };
        let at = self.durable.log().append(&entry);
        if let Some(part) = entry.part {
            self.transactions.decisions_mut().decide(part.id(), at.0);
        }
        admitted.operations.ops = entry.ops;
        self.appended(admitted, at, durability)
    }

    /// Gives a commit its place behind all others. Its first record begins at `since`, and the last one ends at `lsn`.
    fn appended(&self, admitted: Admitted, (since, lsn): (Lsn, Lsn), durability: Durability) -> Appended {
        let Admitted { operations, replaced, user_bytes, room, marks } = admitted;
        self.transactions.commits_mut().append(since, lsn, durability != Durability::Relaxed);
        for Replaced { tree, key, value } in replaced {
            self.state.versions_mut().keep_large(tree, &key, lsn, value);
        }
        self.counters.count(|counts| counts.user_bytes += user_bytes);
        Appended { operations, since, lsn, room, marks }
    }

    /// Applies a commit that is in the log. This takes a task of its own, because the caller may stop
    /// waiting, and a logged commit must be applied.
    fn apply_later(self: &Rc<Self>, txn: TxnId, appended: Appended) {
        let shard = Rc::clone(self);
        self.handle.spawn_awaited(async move {
            let Appended { operations, since, lsn, room, marks } = appended;
            for (op, target) in operations.iter() {
                let keep_old = op.tree >= FIRST_USER_TREE || op.tree == CATALOGUE;
                let at = Applied { since, lsn, keep_old };
                let applied = insist(async || match target {
                    Target::Cache => shard.apply_to_cache(shard.tree(op.tree)?, op, at).await,
                    Target::Leaf | Target::LeafForNow => shard.apply(shard.tree(op.tree)?, op, at).await,
                });
                if let Err(error) = applied.await {
                    shard.stop_unapplied(&error);
                    return;
                }
            }
            shard.transactions.commits_mut().applied(lsn);
            shard.release_locks(txn);
            shard.give_back(room);
            shard.evict_records_later();
            shard.advance();
            // The marks of these values are deleted only now, so the background task may look at the others.
            shard.unstage(marks.taken);
            if marks.is_put {
                shard.delete_marked_later();
            }
        });
    }

    /// Stops the store because a commit is in the log but could not be applied. Only recovery can make the
    /// pages agree with the log again.
    pub(crate) fn stop_unapplied(&self, error: &Error) -> Error {
        let stopped = self.health.stop(format!("a commit could not be applied: {error}"));
        self.stop_waiting();
        stopped
    }

    /// Makes the log durable as far as a commit asks.
    async fn make_durable(&self, lsn: Lsn, durability: Durability) -> Result<(), Error> {
        let synced = match durability {
            Durability::Flush => self.durable.log().sync(lsn).await,
            Durability::Group => self.durable.log().sync_together(lsn).await,
            Durability::Relaxed => {
                self.durable.log().later(self.options.relaxed_window);
                Ok(())
            }
        };
        self.advance();
        synced
    }

    /// Waits until the commits that a read-only transaction may have seen are visible. It is called at the
    /// end of a transaction that read under locks and wrote nothing.
    pub(crate) async fn until_settled(&self) -> Result<(), Error> {
        let last = self.transactions.commits().last();
        self.until_visible(last).await
    }
}

/// A commit in the log whose caller waits for it. If the caller drops its future early, dropping this value
/// makes the commit durable all the same, because others wait until it is visible.
struct GivenUp<'a> {
    shard: &'a Rc<Shard>,
    lsn: Lsn,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let (shard, lsn) = (Rc::clone(self.shard), self.lsn);
        self.shard.handle.spawn(async move {
            // The error needs no handling here: a log that cannot be written has stopped the store.
            let _ = shard.durable.log().sync(lsn).await;
            shard.advance();
        });
    }
}

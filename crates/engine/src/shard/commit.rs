//! The way of a transaction's writes: room is promised, what they replace is looked at, the record is appended, the
//! trees are changed, and the commit becomes visible.
//!
//! 1. *Prepare*: which writes become records by themselves (see [`crate::memory::record_cache`]), and which go to their leaves. Those leaves
//!    are brought into the pool, many at once. Large values that are replaced are read, because readers of older states will
//!    need them and their pieces go.
//! 2. *Admit*: room for records, pages and room in the log are promised, for the worst that the operations can need. What is in
//!    the log must be applied, so this is the last place where a commit can fail for want of room.
//! 3. *Append*: from here on the commit is in order, and the log makes it durable.
//! 4. *Apply*: a task of its own does the operations. Nobody else can see or change the keys: they are locked.
//! 5. *Release*: the locks go when everything is applied. A transaction that reads what is not durable yet comes later
//!    in the log, so it becomes durable later, and visible later.

use crate::format::large_value::LargeValue;
use crate::format::log_record::{Entry, Op};
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, longest_record};
use crate::format::tree::{CATALOGUE, FIRST_USER_TREE};
use crate::memory::locks::TxnId;
use crate::memory::record_cache::{Record, RecordCache};
use crate::shard::tree::{Applied, Seek};
use crate::shard::{Shard, count};
use crate::wait::{insist, together};
use crate::{Durability, Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Leaves that a commit asks the drive for at once.
const PREPARED_TOGETHER: usize = 32;

/// Free pages below which a store counts as almost full.
const ALMOST_FULL: u64 = 64;

/// A write of a transaction: tree, key, value.
pub type Write = (u32, Box<[u8]>, Option<Box<[u8]>>);

/// A large value that a write replaces.
struct Replaced {
    tree: u32,
    key: Box<[u8]>,
    value: Vec<u8>,
}

/// What a commit will need at most.
#[derive(Clone, Copy, Debug)]
struct Need {
    pages: u64,
    log: u64,
    /// Bytes promised to its records.
    records: u64,
}

/// An operation and where it is done.
struct Planned {
    op: Op,
    /// As a record by itself; else in its leaf.
    as_record: bool,
}

impl Planned {
    fn record(&self) -> Record<'_> {
        Record { tree: self.op.tree, key: &self.op.key, value: self.op.value.as_deref() }
    }
}

/// Pages that so many splits of leaves can make.
fn pages_for(splits: u64) -> u64 {
    splits + splits / 2 + 8
}

/// What was found about the leaf of a write.
struct Found {
    /// The leaf, unless it need not be known.
    leaf: Option<PageId>,
    large: Option<LargeValue>,
    as_record: bool,
}

/// What a commit has found out about its writes.
#[derive(Default)]
struct Prepared {
    /// Leaves that are changed.
    leaves: BTreeSet<PageId>,
    replaced: Vec<Replaced>,
    removals: Vec<Op>,
    /// Of each write.
    as_record: Vec<bool>,
}

impl<D: Device + 'static> Shard<D> {
    /// Commits the writes of a transaction, whose keys are locked. Returns its LSN once it is visible, and durable where
    /// `durability` says so. `in_log` is set when the record is appended; from then on the locks are released here.
    pub async fn commit(
        self: &Rc<Self>,
        txn: TxnId,
        writes: Vec<Write>,
        durability: Durability,
        in_log: &std::cell::Cell<bool>,
    ) -> Result<Lsn, Error> {
        let user_bytes: u64 = writes
            .iter()
            .map(|(_, key, value)| (key.len() + value.as_ref().map_or(0, |v| v.len())) as u64)
            .sum();
        let mut prepared = Prepared::default();
        for part in writes.chunks(PREPARED_TOGETHER) {
            self.prepare(part, &mut prepared).await?;
        }
        let Prepared { leaves, replaced, removals, as_record } = prepared;
        let in_leaf = |op: Op| Planned { op, as_record: false };
        let mut planned = Vec::with_capacity(writes.len());
        let most_long = longest_record(self.page_bytes());
        for ((tree, key, value), as_record) in std::iter::zip(writes, as_record) {
            let is_long = value.as_ref().is_some_and(|value| key.len() + value.len() > most_long);
            match value {
                Some(value) if is_long => {
                    let (place, pieces) = self.put_large(&value);
                    planned.extend(pieces.into_iter().map(in_leaf));
                    let value = Some(place.write().into());
                    planned.push(in_leaf(Op { tree, key, value, large: true }));
                }
                value => planned.push(Planned { op: Op { tree, key, value, large: false }, as_record }),
            }
        }
        // The pieces of an old value go when nothing leads to them any more: a reader that misses one looks again, and
        // finds the value among the old ones.
        planned.extend(removals.into_iter().map(in_leaf));
        let need = self.admit(&mut planned, leaves.len() as u64).await?;
        self.check_open().inspect_err(|_| self.give_back(need))?;
        let as_record: Vec<bool> = planned.iter().map(|planned| planned.as_record).collect();
        let ops = planned.into_iter().map(|planned| planned.op).collect();
        let entry = Entry { deltas: Vec::new(), ops };
        let (since, lsn) = self.log.append(&entry);
        in_log.set(true);
        self.commits.borrow_mut().append(since, lsn, durability != Durability::Relaxed);
        for Replaced { tree, key, value } in replaced {
            self.versions.borrow_mut().keep_large(tree, &key, lsn, value);
        }
        count(&self.counters.user_bytes, user_bytes);
        if planted!(self.options, LockReleasedEarly) {
            self.release_locks(txn);
        }
        self.apply_later(txn, std::iter::zip(entry.ops, as_record).collect(), (since, lsn), need);
        let given_up = GivenUp { shard: self, lsn };
        let durable = self.make_durable(lsn, durability).await;
        std::mem::forget(given_up);
        durable?;
        self.until_visible(lsn).await?;
        count(&self.counters.commits, 1);
        Ok(lsn)
    }

    /// Looks at the leaves of some writes, reading those that are needed and not in the pool all at once.
    async fn prepare(&self, writes: &[Write], prepared: &mut Prepared) -> Result<(), Error> {
        let looks: Vec<_> =
            writes.iter().map(|(tree, key, value)| self.look(*tree, key, value.is_some())).collect();
        for (found, (tree, key, _)) in std::iter::zip(together(looks).await, writes) {
            let Found { leaf, large, as_record } = found?;
            prepared.as_record.push(as_record);
            prepared.leaves.extend(leaf.filter(|_| !as_record));
            let (Some(place), Some(leaf)) = (large, leaf) else { continue };
            if place.bytes > self.log.capacity() {
                return Err(Error::corrupt(leaf, "it names a large value that was never written"));
            }
            prepared.removals.append(&mut self.delete_large(place));
            // The key is locked, so the value cannot go away meanwhile.
            let value =
                self.read_large(place).await?.ok_or_else(|| Error::corrupt(leaf, "a large value is gone"))?;
            prepared.replaced.push(Replaced { tree: *tree, key: key.clone(), value });
        }
        Ok(())
    }

    /// Looks where a key's write goes. A record by itself may not replace a large value, whose pieces go. Where a leaf is changed in
    /// the pool, or lacks so much that it will be split, a record would save nothing; but on a store that is almost full, one that takes
    /// another away needs no page.
    async fn look(&self, tree: u32, key: &[u8], is_put: bool) -> Result<Found, Error> {
        let is_written_anyway =
            |page| self.is_changed(page) || self.records.borrow().lacks_two_pages(page, self.page_bytes());
        let saves = |page| !is_written_anyway(page) || (!is_put && self.space.available() < ALMOST_FULL);
        let may_be_record = tree >= FIRST_USER_TREE && self.records.borrow().is_used();
        let tree = self.tree(tree)?;
        if may_be_record {
            if self.records.borrow().peek(tree.id, key).is_some() {
                return Ok(Found { leaf: None, large: None, as_record: true });
            }
            // In a store that has never had a large value, the leaf need not be read.
            if self.next_large.get() == 1 {
                let (_, leaf) = self.leaf_page(tree, key).await?;
                return Ok(Found { leaf: Some(leaf), large: None, as_record: saves(leaf) });
            }
        }
        let guard = self.find(tree, Seek::At(key), 0).await?;
        let node = leaf(guard.bytes())?;
        let large = match node.search(key).map(|index| node.value(index)) {
            Ok(Cell { bytes, large: true }) => Some(LargeValue::read(bytes)?),
            _ => None,
        };
        let page = page::number(guard.bytes());
        let as_record = may_be_record && large.is_none() && saves(page);
        Ok(Found { leaf: Some(page), large, as_record })
    }

    /// Whether a page is changed in the pool, and so will be written anyway.
    fn is_changed(&self, page: PageId) -> bool {
        self.pages.changed(|changed| changed.has(page))
    }

    /// The most that operations can need. Those in so many leaves: each leaf is split once, and again for each quarter of a page
    /// that is put into it; of the levels above, one node for every two. A record needs as much, so that a full store says so before
    /// there is no room to merge it; one that still cannot be merged stays a record.
    fn need(&self, planned: &[Planned], leaves: u64, records: u64) -> Result<Need, Error> {
        let page = u64::from(self.page_bytes());
        let bytes: u64 = planned.iter().map(|planned| planned.op.bytes() as u64).sum();
        let puts = planned.iter().filter(|planned| planned.op.value.is_some()).count() as u64;
        let as_records = planned.iter().filter(|planned| planned.as_record).count() as u64;
        let puts_as_records =
            planned.iter().filter(|planned| planned.as_record && planned.op.value.is_some()).count() as u64;
        let splits = puts.min(leaves + as_records + 2 + 4 * bytes / page);
        // Where only records go, no leaf changes, and there will be more room.
        let makes_room = planned.iter().all(|planned| planned.as_record && planned.op.value.is_none());
        let pages = if makes_room { 0 } else { pages_for(splits) };
        // What records split is logged when they are merged. A record that takes another away is not among the splits.
        let split_now = pages.saturating_sub(puts_as_records + puts_as_records / 2);
        Ok(Need { pages, log: self.log_need(bytes, split_now)?, records })
    }

    /// The log that operations of so many bytes can need which make so many pages. Fails where that is more than one transaction gets.
    fn log_need(&self, bytes: u64, pages: u64) -> Result<u64, Error> {
        let blocks = bytes / 4064 * 4096 + 8192;
        let need = blocks + pages * (u64::from(self.page_bytes()) / 2 + 1024);
        let most = self.log.capacity() / 4;
        if need > most {
            Err(Error::TransactionTooLarge { bytes, most: bytes * most / need })
        } else {
            Ok(need)
        }
    }

    /// Refuses a large value that no transaction could put by itself: nobody could put it again, and a repair could not save it.
    /// Its operations each put into a leaf.
    pub fn check_large(&self, ops: &[Op]) -> Result<(), Error> {
        let bytes = ops.iter().map(|op| op.bytes() as u64).sum();
        self.log_need(bytes, pages_for(ops.len() as u64)).map(drop)
    }

    /// Promises room to the records of a commit. Those for which there is none go to their leaves. Returns the bytes promised, and
    /// how many more leaves are changed.
    fn promise_records(&self, planned: &mut [Planned]) -> (u64, u64) {
        let mut records = self.records.borrow_mut();
        let (mut promised, mut leaves) = (0, 0);
        for planned in planned.iter_mut().filter(|planned| planned.as_record) {
            match records.promise(planned.record()) {
                Some(bytes) => promised += bytes,
                None => {
                    planned.as_record = false;
                    leaves += 1;
                }
            }
        }
        (promised, leaves)
    }

    /// Waits until there is room for a commit that changes so many leaves, and promises it.
    async fn admit(self: &Rc<Self>, planned: &mut [Planned], leaves: u64) -> Result<Need, Error> {
        let as_records = planned.iter().filter(|planned| planned.as_record);
        let bytes: u64 = as_records.map(|planned| RecordCache::promise_bytes(planned.record())).sum();
        if bytes > 0 {
            self.until_frames(bytes).await;
        }
        let (records, more_leaves) = self.promise_records(planned);
        let mut promise = Promise { shard: self, pages: 0, records };
        self.borrow_frames_later();
        if more_leaves > 0 {
            self.evict_records_later();
        }
        let need = self.need(planned, leaves + more_leaves, records)?;
        self.space.promise(need.pages)?;
        promise.pages = need.pages;
        let has_room = || {
            if let Err(error) = self.health.check() {
                return Some(Err(error));
            }
            let fits = self.has_room_in_log(need.log);
            if !fits {
                self.checkpoint_later(Lsn(u64::MAX));
            } else if let Some(goal) = self.checkpoint_goal() {
                self.checkpoint_later(goal);
            }
            fits.then_some(Ok(()))
        };
        self.room.until(has_room).await?;
        count(&self.promised_log, need.log);
        std::mem::forget(promise);
        Ok(need)
    }

    /// Where the redo point should move to at least, if that is due.
    fn checkpoint_goal(&self) -> Option<Lsn> {
        let records = self.records.borrow();
        let used = self.log.used();
        // Commits wait for room where more is used.
        let most = self.log.capacity().saturating_sub(self.log_kept());
        let kept = if records.is_log_tight() {
            // What takes records away, and so makes room on a full store, came last.
            used / 2
        } else if used > most / 16 * 13 {
            // An eighth at a time: what changes often is written and merged the less often the more is kept, and others wait behind a
            // checkpoint of much.
            most / 16 * 11
        } else {
            return None;
        };
        Some(Lsn(self.log.tail().0.saturating_sub(kept)))
    }

    /// Whether the log has room for so many bytes, beside what is promised, and for all pending records once more.
    pub fn has_room_in_log(&self, bytes: u64) -> bool {
        bytes + self.log_kept() <= self.log_left()
    }

    /// Bytes of the log that are not for commits: all pending records once more, and a sixteenth for the records of structure changes by
    /// others: recovery, bulk loads, new tables.
    fn log_kept(&self) -> u64 {
        self.log.capacity() / 16 + self.records.borrow().needed_log()
    }

    /// Bytes of the log that a split takes, or two nodes that become one.
    pub fn change_bytes(&self) -> u64 {
        3 * (u64::from(self.page_bytes()) / 2 + 1024) + 8192
    }

    /// Bytes of the log that are neither used nor promised.
    pub fn log_left(&self) -> u64 {
        self.log.capacity().saturating_sub(self.log.used() + self.promised_log.get())
    }

    fn give_back(&self, need: Need) {
        self.space.release(need.pages);
        self.records.borrow_mut().release(need.records);
        self.promised_log.set(self.promised_log.get() - need.log);
        count(&self.ended, 1);
        self.room.notify();
    }

    /// Applies a commit that is in the log, in a task of its own: whoever waits for it may give up.
    fn apply_later(self: &Rc<Self>, txn: TxnId, ops: Vec<(Op, bool)>, (since, lsn): (Lsn, Lsn), need: Need) {
        let shard = Rc::clone(self);
        self.handle.spawn_awaited(async move {
            for (op, as_record) in &ops {
                let keep_old = op.tree >= FIRST_USER_TREE || op.tree == CATALOGUE;
                let at = Applied { since, lsn, keep_old };
                let applied = insist(async || match as_record {
                    true => shard.apply_as_record(shard.tree(op.tree)?, op, at).await,
                    false => shard.apply(shard.tree(op.tree)?, op, at).await,
                });
                if let Err(error) = applied.await {
                    shard.stop_unapplied(&error);
                    return;
                }
            }
            shard.commits.borrow_mut().applied(lsn);
            shard.release_locks(txn);
            shard.give_back(need);
            shard.evict_records_later();
            shard.advance();
        });
    }

    /// Stops the store where a commit is in the log, and memory does not have it: only recovery can bring the two together.
    pub fn stop_unapplied(&self, error: &Error) -> Error {
        let stopped = self.health.stop(format!("a commit could not be applied: {error}"));
        self.stop_waiting();
        stopped
    }

    /// Sees to it that the log becomes durable as a commit asks for.
    async fn make_durable(&self, lsn: Lsn, durability: Durability) -> Result<(), Error> {
        let synced = match durability {
            Durability::Flush => self.log.sync(lsn).await,
            Durability::Group => self.log.sync_together(lsn).await,
            Durability::Relaxed => {
                self.log.later(self.options.relaxed_window);
                Ok(())
            }
        };
        self.advance();
        synced
    }

    /// Waits, at the end of a transaction that read under locks and wrote nothing, until what it may have seen is
    /// visible.
    pub async fn until_settled(&self) -> Result<(), Error> {
        let last = self.commits.borrow().last();
        self.until_visible(last).await
    }
}

/// A commit that is in the log and whose transaction waits no more. Others wait for it to be visible, so it becomes durable all the same.
struct GivenUp<'a, D: Device + 'static> {
    shard: &'a Rc<Shard<D>>,
    lsn: Lsn,
}

impl<D: Device + 'static> Drop for GivenUp<'_, D> {
    fn drop(&mut self) {
        let (shard, lsn) = (Rc::clone(self.shard), self.lsn);
        self.shard.handle.spawn(async move {
            // A log that cannot be written has stopped the store.
            let _ = shard.log.sync(lsn).await;
            shard.advance();
        });
    }
}

/// What is promised to a commit that is not admitted yet.
struct Promise<'a, D: Device + 'static> {
    shard: &'a Shard<D>,
    pages: u64,
    /// Bytes for records.
    records: u64,
}

impl<D: Device + 'static> Drop for Promise<'_, D> {
    fn drop(&mut self) {
        self.shard.space.release(self.pages);
        self.shard.records.borrow_mut().release(self.records);
        self.shard.room.notify();
    }
}

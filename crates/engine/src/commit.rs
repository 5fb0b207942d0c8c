//! The way of a transaction's writes: room is promised, what they replace is looked at, the record is appended, the
//! trees are changed, and the commit becomes visible.
//!
//! 1. *Prepare*: the leaves are brought into the pool, many at once. Large values that are replaced are read, because
//!    readers of older states will need them and their pieces go.
//! 2. *Admit*: pages and room in the log are promised, for the worst that the operations can need. What is in the log must
//!    be applied, so this is the last place where a commit can fail for want of room.
//! 3. *Append*: from here on the commit is in order, and the log makes it durable.
//! 4. *Apply*: a task of its own does the operations. Nobody else can see or change the keys: they are locked.
//! 5. *Release*: the locks go when everything is applied. A transaction that reads what is not durable yet comes later
//!    in the log, so it becomes durable later, and visible later.

use crate::locks::TxnId;
use crate::log::{Entry, Op};
use crate::page;
use crate::page::node::{Cell, longest_record};
use crate::shard::{Shard, count};
use crate::tree::{Applied, CATALOGUE, FIRST_USER_TREE, Place, Seek, leaf};
use crate::wait::{insist, together};
use crate::{Durability, Error, Lsn};
use fulgurite_base::{Nanos, PageId};
use fulgurite_device::Device;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Leaves that a commit asks the drive for at once.
const PREPARED_TOGETHER: usize = 32;

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
}

/// What was found about the leaf of a write.
struct Found {
    leaf: PageId,
    large: Option<Place>,
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
        let mut leaves = BTreeSet::new();
        let mut replaced = Vec::new();
        let mut ops = Vec::with_capacity(writes.len());
        let mut removals = Vec::new();
        for part in writes.chunks(PREPARED_TOGETHER) {
            self.prepare(part, &mut leaves, &mut replaced, &mut removals).await?;
        }
        let most_long = longest_record(self.page_bytes());
        for (tree, key, value) in writes {
            let is_long = value.as_ref().is_some_and(|value| key.len() + value.len() > most_long);
            match value {
                Some(value) if is_long => {
                    let (place, mut pieces) = self.put_large(&value);
                    ops.append(&mut pieces);
                    ops.push(Op { tree, key, value: Some(place.write().into()), large: true });
                }
                value => ops.push(Op { tree, key, value, large: false }),
            }
        }
        // The pieces of an old value go when nothing leads to them any more: a reader that misses one looks again, and
        // finds the value among the old ones.
        ops.append(&mut removals);
        let need = self.need(&ops, leaves.len() as u64)?;
        self.admit(need).await?;
        self.check_open().inspect_err(|_| self.give_back(need))?;
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
        self.apply_later(txn, entry.ops, (since, lsn), need);
        self.make_durable(lsn, durability).await?;
        self.until_visible(lsn).await?;
        count(&self.counters.commits, 1);
        Ok(lsn)
    }

    /// Looks at the leaves of some writes, reading those that are not in the pool all at once.
    async fn prepare(
        &self,
        writes: &[Write],
        leaves: &mut BTreeSet<PageId>,
        replaced: &mut Vec<Replaced>,
        removals: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let looks: Vec<_> = writes.iter().map(|(tree, key, _)| self.look(*tree, key)).collect();
        for (found, (tree, key, _)) in std::iter::zip(together(looks).await, writes) {
            let Found { leaf, large } = found?;
            leaves.insert(leaf);
            let Some(place) = large else { continue };
            if place.bytes > self.log.capacity() {
                return Err(Error::corrupt(leaf, "it names a large value that no log has taken"));
            }
            removals.append(&mut self.delete_large(place));
            // The key is locked, so the value cannot go away meanwhile.
            let value =
                self.read_large(place).await?.ok_or_else(|| Error::corrupt(leaf, "a large value is gone"))?;
            replaced.push(Replaced { tree: *tree, key: key.clone(), value });
        }
        Ok(())
    }

    async fn look(&self, tree: u32, key: &[u8]) -> Result<Found, Error> {
        let guard = self.find(self.tree(tree)?, Seek::At(key), 0).await?;
        let node = leaf(guard.bytes())?;
        let large = match node.search(key).map(|index| node.value(index)) {
            Ok(Cell { bytes, large: true }) => Some(Place::read(bytes)?),
            _ => None,
        };
        Ok(Found { leaf: page::number(guard.bytes()), large })
    }

    /// The most that operations on so many leaves can need: each leaf is split once, and again for each quarter of a
    /// page that is put into it; of the levels above, one node for every two.
    fn need(&self, ops: &[Op], leaves: u64) -> Result<Need, Error> {
        let page = u64::from(self.page_bytes());
        let bytes: u64 = ops.iter().map(|op| op.bytes() as u64).sum();
        let puts = ops.iter().filter(|op| op.value.is_some()).count() as u64;
        let splits = puts.min(leaves + 2 + 4 * bytes / page);
        let pages = splits + splits / 2 + 8;
        let blocks = bytes / 4064 * 4096 + 8192;
        let need = Need { pages, log: blocks + pages * (page / 2 + 1024) };
        let most = self.log.capacity() / 4;
        if need.log > most {
            let fits = bytes * most / need.log;
            return Err(Error::TransactionTooLarge { bytes, most: fits });
        }
        Ok(need)
    }

    /// Waits until there is room for a commit.
    async fn admit(self: &Rc<Self>, need: Need) -> Result<(), Error> {
        self.space.promise(need.pages)?;
        let promise = Promise { shard: self, pages: need.pages };
        let has_room = || {
            if let Err(error) = self.health.check() {
                return Some(Err(error));
            }
            // A sixteenth is for the records of structure changes by others: recovery, bulk loads, new tables.
            let most = self.log.capacity() - self.log.capacity() / 16;
            let used = self.log.used() + self.promised_log.get();
            let fits = used + need.log <= most;
            if !fits {
                self.checkpoint_later(Lsn(u64::MAX));
            } else if self.log.used() > self.log.capacity() / 2 {
                // A quarter of the ring is kept as it is: pages that change often are written less often that way.
                self.checkpoint_later(Lsn(self.log.tail().0.saturating_sub(self.log.capacity() / 4)));
            }
            fits.then_some(Ok(()))
        };
        self.room.until(has_room).await?;
        count(&self.promised_log, need.log);
        std::mem::forget(promise);
        Ok(())
    }

    fn give_back(&self, need: Need) {
        self.space.release(need.pages);
        self.promised_log.set(self.promised_log.get() - need.log);
        self.room.notify();
    }

    /// Applies a commit that is in the log, in a task of its own: whoever waits for it may give up.
    fn apply_later(self: &Rc<Self>, txn: TxnId, ops: Vec<Op>, (since, lsn): (Lsn, Lsn), need: Need) {
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            for op in &ops {
                let keep_old = op.tree >= FIRST_USER_TREE || op.tree == CATALOGUE;
                let at = Applied { since, lsn, keep_old };
                let applied = insist(async || shard.apply(shard.tree(op.tree)?, op, at).await);
                if let Err(error) = applied.await {
                    // The commit is in the log, and memory does not have it: only recovery can bring the two together.
                    shard.health.stop(format!("a commit could not be applied: {error}"));
                    shard.stop_waiting();
                    return;
                }
            }
            shard.commits.borrow_mut().applied(lsn);
            shard.checkpoint_is_vain.set(false);
            shard.release_locks(txn);
            shard.give_back(need);
            shard.advance();
        });
    }

    /// Sees to it that the log becomes durable as a commit asks for.
    async fn make_durable(&self, lsn: Lsn, durability: Durability) -> Result<(), Error> {
        let synced = match durability {
            Durability::Flush => self.log.sync(lsn, Nanos::ZERO).await,
            Durability::Group => self.log.sync(lsn, self.options.group_window).await,
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

/// Pages promised to a commit that is not admitted yet.
struct Promise<'a, D: Device + 'static> {
    shard: &'a Shard<D>,
    pages: u64,
}

impl<D: Device + 'static> Drop for Promise<'_, D> {
    fn drop(&mut self) {
        self.shard.space.release(self.pages);
    }
}

//! Copies pending records forward: appends those in use to the log again, so that the redo point can move
//! without a write of their leaves.

use super::merge::Reason;
use crate::format::log_record::{Entry, Op};
use crate::format::tree::Tree;
use crate::memory::record_cache::{Record, RecordCache};
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;

/// The number of chunks of the record cache that are examined before other tasks get a turn.
const CHUNKS_TOGETHER: usize = 32;
/// The number of attempts to merge the records of a tree that nobody changes.
const MOST_ATTEMPTS: u32 = 4;
/// The approximate number of bytes of records that are copied forward in one log record.
const CARRIED_TOGETHER: u64 = 64 << 10;

impl Shard {
    /// Merges or copies forward the records that have been pending since before `goal`, as far as possible.
    pub(crate) async fn settle_records(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        let tail = self.durable.log().tail();
        if goal > tail {
            self.merge_all().await;
        } else {
            let cold = self.cold_before(goal).await;
            self.merge_leaves(cold, Reason::Log).await;
        }
        // The remaining records are in use, or their leaf must be split and the log has no space for a split.
        // Log space is reserved to copy each of them forward once. If the redo point is also held back by an
        // unapplied commit, by a transaction of several shards or by recovery, copying records from behind that point
        // would spend the reservation in vain, so the goal is lowered.
        let unapplied = self.first_unapplied();
        let goal = [self.durable.unredone(), unapplied].into_iter().flatten().fold(goal.min(tail), Lsn::min);
        // Copies the oldest records first, in parts. A copied record frees its old log space once the copy is
        // durable. After a crash the log may not have space for all remaining records, but each part lets the
        // redo point move and so frees space for the next.
        let mut chunks = self.state.records().chunks_pending_before(goal);
        chunks.sort_by_cached_key(|chunk| Reverse(self.state.records().oldest_in(*chunk)));
        let mut keys = VecDeque::new();
        while !chunks.is_empty() || !keys.is_empty() {
            if keys.is_empty() {
                let next = chunks.split_off(chunks.len().saturating_sub(CHUNKS_TOGETHER));
                next.iter().rev().for_each(|chunk| self.state.records().add_keys(*chunk, goal, &mut keys));
            }
            let ops = self.take_along(goal, &mut keys);
            if ops.is_empty() {
                self.handle.pause().await;
            } else if !self.carry(ops).await? {
                break;
            }
        }
        self.find_sinces().await;
        Ok(())
    }

    /// Returns the leaves of records that have been pending since before `goal` and were not in use lately.
    /// The other records lose their mark of use.
    async fn cold_before(&self, goal: Lsn) -> Vec<PageId> {
        let chunks = self.state.records().chunks_pending_before(goal);
        let mut leaves = Vec::new();
        self.each_chunk(&chunks, |records, chunk| {
            records.add_cold(chunk, goal, &mut leaves);
            true
        })
        .await;
        leaves
    }

    /// Finds the oldest pending record of every chunk that contains pending records.
    async fn find_sinces(&self) {
        let chunks = self.state.records().chunks_pending_before(Lsn(u64::MAX));
        self.each_chunk(&chunks, |records, chunk| {
            records.find_since(chunk);
            true
        })
        .await;
    }

    /// Calls `look` for the chunks until it returns false. Other tasks get a turn after every
    /// [`CHUNKS_TOGETHER`] chunks.
    pub(crate) async fn each_chunk(
        &self,
        chunks: &[u32],
        mut look: impl FnMut(&mut RecordCache, u32) -> bool,
    ) {
        for together in chunks.chunks(CHUNKS_TOGETHER) {
            if !together.iter().all(|chunk| look(&mut self.state.records_mut(), *chunk)) {
                return;
            }
            self.handle.pause().await;
        }
    }

    /// Merges all records of a tree that nobody writes to. Fails with [`Error::Full`] if there are no pages
    /// for them.
    pub(crate) async fn settle_tree(self: &Rc<Self>, tree: Tree) -> Result<(), Error> {
        for _ in 0..MOST_ATTEMPTS {
            self.merge_all().await;
            self.check_open()?;
            if !self.state.records().has_pending(tree.id) {
                return Ok(());
            }
            // The log may have had no space for a split; a checkpoint frees some.
            self.checkpoint(Lsn(u64::MAX)).await?;
        }
        let (free, pages) = (self.state.space().available(), self.state.space().pages());
        Err(Error::Full { free, pages, needed: free + 1 })
    }

    /// Returns the next operations to copy forward, from these keys. While a commit or a prepared transaction is in the
    /// log and not applied, locked keys are left out: it may write such a key, and an older value behind its record in
    /// the log would undo it, or hold the log for less than the record. If every commit is applied, locked keys are
    /// copied too, because the owner of a lock may be waiting for this log space.
    fn take_along(&self, goal: Lsn, keys: &mut VecDeque<(u32, Vec<u8>)>) -> Vec<Op> {
        let (records, locks) = (self.state.records(), self.transactions.locks());
        let is_unapplied = self.first_unapplied().is_some();
        let most = CARRIED_TOGETHER.min(self.room_to_carry());
        let (mut ops, mut bytes) = (Vec::new(), 0);
        while let Some((tree, key)) = keys.pop_front() {
            let Some(value) = records.pending_value(tree, &key, goal) else { continue };
            if is_unapplied && locks.is_locked(tree, &key) {
                continue;
            }
            bytes += RecordCache::log_bytes([Record { tree, key: &key, value }].into_iter());
            if bytes > most && !ops.is_empty() {
                keys.push_front((tree, key));
                break;
            }
            ops.push(Op { tree, key: key.into(), value: value.map(Box::from), large: false });
        }
        ops
    }

    /// Appends operations to the log again. Returns false if it has no space for them.
    async fn carry(&self, ops: Vec<Op>) -> Result<bool, Error> {
        let entries = ops.iter().map(|op| Record { tree: op.tree, key: &op.key, value: op.value.as_deref() });
        if RecordCache::log_bytes(entries) > self.room_to_carry() {
            return Ok(false);
        }
        // No other task runs between reading the values and the append, so they are the newest.
        let entry = Entry::of_ops(ops);
        let (since, lsn) = self.durable.log().append(&entry);
        if !planted!(self.options, CarriedTooEarly) {
            self.durable.log().sync(lsn).await?;
        }
        let mut records = self.state.records_mut();
        for op in &entry.ops {
            records.carried(op.tree, &op.key, since);
        }
        Ok(true)
    }
}

//! Pending records that are in demand are appended to the log again, so that their leaves need not be
//! written.

use super::merge::Reason;
use crate::format::log_record::{Entry, Op};
use crate::format::tree::Tree;
use crate::memory::record_cache::{Record, RecordCache};
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;

/// Chunks that are looked through in one slice, before other tasks have a turn.
const CHUNKS_TOGETHER: usize = 32;
/// Attempts to merge the records of a tree that nobody changes.
const MOST_ATTEMPTS: u32 = 4;
/// Bytes of records that one record of the log carries, about.
const CARRIED_TOGETHER: u64 = 64 << 10;

impl<D: Device + 'static> Shard<D> {
    /// Merges or carries the records that have been pending since before `goal`, as far as possible.
    pub(crate) async fn settle_records(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        let tail = self.durable.log().tail();
        if goal > tail {
            self.merge_all().await;
        } else {
            let cold = self.cold_before(goal).await;
            self.merge_leaves(cold, Reason::Log).await;
        }
        // The remaining records are in demand, or their leaf must be split and the log has no room for a
        // split. The log has room to carry each of them once. Carrying beyond another limit of the redo point
        // would use that room up in vain.
        let unapplied = self.transactions.commits().first_unapplied();
        let goal = [self.durable.unredone(), unapplied].into_iter().flatten().fold(goal.min(tail), Lsn::min);
        // In parts, the oldest first: a carried record counts once it is durable. After a crash the log may
        // not have room for all that is left, but each part lets the redo point move and so makes room.
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

    /// The leaves of records that have been pending since before `goal` and are not in demand. The other
    /// records count as not in demand from now on.
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

    /// Finds the oldest pending record of every chunk that has some.
    async fn find_sinces(&self) {
        let chunks = self.state.records().chunks_pending_before(Lsn(u64::MAX));
        self.each_chunk(&chunks, |records, chunk| {
            records.find_since(chunk);
            true
        })
        .await;
    }

    /// Looks at chunks, some of them in one slice, until `look` returns false.
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
            // The log may have had no room for a split.
            self.checkpoint(Lsn(u64::MAX)).await?;
        }
        let (free, pages) = (self.state.space().available(), self.state.space().pages());
        Err(Error::Full { free, pages, needed: free + 1 })
    }

    /// The next operations to carry, of these keys. While a commit is in the log and not applied, locked keys
    /// are left out: the key may be of that commit, and an older value behind it in the log would undo it. If
    /// no commit is unapplied, locked keys are carried too: the owner may be waiting for this room.
    fn take_along(&self, goal: Lsn, keys: &mut VecDeque<(u32, Vec<u8>)>) -> Vec<Op> {
        let (records, locks) = (self.state.records(), self.transactions.locks());
        let is_unapplied = self.transactions.commits().first_unapplied().is_some();
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

    /// Appends operations to the log once more. False if it has no room for them.
    async fn carry(&self, ops: Vec<Op>) -> Result<bool, Error> {
        let entries = ops.iter().map(|op| Record { tree: op.tree, key: &op.key, value: op.value.as_deref() });
        if RecordCache::log_bytes(entries) > self.room_to_carry() {
            return Ok(false);
        }
        // Nothing waits between here and the append, so the values are the newest.
        let entry = Entry { deltas: Vec::new(), ops };
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

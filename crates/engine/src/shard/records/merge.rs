//! Merges pending records into their leaves.

use crate::Error;
use crate::format::log_record::OpRef;
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::tree::Tree;
use crate::memory::record_cache::{Merged, Record, Swept};
use crate::shard::Shard;
use crate::shard::tree::{change, should_look};
use fulgurite_base::PageId;
use std::rc::Rc;

/// The number of read commands for leaves in flight while the leaves before are merged. With twice as many,
/// the p99 latency of other reads is half as long again; with half as many, merging falls behind.
const READ_TOGETHER: u32 = 8;
/// The number of neighbourhoods of leaves that are examined before other tasks get a turn.
const NEIGHBOURHOODS_TOGETHER: usize = 64;
/// The number of leaves that are merged before other tasks get a turn. Reads and commits wait meanwhile.
const MERGED_AT_ONCE: usize = 8;
/// The number of free pages that merging leaves unused: a transaction that deletes, and so frees space, needs
/// some.
const PAGES: u64 = 32;
/// The number of successive attempts that merge nothing after which eviction gives up.
const MOST_FAILURES: u32 = 64;

/// The reason for a merge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Other records need the memory.
    Room,
    /// The log space of the records is to become free, or no record is to stay pending.
    Log,
}

impl Reason {
    /// Returns the number of cold pending records from which on a neighbouring leaf is merged too. For
    /// [`Reason::Room`] one is enough: the sweep has found the whole neighbourhood worth a merge, and
    /// afterwards all its records have the same age. For [`Reason::Log`] a single record is not worth a write
    /// of its leaf.
    fn least_along(self) -> usize {
        match self {
            Reason::Room => 1,
            Reason::Log => 2,
        }
    }
}

/// A record that does not fit into its leaf.
pub(crate) struct TooLarge {
    tree: Tree,
    key: Vec<u8>,
    cost: usize,
}

impl Shard {
    /// Evicts records in a background task until the cache has space again. It does nothing if such a task
    /// runs.
    pub(crate) fn evict_records_later(self: &Rc<Self>) {
        if !self.state.records().is_tight() || !self.jobs.eviction().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.evict_records().await;
            shard.jobs.eviction().end();
        });
    }

    async fn evict_records(self: &Rc<Self>) {
        let (mut left, mut failures) = (self.state.records().most_sweeps(), 0);
        while self.state.records().is_tight() && self.health.check().is_ok() {
            if left == 0 || failures == MOST_FAILURES {
                return;
            }
            let Swept { behind, stay, swept } = self.state.records_mut().sweep_some();
            if swept == 0 {
                return;
            }
            left = left.saturating_sub(swept);
            if behind.is_empty() {
                // Other tasks get a turn here: if most records are in use, very many chunks are examined.
                self.handle.pause().await;
            } else {
                self.merge_leaves(behind.clone(), Reason::Room).await;
                let mut records = self.state.records_mut();
                if behind.iter().all(|leaf| records.lacks(*leaf)) {
                    // Lowers the threshold: on a full store, the leaves with the most pending records may be
                    // the very leaves that cannot be split for lack of pages.
                    records.forget_threshold();
                    failures += 1;
                }
            }
            // The records of leaves that could not be merged get a second chance.
            for _ in 0..stay {
                self.state.records_mut().sweep(0, None);
            }
        }
    }

    /// Merges all records that are pending now, as far as log space and the drive allow.
    pub(crate) async fn merge_all(&self) {
        let leaves = self.state.records().leaves();
        self.merge_leaves(leaves, Reason::Log).await;
    }

    /// Merges the pending records of some leaves and of their neighbours. A record that cannot be merged
    /// stays pending, and a later merge tries again.
    pub(crate) async fn merge_leaves(&self, leaves: Vec<PageId>, reason: Reason) {
        let leaves = self.with_neighbours(leaves, reason.least_along()).await;
        let leaves = self.merge_as_deltas(leaves, reason).await;
        let most = self.most_ahead(4 * READ_TOGETHER);
        let (mut part, mut rest) = next_part(&leaves, most);
        // An error is ignored here, because the merge meets it again when it reads the page.
        let _ = self.durable.pool().fetch(part).await;
        while !part.is_empty() {
            // The drive reads the leaves of the next part while those of this part are merged.
            let next;
            (next, rest) = next_part(rest, most);
            let _ = self.durable.pool().fetch(next).await;
            for (at, leaf) in part.iter().enumerate() {
                if self.health.check().is_err() {
                    return;
                }
                if at % MERGED_AT_ONCE == MERGED_AT_ONCE - 1 {
                    self.handle.pause().await;
                }
                // An error is ignored, because a leaf that cannot be read or split now must not keep other
                // leaves from being merged.
                let _ = self.merge_leaf(*leaf, reason).await;
            }
            self.handle.pause().await;
            part = next;
        }
    }

    /// Returns the leaves in order, with the leaves of their neighbourhoods that have at least `least` cold
    /// pending records.
    async fn with_neighbours(&self, mut leaves: Vec<PageId>, least: usize) -> Vec<PageId> {
        leaves.sort_unstable();
        leaves.dedup();
        let mut all = Vec::with_capacity(leaves.len());
        let size = self.state.records().neighbourhood();
        for (at, near) in leaves.chunk_by(|a, b| a.0 / size == b.0 / size).enumerate() {
            self.state.records().add_neighbourhood(near, least, &mut all);
            if at % NEIGHBOURHOODS_TOGETHER == NEIGHBOURHOODS_TOGETHER - 1 {
                self.handle.pause().await;
            }
        }
        all
    }

    async fn merge_leaf(&self, number: PageId, reason: Reason) -> Result<(), Error> {
        let mut number = number;
        while self.state.records().lacks(number) {
            let mut guard = self.write_page(number).await?;
            let before = leaf(guard.bytes())?.used();
            let too_large = self.merge_into(number, guard.bytes_mut())?;
            if reason == Reason::Room {
                self.state.records_mut().leaf_left(number);
            }
            let sparse = self.sparse_key(guard.bytes(), before)?;
            drop(guard);
            if let Some(TooLarge { tree, key, cost }) = too_large {
                let has_pages = self.state.space().available() >= PAGES;
                let Some(_room) = self.room_for_change().filter(|_| has_pages) else { return Ok(()) };
                self.make_room(tree, &key, cost).await?;
                // The split may have moved the record to another leaf.
                match self.state.records().leaf_of(tree.id, &key) {
                    Some(leaf) => number = leaf,
                    None => return Ok(()),
                }
            } else if let Some((tree, key)) = sparse
                && !self.shrink(tree, &key).await?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reserves log space for a split or a merge of nodes. It does not wait for space, because space comes
    /// from a checkpoint, and a checkpoint may itself be waiting for this merge.
    pub(crate) fn room_for_change(&self) -> Option<Room<'_>> {
        let bytes = self.change_bytes();
        self.has_room_in_log(bytes).then(|| {
            self.log_room.reserve(bytes);
            Room { shard: self, bytes }
        })
    }

    /// Waits for log space of the engine's own operations or structure changes, and reserves it. The caller has no
    /// turn to change the structure, for which the checkpoint that makes space may wait.
    pub(crate) async fn room_when_free(self: &Rc<Self>, bytes: u64) -> Result<Room<'_>, Error> {
        self.until_log_fits(bytes).await?;
        self.log_room.reserve(bytes);
        Ok(Room { shard: self, bytes })
    }

    /// Puts the pending records of a leaf into its bytes, as far as they fit. The bytes and the state of the
    /// record cache change in one step, without a wait in between.
    pub(crate) fn merge_into(&self, number: PageId, bytes: &mut [u8]) -> Result<Option<TooLarge>, Error> {
        let tree = self.tree(page::tree(bytes))?;
        let mut records = self.state.records_mut();
        let put = |entry: Record<'_>| {
            let Record { tree: of, key, value } = entry;
            let node = leaf(bytes)?;
            if node.level() > 0 || of != tree.id || !node.covers(key) {
                return Err(self
                    .health
                    .stop(format!("page {} is not the leaf of a pending record", number.0)));
            }
            let old = node.search(key).ok().map(|index| node.value(index));
            self.state.versions_mut().settle(of, key, old);
            change(bytes, OpRef { tree: of, key, value, large: false })
        };
        let Merged { since, records: merged, too_large, outcome } = records.merge(number, put);
        if merged > 0 {
            // The records are somewhere in the log, so all of them are before its tail.
            let lsn = page::lsn(bytes).max(self.durable.log().tail());
            page::set_lsn(bytes, lsn);
            self.mark_leaf(number, bytes, since);
        }
        outcome?;
        let too_large = too_large.map(|place| {
            let Record { key, value, .. } = records.entry(place);
            let cost = leaf(bytes).map_or(0, |node| node.cost(key.len(), value.map_or(0, <[u8]>::len)));
            TooLarge { tree, key: key.to_vec(), cost }
        });
        Ok(too_large)
    }

    /// Returns the tree of a leaf that should be merged with a neighbour, and a key of the leaf; `None` if it
    /// should not. Its records took `before` bytes before some were taken from it.
    pub(crate) fn sparse_key(&self, bytes: &[u8], before: usize) -> Result<Option<(Tree, Vec<u8>)>, Error> {
        let (tree, node) = (self.tree(page::tree(bytes))?, leaf(bytes)?);
        let is_root = page::number(bytes) == tree.root;
        let should_merge = !is_root && node.level() == 0 && should_look(node, before);
        Ok(should_merge.then(|| (tree, node.low().to_vec())))
    }
}

/// Splits a list of leaves in two: the first ones, at most `most`, that [`READ_TOGETHER`] commands read, and
/// the rest.
fn next_part(leaves: &[PageId], most: usize) -> (&[PageId], &[PageId]) {
    let mut commands = 1;
    let is_enough = |at: &usize| {
        commands += u32::from(leaves[*at].0 != leaves[at - 1].0 + 1);
        commands > READ_TOGETHER
    };
    let most = most.min(leaves.len());
    leaves.split_at((1..most).find(is_enough).unwrap_or(most))
}

/// Reserved log space. Dropping the value releases it.
pub(crate) struct Room<'a> {
    shard: &'a Shard,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.shard.log_room.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_read_at_once_by_so_many_commands() {
        // The list has ten groups of three adjacent leaves; eight commands read the first eight groups.
        let leaves: Vec<PageId> =
            (0..10).flat_map(|run| (0..3).map(move |leaf| PageId(10 * run + leaf))).collect();
        let parts = |most: usize| {
            let (part, rest) = next_part(&leaves, most);
            let (next, none) = next_part(rest, most);
            (part.len(), next.len(), none.len())
        };
        assert_eq!(parts(30), (24, 6, 0));
        assert_eq!(parts(20), (20, 10, 0), "no more than there are frames for");
        assert_eq!(next_part(&[], 20).0.len(), 0);
    }
}

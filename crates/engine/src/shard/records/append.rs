//! Merges pending records into leaves that are not in memory, as deltas: the leaves are not read.

use super::merge::Reason;
use crate::Lsn;
use crate::media::write::out_of_place::Begun;
use crate::memory::record_cache::Record;
use crate::shard::Shard;
use crate::wait::to_its_end;
use fulgurite_base::PageId;

/// The number of deltas that are written together.
const WRITTEN_TOGETHER: usize = 64;

impl Shard {
    /// Merges the pending records of those leaves that can get them as a delta. Returns the other leaves.
    pub(crate) async fn merge_as_deltas(&self, leaves: Vec<PageId>, reason: Reason) -> Vec<PageId> {
        if !self.durable.pages().backend().out_of_place().is_some_and(|place| place.makes_deltas()) {
            return leaves;
        }
        let mut rest = Vec::with_capacity(leaves.len());
        let mut leaves = leaves.into_iter().peekable();
        while leaves.peek().is_some() && self.health.check().is_ok() {
            let mut begun = Vec::new();
            while let Some(leaf) = leaves.next_if(|_| begun.len() < WRITTEN_TOGETHER) {
                match self.begin_delta(leaf, reason) {
                    Some(delta) => begun.push(delta),
                    None => rest.push(leaf),
                }
            }
            if begun.is_empty() {
                continue;
            }
            // The records have left memory, so the write ends even if the caller gives up. An error has stopped
            // the store.
            let _ = to_its_end(&self.handle, self.durable.pages().write_deltas(begun)).await;
        }
        rest.extend(leaves);
        rest
    }

    /// Moves the pending records of a leaf into a delta, if all of them fit into one and the leaf need not be
    /// read for any of them. No other task runs meanwhile. Returns the delta with the LSN from which the log has
    /// its records.
    fn begin_delta(&self, leaf: PageId, reason: Reason) -> Option<(Begun, Lsn)> {
        let place = self.durable.pages().backend().out_of_place()?;
        if self.durable.pool().has(leaf) {
            return None;
        }
        let mut draft = place.draft(leaf)?;
        let mut records = self.state.records_mut();
        let tree = records.of_leaf(leaf).next()?.tree;
        let fits = {
            let versions = self.state.versions();
            let takes = |Record { tree: of, key, value }: Record<'_>| {
                // A leaf that becomes sparse must be noticed, so deletions are not put into deltas.
                let Some(value) = value else { return false };
                of == tree && !versions.is_in_leaf(tree, key) && draft.add(key, value)
            };
            records.of_leaf(leaf).all(takes)
        };
        if !fits {
            return None;
        }
        let merged = records.merge(leaf, |_| Ok(true));
        if reason == Reason::Room {
            records.leaf_left(leaf);
        }
        drop(records);
        // The records are somewhere in the log, so all of them are before its tail.
        let structure = draft.structure;
        let begun = place.begin_delta(draft, tree, self.durable.log().tail());
        self.note_put(leaf, structure, merged.since);
        Some((begun, merged.since))
    }
}

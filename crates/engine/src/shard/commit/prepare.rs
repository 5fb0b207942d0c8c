//! The first stage of a commit: chooses the target of each write, and reads the large values that are
//! replaced.

use super::stage::{MOST_REMOVALS, Prepared, Replaced, Target, Write};
use crate::Error;
use crate::format::large_value::LargeValue;
use crate::format::log_record::Op;
use crate::format::page;
use crate::format::page::node::{Cell, leaf, longest_record};
use crate::format::tree::FIRST_USER_TREE;
use crate::shard::Shard;
use crate::shard::tree::{Seek, mark};
use crate::wait::together;
use fulgurite_base::PageId;
use std::collections::BTreeSet;

/// The number of leaves that a commit requests from the drive at once.
const PREPARED_TOGETHER: usize = 32;

/// The number of free pages below which a store counts as almost full.
const ALMOST_FULL: u64 = 64;

/// The outcome of the search for the target of a write.
struct Found {
    /// The leaf of the key; `None` if the target could be chosen without it.
    leaf: Option<PageId>,
    /// The large value that the leaf holds under the key; `None` if there is none.
    large: Option<LargeValue>,
    target: Target,
}

impl Shard {
    /// Finds the target of each write, and reads the large values that are replaced.
    pub(super) async fn prepare(&self, writes: Vec<Write>) -> Result<Prepared, Error> {
        let bytes = |write: &Write| write.key.len() + write.value.as_ref().map_or(0, |value| value.len());
        let user_bytes = writes.iter().map(|write| bytes(write) as u64).sum();
        let mut prepared = Prepared { user_bytes, ..Prepared::default() };
        let (mut fixed, mut for_now) = (BTreeSet::new(), BTreeSet::new());
        let (mut removals, mut targets) = (Vec::new(), Vec::new());
        for part in writes.chunks(PREPARED_TOGETHER) {
            let looks = part.iter().map(|write| self.look(write)).collect();
            for (found, write) in std::iter::zip(together(looks).await, part) {
                let Found { leaf, large, target } = found?;
                targets.push(target);
                match target {
                    Target::Leaf => fixed.extend(leaf),
                    Target::LeafForNow => for_now.extend(leaf),
                    Target::Cache => {}
                }
                if let (Some(large), Some(leaf)) = (large, leaf) {
                    prepared.replaced.push(self.read_replaced(write, large, leaf).await?);
                    // Thousands of pieces in a transaction, or those of thousands of values, are deleted later.
                    if removals.len() + large.pieces(self.page_bytes()) as usize > MOST_REMOVALS {
                        prepared.marks.is_put = true;
                        removals.push(mark(large.number, Some(Box::default())));
                    } else {
                        removals.append(&mut self.delete_large(large));
                    }
                }
            }
        }
        let most_inline = longest_record(self.page_bytes());
        let operations = &mut prepared.operations;
        for (write, target) in std::iter::zip(writes, targets) {
            let is_large = write.value.is_some() && bytes(&write) > most_inline;
            let Write { tree, key, value, staged } = write;
            match value {
                Some(_) if let Some(large) = staged => {
                    let value = Some(large.write().into());
                    operations.push(Op { tree, key, value, large: true }, Target::Leaf);
                    operations.push(mark(large.number, None), Target::Leaf);
                    prepared.marks.taken.push(large.number);
                }
                Some(value) if is_large => {
                    let (large, pieces) = self.put_large(self.durable.take_large_number(), &value);
                    pieces.into_iter().for_each(|piece| operations.push(piece, Target::Leaf));
                    let value = Some(large.write().into());
                    operations.push(Op { tree, key, value, large: true }, Target::Leaf);
                }
                value => operations.push(Op { tree, key, value, large: false }, target),
            }
        }
        // The pieces of a replaced value are deleted last: a reader that misses a piece searches again, and
        // by then finds the value among the old versions.
        removals.into_iter().for_each(|removal| operations.push(removal, Target::Leaf));
        prepared.leaves = (fixed.len() as u64, for_now.difference(&fixed).count() as u64);
        Ok(prepared)
    }

    /// Reads the large value that a write replaces. Its key is locked, so the value cannot change meanwhile.
    async fn read_replaced(&self, write: &Write, large: LargeValue, leaf: PageId) -> Result<Replaced, Error> {
        if large.bytes > self.state.space().pages() * u64::from(self.page_bytes()) {
            return Err(Error::corrupt(leaf, "it names a large value that was never written"));
        }
        let value = self.read_large(large).await?;
        let value = value.ok_or_else(|| Error::corrupt(leaf, "a large value is gone"))?;
        Ok(Replaced { tree: write.tree, key: write.key.clone(), value })
    }

    /// Chooses the target of a write.
    ///
    /// The target is the record cache if this saves a write of the leaf. It saves nothing if the leaf is
    /// dirty in the pool, or has so many pending records that it will be split. On a store that is almost
    /// full, a deletion still goes to the cache, because it needs no page there. A record in the cache may
    /// not replace a large value, whose pieces must be deleted.
    async fn look(&self, write: &Write) -> Result<Found, Error> {
        let Write { tree, key, value, .. } = write;
        let is_written_anyway =
            |page| self.is_changed(page) || self.state.records().lacks_two_pages(page, self.page_bytes());
        let is_saving = |page| {
            !is_written_anyway(page) || (value.is_none() && self.state.space().available() < ALMOST_FULL)
        };
        let target_for = |page| if is_saving(page) { Target::Cache } else { Target::LeafForNow };
        let may_be_cached = *tree >= FIRST_USER_TREE && self.state.records().is_used();
        let tree = self.tree(*tree)?;
        if may_be_cached {
            if self.state.records().peek(tree.id, key).is_some() {
                return Ok(Found { leaf: None, large: None, target: Target::Cache });
            }
            // A store that has never had a large value has none under this key, so the leaf need not be read.
            if !self.durable.has_had_large_values() {
                let (_, leaf) = self.leaf_page(tree, key).await?;
                return Ok(Found { leaf: Some(leaf), large: None, target: target_for(leaf) });
            }
        }
        let guard = self.find(tree, Seek::At(key), 0).await?;
        let node = leaf(guard.bytes())?;
        let large = match node.search(key).map(|index| node.value(index)) {
            Ok(Cell { bytes, large: true }) => Some(LargeValue::read(bytes)?),
            _ => None,
        };
        let page = page::number(guard.bytes());
        let target = if may_be_cached && large.is_none() { target_for(page) } else { Target::Leaf };
        Ok(Found { leaf: Some(page), large, target })
    }

    /// Whether a page is dirty in the pool, so that a further change costs no further write.
    fn is_changed(&self, page: PageId) -> bool {
        self.durable.pages().changed(|changed| changed.has(page))
    }
}

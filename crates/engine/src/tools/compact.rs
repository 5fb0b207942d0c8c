//! Compaction: makes a store smaller on request, in four steps. Before them it frees the pages of dropped tables.
//!
//! 1. *Delete* the pieces of large values that belong to no record. An interrupted bulk load leaves them. This
//!    step is left out while a bulk load is in progress, whose pieces belong to no record yet.
//! 2. *Merge*: neighbours under one parent become one node if they fit, first the leaves, then the levels
//!    above, until nothing is left to merge. Each merge is an ordinary structure change that takes its own
//!    turn, so transactions go on in between, and a crash leaves an undamaged store.
//! 3. *Free*: pages that are marked as used but that nothing refers to are freed. A walk over all trees finds
//!    them, and the structure of the trees cannot change during this step.
//! 4. *Trim*: the free pages are trimmed on the drive. Recovery may still read pages that are named by
//!    structure changes behind the redo point. So a checkpoint moves the redo point behind the last structure
//!    change first. If concurrent commits prevent this, nothing is trimmed.

use crate::format::large_value::LargeValue;
use crate::format::log_record::Delta;
use crate::format::page;
use crate::format::page::map;
use crate::format::page::node::leaf;
use crate::format::tree::{LARGE, Tree};
use crate::shard::Shard;
use crate::shard::tree::United;
use crate::store::Store;
use crate::tools::check::reachable;
use crate::{Error, Lsn, StoreFuture};
use fulgurite_base::PageId;
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// The maximum fill of a merged node in per cent: the next record must not split it again.
const FILL: usize = 90;
/// The maximum number of rounds over a tree. Each round merges nodes that the round before has brought under
/// one parent.
const MOST_ROUNDS: u32 = 16;
/// The number of pages that one log record frees.
const GIVEN_BACK_TOGETHER: usize = 8;
/// The number of pieces that one transaction deletes.
const DELETED_TOGETHER: usize = 16;
/// The maximum number of pages of one trim command.
const TRIMMED_TOGETHER: u32 = 1024;
/// The number of attempts to move the redo point behind the last structure change.
const MOST_CHECKPOINTS: u32 = 8;

/// The counts of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// The number of pages in use before the compaction.
    pub pages_before: u64,
    /// The number of pages in use after the compaction.
    pub pages_after: u64,
    /// The number of nodes that were merged into a neighbour.
    pub merged: u64,
    /// The number of pieces of large values that were deleted because they belonged to no record.
    pub pieces_deleted: u64,
    /// The number of pages freed because nothing referred to them.
    pub given_back: u64,
    /// The number of free pages that were trimmed on the drive; 0 if the drive does not support trim, or if
    /// concurrent commits prevented it.
    pub trimmed: u64,
}

/// The outcome for one node.
enum Step {
    /// The node was merged with a neighbour.
    Merged,
    /// The node stays; the next node covers this key.
    Next(Vec<u8>),
    /// The node stays, and is the last one of its level.
    End,
}

impl Shard {
    /// Merges the node on `level` that covers `key` with a neighbour, if they fit into one node.
    async fn compact_node(self: &Rc<Self>, tree: Tree, key: &[u8], level: usize) -> Result<Step, Error> {
        // Waits before it takes the turn, because a checkpoint that makes room may need the turn.
        let _room = self.room_when_free(self.change_bytes()).await?;
        let _turn = self.jobs.structure_turn().await;
        let path = self.path(tree, key).await?;
        // A level that only the root is on has no neighbours to merge.
        let Some(at) = path.len().checked_sub(level + 1).filter(|at| *at > 0) else { return Ok(Step::End) };
        let most = self.page_bytes() as usize * FILL / 100;
        if self.unite_children(path[at], path[at - 1], key, most).await? == United::Yes {
            self.counters.count(|counts| counts.merges += 1);
            return Ok(Step::Merged);
        }
        let guard = self.read_page(path[at]).await?;
        Ok(leaf(guard.bytes())?.high().map_or(Step::End, |high| Step::Next(high.to_vec())))
    }

    /// Merges the nodes of one level that fit together. Returns how many were freed.
    async fn compact_level(self: &Rc<Self>, tree: Tree, level: usize) -> Result<u64, Error> {
        let mut merged = 0;
        let mut key = Vec::new();
        loop {
            self.check_open()?;
            match self.compact_node(tree, &key, level).await? {
                Step::Merged => merged += 1,
                Step::Next(high) => key = high,
                Step::End => return Ok(merged),
            }
        }
    }

    async fn compact_tree(self: &Rc<Self>, tree: Tree) -> Result<u64, Error> {
        let mut all = 0;
        for _ in 0..MOST_ROUNDS {
            let levels = usize::from(page::level(self.read_page(tree.root).await?.bytes()));
            let mut merged = 0;
            for level in 0..levels {
                merged += self.compact_level(tree, level).await?;
            }
            {
                let _room = self.room_when_free(self.change_bytes()).await?;
                let _turn = self.jobs.structure_turn().await;
                self.lower_root(tree).await?;
            }
            all += merged;
            if merged == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Waits until all commits so far are durable and applied.
    async fn until_applied(&self) -> Result<(), Error> {
        let last = self.transactions.commits().last();
        self.durable.log().sync(self.durable.log().tail()).await?;
        self.advance();
        self.until_visible(last).await.map(drop)
    }

    /// Returns the pieces of large values that belong to no record.
    async fn unused_pieces(&self) -> Result<Vec<Vec<u8>>, Error> {
        let next = self.durable.next_large();
        if !self.durable.has_had_large_values() {
            return Ok(Vec::new());
        }
        let large = self.tree(LARGE)?;
        // The numbers of the values whose pieces are in the tree. Later values are left out, because their
        // records may not be there yet.
        let mut unused = FxHashSet::default();
        let staged = self.state.staged_mut().clone();
        let is_staged = |number| staged.range(..=number).next_back().is_some_and(|(_, end)| number < *end);
        let is_old = |number: &u64| *number < next && !is_staged(*number);
        let old = |key: &[u8]| LargeValue::number_of(key).filter(|number| *number > 0).filter(is_old);
        self.each_leaf(large, |node| {
            unused.extend(node.records().filter_map(|(key, _)| old(&key)));
            Ok(())
        })
        .await?;
        // A commit whose pieces were found may not have put its record yet.
        self.until_applied().await?;
        // Snapshots may still read the dropped trees that have their large values.
        let trees = {
            let catalogue = self.state.catalogue();
            let read = catalogue.dropped().into_iter().filter(|dropped| !dropped.is_bare);
            catalogue.trees().into_iter().chain(read.map(|dropped| dropped.tree)).collect::<Vec<_>>()
        };
        for tree in trees.into_iter().filter(|tree| tree.id != LARGE) {
            self.each_leaf(tree, |node| {
                for (_, value) in node.records().filter(|(_, value)| value.large) {
                    unused.remove(&LargeValue::read(value.bytes)?.number);
                }
                Ok(())
            })
            .await?;
        }
        let mut pieces = Vec::new();
        if !unused.is_empty() {
            let is_unused = |key: &[u8]| old(key).is_some_and(|number| unused.contains(&number));
            self.each_leaf(large, |node| {
                pieces.extend(node.records().map(|(key, _)| key.to_vec()).filter(|key| is_unused(key)));
                Ok(())
            })
            .await?;
        }
        Ok(pieces)
    }

    /// Frees the pages that are marked as used but that nothing refers to. Returns how many were freed. Stops early if
    /// pending records keep the log full; the next compaction goes on.
    async fn give_back_unused(self: &Rc<Self>) -> Result<u64, Error> {
        let _turn = self.jobs.structure_turn().await;
        let seen = reachable(self).await?;
        let mut freed = 0;
        for (map, pages) in self.state.space().maps() {
            let unused: Vec<u32> = {
                let guard = self.read_page(map).await?;
                let unused = (1..pages).filter(|index| {
                    map::is_used(guard.bytes(), *index) && !seen.contains(&PageId(map.0 + u64::from(*index)))
                });
                unused.collect()
            };
            for part in unused.chunks(GIVEN_BACK_TOGETHER) {
                if self.room_for_change().is_none() {
                    self.checkpoint_pages(Lsn(u64::MAX)).await?;
                }
                let Some(_room) = self.room_for_change() else { return Ok(freed) };
                let pages: Vec<PageId> = part.iter().map(|index| PageId(map.0 + u64::from(*index))).collect();
                let held = self.hold(&[map], &pages).await?;
                let frees = pages.iter().map(|page| Delta::Free { page: *page });
                let marks =
                    part.iter().map(|index| Delta::Map { page: map, from: *index, count: 1, used: false });
                self.restructure(held, frees.chain(marks).collect(), Vec::new())?;
                freed += part.len() as u64;
            }
        }
        Ok(freed)
    }

    /// Trims the free pages on the drive. Returns how many were trimmed.
    async fn trim_free(self: &Rc<Self>) -> Result<u64, Error> {
        for _ in 0..MOST_CHECKPOINTS {
            self.until_applied().await?;
            self.merge_all().await;
            let _turn = self.jobs.structure_turn().await;
            // Two checkpoints are made, so that both superblocks have a redo point behind the last structure
            // change.
            self.durable.log().sync(self.durable.log().tail()).await?;
            self.checkpoint_pages(Lsn(u64::MAX)).await?;
            let redo = self.durable.superblock().redo;
            self.checkpoint_pages(Lsn(u64::MAX)).await?;
            if redo >= self.durable.last_structure() {
                return self.trim_all().await;
            }
        }
        Ok(0)
    }

    async fn trim_all(self: &Rc<Self>) -> Result<u64, Error> {
        let mut trimmed = 0;
        for (map, pages) in self.state.space().maps() {
            let mut from = 1;
            while from < pages {
                let run = {
                    let guard = self.read_page(map).await?;
                    let is_free = |index: &u32| {
                        // An allocated page will be used soon, and its contents may be on the drive already, although
                        // its map still says that it is free.
                        let page = PageId(map.0 + u64::from(*index));
                        !map::is_used(guard.bytes(), *index) && !self.state.space().is_picked(page)
                    };
                    let first = (from..pages).find(is_free);
                    let first = first.unwrap_or(pages);
                    let most = pages.min(first + TRIMMED_TOGETHER);
                    let run = first..(first..most).find(|index| !is_free(index)).unwrap_or(most);
                    from = run.end.max(first + 1);
                    map.0 + u64::from(run.start)..map.0 + u64::from(run.end)
                };
                let len = run.end - run.start;
                // No other task runs between the look at the map and this call.
                if len > 0 && self.trim(run).await {
                    trimmed += len;
                }
            }
        }
        Ok(trimmed)
    }
}

impl Store {
    /// Makes the store smaller: deletes the pieces that an interrupted bulk load has left, merges nodes that fit
    /// together, frees pages that nothing refers to, and trims free pages on the drive. Transactions go on meanwhile,
    /// but structure changes of the trees wait while pages are freed and trimmed. An interruption at any time leaves
    /// an undamaged store.
    ///
    /// Fails with [`Error::Corrupt`] if a tree cannot be read completely; no data is lost then.
    pub fn compact(&self) -> StoreFuture<'_, CompactReport> {
        Box::pin(async move {
            let shard = &self.0;
            shard.check_open()?;
            shard.check_writable()?;
            // A backup reads pages that were freed since it began, so the two must not run at the same time.
            let _turn = shard.jobs.backup_turn().await;
            let pages_before = shard.state.space().used();
            let mut report = CompactReport { pages_before, ..CompactReport::default() };
            shard.free_dropped().await?;
            // From here on a table may be dropped, but keeps its pages.
            let _drops = shard.jobs.drops_turn().await;
            let pieces = shard.unused_pieces().await?;
            for part in pieces.chunks(DELETED_TOGETHER) {
                let transaction = self.begin();
                for piece in part {
                    transaction.note(shard.tree(LARGE)?, piece.as_slice().into(), None);
                }
                transaction.commit().await?;
                report.pieces_deleted += part.len() as u64;
            }
            shard.merge_all().await;
            let trees = shard.state.catalogue().trees();
            for tree in trees {
                report.merged += shard.compact_tree(tree).await?;
            }
            report.given_back = shard.give_back_unused().await?;
            report.pages_after = shard.state.space().used();
            report.trimmed = shard.trim_free().await?;
            Ok(report)
        })
    }
}

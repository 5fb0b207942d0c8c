//! Making a store smaller on request.
//!
//! 1. *Merge*: neighbours under one parent become one node if they fit, first the leaves, then the levels
//!    above, until nothing is left to merge. Each merge is an ordinary structure change with a turn of its
//!    own, so transactions go on in between, and a crash leaves a sound store.
//! 2. *Free*: pages that are marked as used and that nothing refers to become free. The trees are walked for
//!    that, and their structure does not change meanwhile.
//! 3. *Trim*: the drive is told the free pages. Recovery may still read pages that structure changes behind
//!    the redo point name. So a checkpoint behind the last such change comes first; if commits do not allow
//!    one, nothing is trimmed.

use crate::format::log_record::Delta;
use crate::format::page;
use crate::format::page::map;
use crate::format::page::node::leaf;
use crate::format::tree::Tree;
use crate::shard::Shard;
use crate::store::Store;
use crate::tools::check::reachable;
use crate::{Error, Lsn};
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Device, Operation};
use std::rc::Rc;

/// The fill of a merged node, in per cent, at most: the next record must not split it again.
const FILL: usize = 90;
/// Rounds over a tree. Each merges nodes that the round before has brought under one parent.
const MOST_ROUNDS: u32 = 16;
/// Pages that one record of the log frees.
const GIVEN_BACK_TOGETHER: usize = 16;
/// Pages of one trim.
const TRIMMED_TOGETHER: u64 = 1024;
/// Attempts to make a checkpoint behind the last structure change.
const MOST_CHECKPOINTS: u32 = 8;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Pages in use before.
    pub pages_before: u64,
    /// Pages in use afterwards.
    pub pages_after: u64,
    /// Nodes that were merged into a neighbour.
    pub merged: u64,
    /// Pages freed that nothing referred to.
    pub given_back: u64,
    /// Free pages that the drive was told; 0 if it cannot trim, or commits left no moment for it.
    pub trimmed: u64,
}

/// The result for one node.
enum Step {
    /// It was merged with a neighbour.
    Merged,
    /// It stays; the next node covers this key.
    Next(Vec<u8>),
    /// It stays, and is the last one.
    End,
}

impl<D: Device + 'static> Shard<D> {
    /// Merges the node on `level` that covers `key` with a neighbour, if they fit.
    async fn compact_node(&self, tree: Tree, key: &[u8], level: usize) -> Result<Step, Error> {
        let _turn = self.jobs.structure_turn().await;
        let path = self.path(tree, key).await?;
        // The root has no neighbour.
        let Some(at) = path.len().checked_sub(level + 1).filter(|at| *at > 0) else { return Ok(Step::End) };
        let most = self.page_bytes() as usize * FILL / 100;
        if self.unite_children(path[at], path[at - 1], key, most).await? {
            self.counters.count(|counts| counts.merges += 1);
            return Ok(Step::Merged);
        }
        let guard = self.read_page(path[at]).await?;
        Ok(leaf(guard.bytes())?.high().map_or(Step::End, |high| Step::Next(high.to_vec())))
    }

    /// Merges the nodes of one level that fit together. Returns how many were freed.
    async fn compact_level(&self, tree: Tree, level: usize) -> Result<u64, Error> {
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

    async fn compact_tree(&self, tree: Tree) -> Result<u64, Error> {
        let mut all = 0;
        for _ in 0..MOST_ROUNDS {
            let levels = usize::from(page::level(self.read_page(tree.root).await?.bytes()));
            let mut merged = 0;
            for level in 0..levels {
                merged += self.compact_level(tree, level).await?;
            }
            {
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

    /// Frees pages that are marked as used and that nothing refers to.
    async fn give_back_unused(&self) -> Result<u64, Error> {
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

    /// Tells the drive the free pages.
    async fn trim_free(self: &Rc<Self>) -> Result<u64, Error> {
        for _ in 0..MOST_CHECKPOINTS {
            let last = self.transactions.commits().last();
            self.durable.log().sync(self.durable.log().tail()).await?;
            self.advance();
            self.until_visible(last).await?;
            self.merge_all().await;
            let _turn = self.jobs.structure_turn().await;
            // Twice, so that both superblocks have a redo point behind the last structure change.
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

    async fn trim_all(&self) -> Result<u64, Error> {
        let mut trimmed = 0;
        for (map, pages) in self.state.space().maps() {
            let mut runs: Vec<(u64, u64)> = Vec::new();
            {
                let guard = self.read_page(map).await?;
                for index in (1..pages).filter(|index| !map::is_used(guard.bytes(), *index)) {
                    let page = map.0 + u64::from(index);
                    // A picked page will be used soon, and may be on the drive already.
                    if self.state.space().is_picked(PageId(page)) {
                        continue;
                    }
                    match runs.last_mut().filter(|(from, len)| from + len == page && *len < TRIMMED_TOGETHER)
                    {
                        Some((_, len)) => *len += 1,
                        None => runs.push((page, 1)),
                    }
                }
            }
            for (from, len) in runs {
                if !self.trim(from, len).await {
                    return Ok(trimmed);
                }
                trimmed += len;
            }
        }
        Ok(trimmed)
    }

    /// Trims a range of pages. A drive that cannot, or will not, has lost nothing.
    async fn trim(&self, from: u64, len: u64) -> bool {
        if let Some(place) = self.durable.pages().backend().out_of_place() {
            place.trim(&(from..from + len).map(PageId).collect::<Vec<PageId>>());
            return true;
        }
        let device_pages = u64::from(self.page_bytes() / self.handle.caps().page_bytes);
        let trim = Operation::Trim { lpn: Lpn(from * device_pages), pages: (len * device_pages) as u32 };
        self.handle.submit(trim).await.is_ok()
    }
}

impl<D: Device + 'static> Store<D> {
    /// Makes the store smaller: merges nodes that fit together, frees pages that nothing refers to, and trims
    /// free pages on the drive. Transactions go on meanwhile; those that change the structure of trees wait
    /// during the second and the third step. Interrupted at any time it leaves a sound store.
    ///
    /// Fails with [`Error::Corrupt`] if a tree cannot be read completely; that loses nothing.
    pub async fn compact(&self) -> Result<CompactReport, Error> {
        let shard = &self.0;
        shard.check_open()?;
        // A backup reads pages that were just freed.
        let _turn = shard.jobs.backup_turn().await;
        let mut report =
            CompactReport { pages_before: shard.state.space().used(), ..CompactReport::default() };
        shard.merge_all().await;
        let trees = shard.state.catalogue().trees();
        for tree in trees {
            report.merged += shard.compact_tree(tree).await?;
        }
        report.given_back = shard.give_back_unused().await?;
        report.pages_after = shard.state.space().used();
        report.trimmed = shard.trim_free().await?;
        Ok(report)
    }
}

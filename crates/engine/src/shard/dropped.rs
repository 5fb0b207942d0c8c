//! Frees the pages of dropped tables and indexes.
//!
//! 1. *The drop* is one log record of operations on the catalogue (see [`crate::store::names`]). It removes the
//!    name, so that the name can be used again at once, and adds an entry of the engine's own for the tree. From
//!    then on the tree is *dropped*. A crash before this record is durable leaves the table whole. After it only
//!    the pages remain to be freed, and recovery leaves out operations on the tree.
//! 2. *Readers* of older states still read the tree. Freeing begins when the last of them has ended.
//! 3. *Large values*: the pieces of those to which the leaves refer are deleted. Then the entry says so.
//! 4. *Pending records* of the tree are forgotten. The drop is durable, so nobody needs them after a crash.
//! 5. *Pages* are freed in parts, from the last leaf to the first. A part is a structure change: it frees some
//!    leaves under one parent and takes them out of the parent, or frees the parent with its last leaves. Leaves
//!    are neither read nor written, since nothing leads to them any more. The last part frees the root and
//!    removes the entry of the tree. After a crash between two parts the next opening goes on.
//!
//! Each part takes its own turns and waits for log space first, so that others go on in between. Damaged pages
//! of the tree stop nothing: what they lead to stays marked as used until [`crate::Store::compact`] frees it.

use crate::Error;
use crate::format::large_value::LargeValue;
use crate::format::log_record::{Delta, Op};
use crate::format::page;
use crate::format::page::map;
use crate::format::page::node::{Node, leaf};
use crate::format::tree::{CATALOGUE, Tree};
use crate::memory::catalogue::{Dropped, Own, dropped_name};
use crate::shard::Shard;
use crate::shard::tree::Seek;
use crate::wait::to_its_end;
use fulgurite_base::PageId;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The maximum number of pages that one part frees.
const FREED_TOGETHER: usize = 512;
/// The most log bytes for each freed page: one change of the page, and one of its map.
const FREED_BYTES: u64 = 30;
/// The number of allocation maps that one part may change. All of them are latched at the same time.
const MAPS: usize = 8;
/// The number of pieces of large values that one log record deletes.
const PIECES_TOGETHER: usize = 64;
/// The number of freed pages after which a store that writes out of place makes a checkpoint, because it
/// remembers freed pages in memory until the redo point has passed them.
const FREED_PER_CHECKPOINT: usize = 32_768;

/// The last node of a dropped tree that is a leaf, or whose children are leaves.
struct Last {
    /// The nearest node above with other children too, and the key there of the child that leads to `page`; `None` if
    /// there is none.
    parent: Option<(PageId, Vec<u8>)>,
    /// The nodes between the two. Each has one child, and goes with it: no page says that it is an inner node without
    /// children, since a reader takes that for damage.
    between: Vec<PageId>,
    page: PageId,
    /// The leaves below `page`, with their keys in it. A leaf has none, nor has a damaged node.
    children: Vec<(Vec<u8>, PageId)>,
}

impl Shard {
    /// Frees the pages of dropped trees in a background task. It does nothing if such a task runs, or if there are
    /// none that can be freed.
    pub(crate) fn free_dropped_later(self: &Rc<Self>) {
        if self.next_dropped(&[]).is_none() || self.check_open().is_err() || !self.jobs.dropping().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.free_all_dropped().await;
            shard.jobs.dropping().end();
        });
    }

    /// Frees the pages of the dropped trees that nobody reads. If the drive fails, some pages stay until the next
    /// call. Fails if the store has stopped.
    pub(crate) async fn free_dropped(self: &Rc<Self>) -> Result<(), Error> {
        let shard = Rc::clone(self);
        to_its_end(&self.handle, async move { shard.free_all_dropped().await }).await;
        self.health.check()
    }

    /// Returns a dropped tree that nobody reads, except those of `failed`.
    fn next_dropped(&self, failed: &[u32]) -> Option<Dropped> {
        let oldest = self.state.versions().oldest_reader();
        self.state.catalogue().next_dropped(failed, oldest)
    }

    async fn free_all_dropped(self: &Rc<Self>) {
        let _turn = self.jobs.drops_turn().await;
        let mut failed = Vec::new();
        while let Some(dropped) = self.next_dropped(&failed)
            && self.check_open().is_ok()
        {
            if self.free_tree(dropped).await.is_err() {
                // A later call tries the rest again.
                failed.push(dropped.tree.id);
            }
        }
    }

    async fn free_tree(self: &Rc<Self>, Dropped { tree, is_bare, .. }: Dropped) -> Result<(), Error> {
        if !is_bare {
            self.strip(tree).await?;
        }
        self.state.records_mut().discard_pending(tree.id);
        let (mut freed, mut goal) = (0, self.durable.log().tail());
        while let Some(pages) = self.free_part(tree).await? {
            freed += pages;
            if self.state.space().freed() > 0 && freed >= FREED_PER_CHECKPOINT {
                self.checkpoint(goal).await?;
                (freed, goal) = (0, self.durable.log().tail());
            }
            self.handle.pause().await;
        }
        Ok(())
    }

    /// Deletes the large values of a dropped tree, and notes in its entry that it has none.
    async fn strip(self: &Rc<Self>, tree: Tree) -> Result<(), Error> {
        if self.durable.has_had_large_values() {
            match self.delete_values_of(tree).await {
                // The values of a damaged leaf stay until a compaction deletes them.
                Ok(()) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let (key, value) = Own::Dropped { tree, is_bare: true }.entry();
        let op = Op { tree: CATALOGUE, key: key.into(), value: Some(value.into()), large: false };
        let _room = self.room_when_free(self.change_bytes()).await?;
        let _turn = self.jobs.names_turn().await;
        self.check_open()?;
        let ops = [op];
        let at = self.append_own(&ops, false);
        self.state.catalogue_mut().note_bare(tree.id);
        self.apply_own(&ops, at).await
    }

    async fn delete_values_of(self: &Rc<Self>, tree: Tree) -> Result<(), Error> {
        let most = self.most_ahead(self.options.degree);
        let (mut low, mut ahead) = (Vec::new(), 0);
        loop {
            self.check_open()?;
            if ahead == 0
                && let Some(leaves) = self.leaves(tree, Seek::At(&low), None, most).await?
            {
                self.durable.pool().fetch(&leaves.pages).await.map_err(self.of_pool())?;
                ahead = leaves.pages.len();
            }
            ahead = ahead.saturating_sub(1);
            let (high, values) = {
                let guard = self.find(tree, Seek::At(&low), 0).await?;
                let node = leaf(guard.bytes())?;
                let large = node.records().filter(|(_, value)| value.large);
                let values: Result<Vec<_>, Error> =
                    large.map(|(_, value)| LargeValue::read(value.bytes)).collect();
                (node.high().map(<[u8]>::to_vec), values?)
            };
            self.delete_values(&values).await?;
            match high {
                Some(high) => low = high,
                None => return Ok(()),
            }
        }
    }

    /// Deletes large values to which no record refers any more. Their pieces may be gone already.
    pub(crate) async fn delete_values(self: &Rc<Self>, values: &[LargeValue]) -> Result<(), Error> {
        // A longer value was never written, so a reference to one is damaged.
        let most = self.state.space().pages() * u64::from(self.page_bytes());
        for value in values.iter().filter(|value| value.bytes <= most) {
            for ops in self.delete_large(*value).chunks(PIECES_TOGETHER) {
                let _room = self.room_when_free(self.change_bytes()).await?;
                let at = self.append_own(ops, false);
                self.apply_own(ops, at).await?;
            }
        }
        Ok(())
    }

    /// Frees a part of a dropped tree. Returns the number of freed pages; `None` when all are free.
    async fn free_part(self: &Rc<Self>, tree: Tree) -> Result<Option<usize>, Error> {
        // A small part of a small log.
        let most = FREED_TOGETHER.min((self.durable.log().capacity() / 64 / FREED_BYTES) as usize).max(1);
        let bytes = self.change_bytes() + most as u64 * FREED_BYTES;
        let _room = self.room_when_free(bytes).await?;
        let names = self.jobs.names_turn().await;
        let turn = self.jobs.structure_turn().await;
        self.check_open()?;
        let Last { parent, between, page, children } = self.last_of(tree).await?;
        let space = self.state.space();
        let nodes = [&between[..], &[page]].concat();
        let mut maps: BTreeSet<PageId> =
            nodes.iter().filter(|page| space.is_data(**page)).map(|page| space.place(*page).0).collect();
        let mut freed = Vec::new();
        let mut left = children.len();
        while let Some((_, child)) = left.checked_sub(1).and_then(|at| children.get(at)) {
            if space.is_data(*child) {
                let map = space.place(*child).0;
                if freed.len() == most || (maps.len() == MAPS && !maps.contains(&map)) {
                    break;
                }
                maps.insert(map);
                freed.push(*child);
            }
            left -= 1;
        }
        let mut deltas = Vec::new();
        match (left, &parent) {
            (0, Some((above, key))) => {
                freed.extend(nodes);
                deltas.push(Delta::DropChild { page: *above, key: key.as_slice().into() });
            }
            (0, None) => freed.extend(nodes),
            (left, _) => deltas.push(Delta::Keep { page, high: children[left].0.as_slice().into() }),
        }
        let changed: Vec<PageId> = deltas.iter().map(Delta::page).collect();
        let maps: Vec<PageId> = maps.into_iter().collect();
        let held = self.hold(&[&maps[..], &changed].concat(), &[]).await?;
        // In a damaged store a page may be free already, or have another place too.
        let is_used = |page: &PageId| {
            let (map, index) = space.place(*page);
            held.bytes(map).is_ok_and(|bytes| map::is_used(bytes, index))
        };
        freed.retain(|page| space.is_data(*page) && !changed.contains(page) && is_used(page));
        freed.sort_unstable();
        freed.dedup();
        deltas.extend(freed.iter().map(|page| Delta::Free { page: *page }));
        deltas.extend(self.as_free(&freed));
        let (pages, held) = (freed.len(), held.leaving(freed));
        if left > 0 || parent.is_some() {
            self.restructure(held, deltas, Vec::new())?;
            return Ok(Some(pages));
        }
        let op = Op { tree: CATALOGUE, key: dropped_name(tree.id).into(), value: None, large: false };
        let ops = [op];
        let at = self.restructure(held, deltas, ops.to_vec())?;
        self.transactions.commits_mut().append(at.0, at.1, false);
        self.state.catalogue_mut().forget_dropped(tree.id);
        drop(turn);
        self.apply_own(&ops, at).await?;
        drop(names);
        self.durable.log().sync(at.1).await?;
        Ok(None)
    }

    /// Returns the changes of the maps that mark pages, in ascending order, as free.
    fn as_free(&self, pages: &[PageId]) -> Vec<Delta> {
        let mut runs: Vec<Delta> = Vec::new();
        for (map, index) in pages.iter().map(|page| self.state.space().place(*page)) {
            match runs.last_mut() {
                Some(Delta::Map { page, from, count, .. }) if *page == map && *from + *count == index => {
                    *count += 1
                }
                _ => runs.push(Delta::Map { page: map, from: index, count: 1, used: false }),
            }
        }
        runs
    }

    /// Finds the last node of a dropped tree that is a leaf, or whose children are leaves. Follows children and not
    /// fences, because parts of the tree are gone.
    async fn last_of(&self, tree: Tree) -> Result<Last, Error> {
        let mut last = Last { parent: None, between: Vec::new(), page: tree.root, children: Vec::new() };
        let mut above = u8::MAX;
        loop {
            if !self.state.space().is_data(last.page) {
                return Ok(last);
            }
            let guard = match self.read_page(last.page).await {
                Ok(guard) => guard,
                Err(Error::Corrupt { .. }) => return Ok(last),
                Err(error) => return Err(error),
            };
            let node = Node::new(guard.bytes()).filter(|_| page::tree(guard.bytes()) == tree.id);
            let Some(node) = node.filter(|node| 0 < node.level() && node.level() < above && !node.is_empty())
            else {
                return Ok(last);
            };
            if node.level() == 1 {
                last.children = (0..node.len()).map(|index| (node.key(index), node.child(index))).collect();
                return Ok(last);
            }
            above = node.level();
            let index = node.len() - 1;
            let (key, child) = (node.key(index), node.child(index));
            if index == 0 {
                last.between.push(last.page);
            } else {
                last.parent = Some((last.page, key));
                last.between.clear();
            }
            last.page = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};

    /// The rule: a leaf of a dropped table that was remembered for a merge is forgotten. Its pages may be free.
    #[test]
    fn a_dropped_leaf_is_not_merged() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options = Options { memory_bytes: 16 << 20, log_bytes: 1 << 20, ..Options::default() };
            let store = Store::create(handle, options).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            store.bulk_load(table, (0..200u8).map(|key| (vec![key], vec![key; 200]))).await.unwrap();
            store.0.state.remember_sparse(table.0, vec![5]);
            store.drop_table("t").await.unwrap();
            // The second of these tables takes the pages of the dropped one.
            for name in ["other", "next"] {
                let table = store.create_table(name).await.unwrap();
                let rows = (0..6_000u32).map(|key| (key.to_be_bytes().to_vec(), vec![1; 1_100]));
                store.bulk_load(table, rows).await.unwrap();
                if name == "other" {
                    store.drop_table(name).await.unwrap();
                }
            }
            store.checkpoint().await.unwrap();
            assert!(store.0.state.take_sparse().is_none());
        };
        executor.block_on(work).unwrap();
    }
}

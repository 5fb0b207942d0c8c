//! Bulk load: builds a tree bottom-up from records in ascending order.
//!
//! The pages are written and flushed before one log record makes them part of the tree; it contains the image
//! of the root and the changes of the allocation maps. So the log does not contain the loaded records, and
//! after a crash before this log record the tree is empty, as it was.

use crate::Error;
use crate::format::log_record::{Delta, Op};
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, NodeMut, longest_key, longest_record, separator};
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The fill factor of the pages in per cent. The remaining space lets most updates stay in their page.
const FILL: usize = 90;
/// The number of allocation maps that one log record may change. All of them are latched at the same time.
const MAPS: usize = 8;
/// The number of pages in one write-back batch at the end of the load.
const WRITTEN_TOGETHER: usize = 64;

/// A record or an index entry of a node that is being filled.
struct Record {
    key: Vec<u8>,
    value: Vec<u8>,
    large: bool,
}

/// The rightmost node on one level of the tree that is being built.
#[derive(Default)]
struct Level {
    records: Vec<Record>,
    bytes: usize,
    /// The lower fence of the node that is being filled.
    low: Vec<u8>,
    last: Vec<u8>,
}

/// A bulk load in progress. Dropping it before the end frees its pages.
pub(crate) struct Load {
    shard: Rc<Shard>,
    tree: Tree,
    levels: Vec<Level>,
    pages: Vec<PageId>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.pages.iter().for_each(|page| self.shard.state.space().put_back(*page));
    }
}

impl Load {
    /// Begins to load an empty tree.
    pub(crate) async fn new(shard: Rc<Shard>, tree: Tree) -> Result<Load, Error> {
        let guard = shard.read_page(tree.root).await?;
        let root = leaf(guard.bytes())?;
        if root.level() > 0 || !root.is_empty() {
            return Err(Error::BulkLoad("the table is not empty"));
        }
        drop(guard);
        Ok(Load { shard, tree, levels: vec![Level::default()], pages: Vec::new() })
    }

    /// Adds the next record in key order.
    pub(crate) async fn push(&mut self, key: Vec<u8>, value: Vec<u8>, large: bool) -> Result<(), Error> {
        let page = self.shard.page_bytes();
        if key.len() > longest_key(page) {
            return Err(Error::KeyTooLong { bytes: key.len(), longest: longest_key(page) });
        }
        debug_assert!(key.len() + value.len() <= longest_record(page));
        if !self.levels[0].records.is_empty() && key <= self.levels[0].last {
            return Err(Error::BulkLoad("the keys are not in ascending order"));
        }
        self.add(0, Record { key, value, large }).await
    }

    /// Adds a record to a level. A full node is written to a page, and its index entry is added to the level
    /// above.
    async fn add(&mut self, level: usize, record: Record) -> Result<(), Error> {
        let mut carried = Some((level, record));
        while let Some((level, record)) = carried.take() {
            if self.levels.len() == level {
                self.levels.push(Level::default());
            }
            let room =
                self.shard.page_bytes() as usize * FILL / 100 - 120 - 2 * self.fence_bytes(level, &record);
            let state = &mut self.levels[level];
            let cost = 10 + record.key.len() + record.value.len();
            // A leaf may have a single record, but an inner node needs two children.
            let least = if level == 0 { 1 } else { 2 };
            if state.bytes + cost > room && state.records.len() >= least {
                let high = match level {
                    0 => separator(&state.last, &record.key).to_vec(),
                    _ => record.key.clone(),
                };
                let child = self.close(level, Some(high)).await?;
                carried = Some((level + 1, child));
            }
            let state = &mut self.levels[level];
            state.bytes += cost;
            state.last.clone_from(&record.key);
            state.records.push(record);
        }
        Ok(())
    }

    fn fence_bytes(&self, level: usize, record: &Record) -> usize {
        self.levels[level].low.len().max(record.key.len())
    }

    /// Copies the filled node of a level to a page of the pool. Returns the index entry for the level above.
    async fn close(&mut self, level: usize, high: Option<Vec<u8>>) -> Result<Record, Error> {
        let page = self.shard.pick().await?;
        let state = &mut self.levels[level];
        let records = std::mem::take(&mut state.records);
        let low = std::mem::replace(&mut state.low, high.clone().unwrap_or_default());
        state.bytes = 0;
        // From here on, dropping the load frees the page.
        self.pages.push(page);
        let mut guard = self.shard.durable.pool().create(page).await.map_err(self.shard.of_pool())?;
        let bytes = guard.bytes_mut();
        fill(bytes, (page, self.tree.id, level as u8), (&low, high.as_deref()), &records)?;
        // The log may contain older changes of this page. The structure LSN keeps recovery from redoing them
        // over the new contents.
        let now = self.shard.durable.log().tail();
        page::set_structure_lsn(bytes, now);
        page::set_lsn(bytes, now);
        Ok(Record { key: low, value: page.0.to_le_bytes().to_vec(), large: false })
    }

    /// Writes the last node of each level and makes the nodes the tree, under the existing root page. `ops` are
    /// operations that take effect with it, on keys that nobody else uses.
    pub(crate) async fn finish(mut self, ops: &[Op]) -> Result<(), Error> {
        let root = self.write().await?;
        self.shard.durable.pages().flush().await?;
        self.take_over(&root, ops).await
    }

    /// Writes the last node of each level, except the root, whose bytes are returned. Does not flush the
    /// drive.
    async fn write(&mut self) -> Result<Vec<u8>, Error> {
        let mut level = 0;
        while level + 1 < self.levels.len() {
            let child = self.close(level, None).await?;
            self.add(level + 1, child).await?;
            level += 1;
        }
        let top = std::mem::take(&mut self.levels[level].records);
        let mut root = vec![0; self.shard.page_bytes() as usize];
        fill(&mut root, (self.tree.root, self.tree.id, level as u8), (b"", None), &top)?;
        for pages in self.pages.chunks(WRITTEN_TOGETHER) {
            self.shard.durable.pool().write_pages(pages).await.map_err(self.shard.of_pool())?;
        }
        Ok(root)
    }

    /// Appends the log records that make the pages part of the tree.
    async fn take_over(&mut self, root: &[u8], ops: &[Op]) -> Result<(), Error> {
        let shard = Rc::clone(&self.shard);
        let mut runs: BTreeMap<PageId, Vec<(u32, u32)>> = BTreeMap::new();
        self.pages.sort_unstable();
        for page in &self.pages {
            let (map, index) = shard.state.space().place(*page);
            let runs = runs.entry(map).or_default();
            match runs.last_mut().filter(|(from, count)| from + count == index) {
                Some((_, count)) => *count += 1,
                None => runs.push((index, 1)),
            }
        }
        let turn = shard.jobs.structure_turn().await;
        let maps: Vec<PageId> = runs.keys().copied().collect();
        // Begins with the last maps, whose pages are at the end of `self.pages`, so that handing them over
        // shortens the list.
        let mut parts: Vec<&[PageId]> = maps.rchunks(MAPS).collect();
        // The last log record also contains the root.
        let last = parts.pop().unwrap_or_default();
        let deltas = |maps: &[PageId]| -> Vec<Delta> {
            let delta = |page: PageId| {
                runs[&page].iter().map(move |(from, count)| Delta::Map {
                    page,
                    from: *from,
                    count: *count,
                    used: true,
                })
            };
            maps.iter().flat_map(|map| delta(*map)).collect()
        };
        for maps in parts {
            let held = shard.hold(maps, &[]).await?;
            self.hand_over(maps);
            shard.restructure(held, deltas(maps), Vec::new())?;
        }
        let held = shard.hold(&[last, &[self.tree.root]].concat(), &[]).await?;
        self.hand_over(last);
        let mut all = deltas(last);
        all.push(Delta::image(root));
        let at = shard.restructure(held, all, ops.to_vec())?;
        // A snapshot that is older sees the empty tree.
        shard.state.versions_mut().note_load(self.tree.id, at.1);
        drop(turn);
        if !ops.is_empty() {
            shard.transactions.commits_mut().append(at.0, at.1, false);
            shard.apply_own(ops, at).await?;
        }
        Ok(())
    }

    /// Removes the pages of these maps from the pages that a failed load would free: the log is about to say
    /// that they are in use.
    fn hand_over(&mut self, maps: &[PageId]) {
        let Some(first) = maps.first() else { return };
        let space = &self.shard.state.space();
        self.pages.truncate(self.pages.partition_point(|page| space.place(*page).0 < *first));
    }
}

fn fill(
    bytes: &mut [u8],
    (page, tree, level): (PageId, u32, u8),
    fences: (&[u8], Option<&[u8]>),
    records: &[Record],
) -> Result<(), Error> {
    let mut node = NodeMut::init(bytes, page, tree, level, fences);
    for Record { key, value, large } in records {
        if !node.push(key, Cell { bytes: value, large: *large }) {
            return Err(Error::BulkLoad("a node overflows"));
        }
    }
    Ok(())
}

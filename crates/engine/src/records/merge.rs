//! Pending records go into their leaves.

use super::{CHUNKS_TOGETHER, Entry, Merged, Place, Records, Swept};
use crate::log::OpRef;
use crate::page;
use crate::page::node::Node;
use crate::runs::Which;
use crate::shard::{Shard, count};
use crate::tree::{Tree, change, is_sparse, leaf};
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::rc::Rc;

/// Commands that read leaves at once, while those before are merged. With twice as many, one read in a hundred of others waits half as long
/// again behind them; with half as many, merging falls behind.
const READ_TOGETHER: u32 = 8;
/// Bytes of leaves that follow each other, of which some are read by one command. Drives read so much little later than a page.
const NEIGHBOURHOOD: usize = 64 << 10;
/// Records for which a leaf is merged along with its neighbour. With one, leaves would be written far more often where few records
/// are cold.
const WORTH_MERGING: usize = 2;
/// Leaves, and neighbourhoods, that are looked at in one slice.
const LEAVES_TOGETHER: usize = 1024;
const NEIGHBOURHOODS_TOGETHER: usize = 64;
/// Pages that merging leaves for others: a transaction that takes records away, and so makes room, needs some.
const PAGES: u64 = 32;
/// Chunks with records that cannot be merged before giving up.
const MOST_FAILURES: u32 = 64;

/// Why records are merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Others need their memory.
    Room,
    /// Their place in the log is to be free, or nothing is to be pending.
    Log,
}

/// A record that did not fit into its leaf.
pub struct TooLarge {
    tree: Tree,
    key: Vec<u8>,
    cost: usize,
}

impl<D: Device + 'static> Shard<D> {
    /// Has entries go in a task of its own, until there is room again, unless one does so already.
    pub fn evict_records_later(self: &Rc<Self>) {
        if !self.records.borrow().is_tight() || self.evicting.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.evict_records().await;
            shard.evicting.set(false);
        });
    }

    async fn evict_records(self: &Rc<Self>) {
        let (mut stayed, mut left, mut failures) = (None, self.records.borrow().most_sweeps(), 0);
        while self.records.borrow().is_tight() && self.health.check().is_ok() {
            if left == 0 || failures == MOST_FAILURES {
                return;
            }
            left -= 1;
            if self.records.borrow().is_pinned() {
                drop(self.spilling.take().await);
                continue;
            }
            let mut lacking = Vec::new();
            let swept = self.records.borrow_mut().sweep(Some(&mut lacking));
            match swept {
                Swept::Nothing => return,
                Swept::Freed => {
                    stayed = None;
                    // Where most records were asked for, very many chunks are looked at.
                    if left.is_multiple_of(CHUNKS_TOGETHER) {
                        self.handle.pause().await;
                    }
                }
                // What could not be merged gets another chance.
                Swept::Stays(chunk) if stayed == Some(chunk) => {
                    failures += 1;
                    self.records.borrow_mut().sweep(None);
                }
                Swept::Stays(chunk) => {
                    // One that could not be moved on, and has not been merged yet, is looked at again.
                    stayed = (!lacking.is_empty()).then_some(chunk);
                    if !lacking.is_empty() && self.spill(Which::Oldest).await {
                        stayed = None;
                        continue;
                    }
                    self.merge_leaves(lacking, Reason::Room).await;
                }
            }
        }
    }

    /// Merges everything that is pending now, as far as there is room in the log and the drive allows.
    pub async fn merge_all(&self) {
        let leaves = self.records.borrow().leaves();
        self.merge_leaves(leaves, Reason::Log).await;
    }

    /// Merges the pending records of some leaves, and of those beside them that would be next. What cannot be merged stays pending, and
    /// is tried again some time.
    pub async fn merge_leaves(&self, leaves: Vec<PageId>, reason: Reason) {
        let leaves = self.with_neighbours(leaves).await;
        let most = self.most_ahead(4 * READ_TOGETHER);
        let (mut part, mut rest) = next_part(&leaves, most);
        // An error is met again where the page is needed.
        let _ = self.pool.fetch(part).await;
        while !part.is_empty() {
            // The drive reads the next ones while these are merged.
            let next;
            (next, rest) = next_part(rest, most);
            let _ = self.pool.fetch(next).await;
            for leaf in part {
                if self.health.check().is_err() {
                    return;
                }
                // A leaf that cannot be read or divided now stands in nobody's way but its own.
                let _ = self.merge_leaf(*leaf, reason).await;
            }
            self.handle.pause().await;
            part = next;
        }
    }

    /// Leaves in their order, with those in their neighbourhoods that are worth merging too.
    async fn with_neighbours(&self, mut leaves: Vec<PageId>) -> Vec<PageId> {
        leaves.sort_unstable();
        leaves.dedup();
        let tail = self.log.tail();
        let mut oldest = tail;
        for together in leaves.chunks(LEAVES_TOGETHER) {
            oldest = oldest.min(self.records.borrow().oldest_of(together).unwrap_or(tail));
            if together.len() == LEAVES_TOGETHER {
                self.handle.pause().await;
            }
        }
        let old = Lsn(oldest.0 + (tail.0 - oldest.0) / 2);
        let mut all = Vec::with_capacity(leaves.len());
        let size = self.records.borrow().neighbourhood();
        for (at, near) in leaves.chunk_by(|a, b| a.0 / size == b.0 / size).enumerate() {
            self.records.borrow().add_neighbourhood(near, old, &mut all);
            if at % NEIGHBOURHOODS_TOGETHER == NEIGHBOURHOODS_TOGETHER - 1 {
                self.handle.pause().await;
            }
        }
        all
    }

    async fn merge_leaf(&self, number: PageId, reason: Reason) -> Result<(), Error> {
        let mut number = number;
        while self.records.borrow().lacks(number) {
            let has_runs = !self.runs.borrow().is_empty();
            if has_runs && !self.catch_up_leaf(number).await? {
                return Ok(());
            }
            let mut guard = self.write_page(number).await?;
            if self.is_older_in_runs(leaf(guard.bytes())?) {
                continue;
            }
            if self.has_spilled(number) {
                return Ok(());
            }
            let too_large = self.merge_into(number, guard.bytes_mut())?;
            if reason == Reason::Room {
                self.records.borrow_mut().division.leaf_leaves(number);
            }
            let sparse = self.sparse_key(guard.bytes())?;
            drop(guard);
            if let Some(TooLarge { tree, key, cost }) = too_large {
                let has_pages = self.space.available() >= PAGES;
                let Some(_room) = self.room_for_change().filter(|_| has_pages) else { return Ok(()) };
                self.make_room(tree, &key, cost).await?;
                // The leaf may be another one now.
                match self.records.borrow().leaf_of(tree.id, &key) {
                    Some(leaf) => number = leaf,
                    None => return Ok(()),
                }
            } else if let Some((tree, key)) = sparse {
                let Some(_room) = self.room_for_change() else { return Ok(()) };
                self.shrink(tree, &key).await?;
            }
        }
        Ok(())
    }

    /// Whether some of what a leaf lacks is on its way into a run.
    pub fn has_spilled(&self, number: PageId) -> bool {
        let records = self.records.borrow();
        records.of_leaf(number).any(|entry| self.is_being_spilled(entry.tree, entry.key))
    }

    /// Whether runs may have something of a record that memory has of a leaf. It is older, and would come over that in the leaf.
    fn is_older_in_runs(&self, leaf: Node<'_>) -> bool {
        let (records, runs) = (self.records.borrow(), self.runs.borrow());
        let mut entries = records.of_leaf(page::number(leaf.bytes()));
        self.is_behind_runs(leaf) && entries.any(|entry| runs.may_be_in_one(entry.tree, entry.key))
    }

    /// Brings what runs have of a leaf into it where memory has something newer. Whether that could be done.
    async fn catch_up_leaf(&self, number: PageId) -> Result<bool, Error> {
        let (tree, low, high) = {
            let guard = self.read_page(number).await?;
            let node = leaf(guard.bytes())?;
            if !self.is_older_in_runs(node) {
                return Ok(true);
            }
            let tree = self.tree(page::tree(guard.bytes()))?;
            (tree, node.low().to_vec(), node.high().map(<[u8]>::to_vec))
        };
        self.catch_up(tree, &low, high.as_deref()).await
    }

    /// Room in the log for a split, or for two nodes that become one. Nobody waits for it here: a checkpoint, which makes room,
    /// merges as well.
    fn room_for_change(&self) -> Option<Room<'_, D>> {
        let bytes = self.change_bytes();
        self.has_room_in_log(bytes).then(|| {
            count(&self.promised_log, bytes);
            Room { shard: self, bytes }
        })
    }

    /// Puts what a leaf lacks into its bytes, as far as there is room, in one step with everything that is to be noted.
    pub fn merge_into(&self, number: PageId, bytes: &mut [u8]) -> Result<Option<TooLarge>, Error> {
        let tree = self.tree(page::tree(bytes))?;
        let mut records = self.records.borrow_mut();
        let put = |entry: Entry<'_>| {
            let Entry { tree: of, key, value } = entry;
            let node = leaf(bytes)?;
            if node.level() > 0 || of != tree.id || !node.covers(key) {
                return Err(self
                    .health
                    .stop(format!("page {} is not the leaf of a pending record", number.0)));
            }
            let old = node.search(key).ok().map(|index| node.value(index));
            self.versions.borrow_mut().settle(of, key, old);
            change(bytes, OpRef { tree: of, key, value, large: false })
        };
        let Merged { since, records: merged, too_large, outcome } = records.merge(number, put);
        if merged > 0 {
            // The records are in the log, and so is all that is behind them.
            let lsn = page::lsn(bytes).max(self.log.tail());
            page::set_lsn(bytes, lsn);
            self.mark_leaf(number, bytes, since);
        }
        outcome?;
        let too_large = too_large.map(|place| {
            let Entry { key, value, .. } = records.entry(place);
            let cost = leaf(bytes).map_or(0, |node| node.cost(key.len(), value.map_or(0, <[u8]>::len)));
            TooLarge { tree, key: key.to_vec(), cost }
        });
        Ok(too_large)
    }

    /// The tree of a leaf that should be united with a neighbour, and a key of it.
    pub fn sparse_key(&self, bytes: &[u8]) -> Result<Option<(Tree, Vec<u8>)>, Error> {
        let (tree, node) = (self.tree(page::tree(bytes))?, leaf(bytes)?);
        let is_root = page::number(bytes) == tree.root;
        Ok((!is_root && node.level() == 0 && is_sparse(node)).then(|| (tree, node.low().to_vec())))
    }
}

/// The first leaves of some in their order, at most `most`, that [`READ_TOGETHER`] commands read; and those behind them.
pub(super) fn next_part(leaves: &[PageId], most: usize) -> (&[PageId], &[PageId]) {
    let mut commands = 1;
    let is_enough = |at: &usize| {
        commands += u32::from(leaves[*at].0 != leaves[at - 1].0 + 1);
        commands > READ_TOGETHER
    };
    let most = most.min(leaves.len());
    leaves.split_at((1..most).find(is_enough).unwrap_or(most))
}

/// Room in the log that is promised as long as this lives.
struct Room<'a, D: Device + 'static> {
    shard: &'a Shard<D>,
    bytes: u64,
}

impl<D: Device + 'static> Drop for Room<'_, D> {
    fn drop(&mut self) {
        let promised = &self.shard.promised_log;
        promised.set(promised.get() - self.bytes);
        self.shard.room.notify();
    }
}

impl Records {
    /// Since when the first of these leaves has lacked a record; `None` where none lacks any.
    pub(super) fn oldest_of(&self, leaves: &[PageId]) -> Option<Lsn> {
        leaves.iter().flat_map(|leaf| self.list_of(*leaf)).map(|place| self.ring.since(place)).min()
    }

    /// Pages in a neighbourhood.
    pub(super) fn neighbourhood(&self) -> u64 {
        (NEIGHBOURHOOD / self.ring.chunk_bytes()).max(1) as u64
    }

    /// Adds leaves of one neighbourhood, in their order, and between them those that are worth merging too.
    pub(super) fn add_neighbourhood(&self, leaves: &[PageId], old: Lsn, all: &mut Vec<PageId>) {
        let size = self.neighbourhood();
        let first = leaves[0].0 / size * size;
        let mut leaves = leaves.iter().peekable();
        for leaf in (first..first + size).map(PageId) {
            if leaves.next_if_eq(&&leaf).is_some() || self.is_worth_merging(leaf, old) {
                all.push(leaf);
            }
        }
    }

    /// Whether a leaf lacks several records that nobody asks for, one of them since before `old`. What is asked for will be written again,
    /// and a leaf that lacks new records alone will lack more.
    fn is_worth_merging(&self, leaf: PageId, old: Lsn) -> bool {
        let is_cold = |place: &Place| !self.ring.is_asked_for(*place);
        let sinces = self.list_of(leaf).filter(is_cold).map(|place| self.ring.since(place));
        let (count, oldest) = sinces.fold((0, old), |(count, oldest), since| (count + 1, oldest.min(since)));
        count >= WORTH_MERGING && oldest < old
    }

    /// The leaf that lacks a record.
    fn leaf_of(&self, tree: u32, key: &[u8]) -> Option<PageId> {
        let place = self.find(tree, key).filter(|place| self.ring.is_pending(*place))?;
        Some(PageId(u64::from(self.ring.leaf(place))))
    }

    /// A place of the log that recovery must not begin behind; `None` where no leaf lacks a record.
    pub fn least(&self) -> Option<Lsn> {
        self.ring.oldest_pending()
    }
}

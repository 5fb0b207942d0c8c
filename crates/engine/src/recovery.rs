//! Opening a store after a crash.
//!
//! 1. Damaged pages whose double-write copies are whole are restored.
//! 2. *Structure*: the log is read from the redo point to its end. Each change of a structure is done again on the pages
//!    that do not contain it yet, which their structure LSNs say. Afterwards the trees are as they were at the log's end,
//!    with keys at some value that they had since the redo point.
//! 3. *Records*: the log is read once more, and its operations are done again in order. Operations are absolute, so it does
//!    not matter which of them a leaf contains already. Of the operations on one key in one stretch of log only
//!    the last is done, and keys are done in order, so each leaf is visited about once.
//!
//! A crash meanwhile leaves the redo point where it was, and everything is done again. Splits in step 3 are logged behind
//! the log's end like any others.

use crate::log::{Delta, Entry, LogReader, LogStart, OpRef, Tail};
use crate::page::{self, map};
use crate::shard::{Shard, count};
use crate::tree::{Applied, CATALOGUE, LARGE, Seek, Tree, leaf};
use crate::wait::together;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::{Device, Handle, IoError};
use fulgurite_pool::{BufferPool, PoolError, WriteGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Leaves that are read at once.
const READ_TOGETHER: usize = 64;

/// What step 2 has found.
#[derive(Clone, Copy, Debug)]
pub struct Redone {
    /// Where the log ends.
    pub tail: Tail,
    /// The next number of a large value.
    pub next_large: u64,
}

/// Step 2, on a pool that has no log yet.
pub async fn redo_structure<D: Device + 'static>(
    handle: &Handle<D>,
    pool: &BufferPool<D>,
    pages: &crate::write::InPlace<D>,
    (start, next_large, data): (LogStart, u64, Range<u64>),
    options: &crate::Options,
) -> Result<Redone, Error> {
    let mut reader = LogReader::new(handle.clone(), start, None, options);
    let mut next_large = next_large;
    loop {
        let mut fits = true;
        let read = |_: Lsn, payload: &[u8]| {
            Entry::visit(payload, |op| {
                fits &= op.fits(pages.page_bytes());
                if op.tree == LARGE && op.key.len() == 12 {
                    let number = u64::from_be_bytes(page::array(op.key, 0));
                    next_large = next_large.max(number.saturating_add(1));
                }
            })
        };
        let Some((since, lsn, deltas)) = reader.next(read).await? else { break };
        if !fits || !deltas.iter().all(|delta| data.contains(&delta.page().0)) {
            let what = "a record says what no store does".to_owned();
            return Err(Error::LogCorrupt { at: since, what });
        }
        // A record may change a page in several steps, which its LSN covers together.
        let mut by_page: BTreeMap<PageId, Vec<&Delta>> = BTreeMap::new();
        for delta in &deltas {
            by_page.entry(delta.page()).or_default().push(delta);
        }
        for (page, deltas) in by_page {
            redo_page(pool, page, lsn, &deltas, options).await?;
            pages.mark(page, since);
        }
    }
    let tail = reader.tail().await?;
    // The log goes before the pages. A page that is newer shows that the log has lost its end.
    let newest = pages.newest_read();
    if newest > tail.at {
        let what = format!("a page has changes up to {newest}, and the log ends before");
        return Err(Error::LogCorrupt { at: tail.at, what });
    }
    Ok(Redone { tail, next_large })
}

async fn redo_page<D: Device + 'static>(
    pool: &BufferPool<D>,
    page: PageId,
    lsn: Lsn,
    deltas: &[&Delta],
    options: &crate::Options,
) -> Result<(), Error> {
    let replaces = deltas.first().is_some_and(|delta| delta.replaces_page());
    let mut guard: WriteGuard<D> = match pool.write(page).await {
        Ok(guard) => guard,
        // Whatever is there, the record replaces it.
        Err(PoolError::Read { error: IoError::Corrupt, .. }) if replaces => {
            let mut guard = pool.create(page).await?;
            guard.bytes_mut().fill(0);
            guard
        }
        Err(error) => return Err(error.into()),
    };
    let contained = page::structure_lsn(guard.bytes());
    let is_behind = if planted!(options, WrongLsnCompare) {
        Lsn(contained.0 + 1) < lsn && contained.0 > 0
    } else {
        contained < lsn
    };
    if !is_behind {
        return Ok(());
    }
    let bytes = guard.bytes_mut();
    // Before the changes: an image has its own LSN field, which the page's past says nothing about.
    let newest = page::lsn(bytes).max(lsn);
    for delta in deltas {
        delta
            .apply(bytes)
            .and_then(|()| page::fault(bytes).map_or(Ok(()), Err))
            .map_err(|what| Error::corrupt(page, format!("the log does not fit it: {what}")))?;
        if page::kind(bytes).is_none() || page::number(bytes) != page {
            return Err(Error::corrupt(page, "the log makes another page of it"));
        }
    }
    page::set_structure_lsn(bytes, lsn);
    page::set_lsn(bytes, newest);
    Ok(())
}

impl<D: Device + 'static> Shard<D> {
    /// Counts the free pages of all groups.
    pub async fn count_free(&self) -> Result<(), Error> {
        let maps: Vec<(PageId, u32)> = self.space.maps().collect();
        for part in maps.chunks(READ_TOGETHER) {
            let counts = part.iter().map(|(map, pages)| async move {
                let guard = self.read_page(*map).await?;
                Ok::<u32, Error>(pages - map::count_used(guard.bytes(), *pages))
            });
            for (free, (map, _)) in std::iter::zip(together(counts.collect()).await, part) {
                self.space.set_free(*map, free?);
            }
        }
        Ok(())
    }

    /// Reads the catalogue into memory.
    pub async fn load_catalogue(&self) -> Result<(), Error> {
        let tree = self.tree(CATALOGUE)?;
        self.each_leaf(tree, |node| {
            let mut catalogue = self.catalogue.borrow_mut();
            node.records().try_for_each(|(key, value)| catalogue.add(&key, value.bytes))
        })
        .await
    }

    /// Step 3.
    pub async fn redo_records(self: &Rc<Self>, start: LogStart, tail: Tail) -> Result<(), Error> {
        let mut reader = LogReader::new(self.handle.clone(), start, Some(tail), &self.options);
        // What old versions and commits have otherwise: nobody uses the store yet.
        let most = (self.options.memory_bytes / 4).max(1 << 20);
        let mut stretch = Stretch::new(most);
        let (mut is_upward, mut last) = (true, 0);
        loop {
            let len = stretch.ops.len();
            let next = reader.next(|at, payload| stretch.add(at, payload)).await?;
            if next.is_some() {
                last = len;
            }
            if next.is_none() || stretch.is_full() {
                if next.is_none() && planted!(self.options, LostTail) {
                    stretch.truncate(last);
                }
                self.redo_stretch(&stretch, is_upward, tail.at).await?;
                is_upward = !is_upward;
                stretch.clear();
                if self.log.used() > self.log.capacity() * 3 / 4 {
                    // The log may have no room for what is still to come, so what was done is made durable.
                    self.checkpoint(Lsn(u64::MAX)).await?;
                }
            }
            if next.is_none() {
                return Ok(());
            }
        }
    }

    async fn redo_stretch(
        self: &Rc<Self>,
        stretch: &Stretch,
        is_upward: bool,
        end: Lsn,
    ) -> Result<(), Error> {
        let at = Applied { since: stretch.since, lsn: end, keep_old: false };
        let ops = stretch.last_by_key();
        count(&self.counters.recovered_ops, ops.len() as u64);
        // New tables come first, since the trees of other operations may be theirs.
        let tables = ops.partition_point(|op| op.tree == CATALOGUE);
        for op in &ops[..tables] {
            self.apply(self.tree(CATALOGUE)?, &op.to_op(), at).await?;
        }
        if tables > 0 {
            self.load_catalogue().await?;
        }
        for ops in ops[tables..].chunk_by(|op, next| op.tree == next.tree) {
            self.redo_tree(self.tree(ops[0].tree)?, ops, is_upward, at).await?;
        }
        Ok(())
    }

    /// Does operations on one tree, in the order of their keys. Every other stretch goes downward, part by part: the leaves
    /// where one ends are in the pool still when the next begins.
    async fn redo_tree(
        self: &Rc<Self>,
        tree: Tree,
        ops: &[OpRef<'_>],
        is_upward: bool,
        at: Applied,
    ) -> Result<(), Error> {
        // A part is what lies below one parent of leaves.
        let mut parts = Vec::new();
        let mut rest = ops;
        while let Some(first) = rest.first() {
            let parent = self.find(tree, Seek::At(first.key), 1).await?;
            let high = leaf(parent.bytes())?.high();
            let len = high.map_or(rest.len(), |high| rest.partition_point(|op| op.key < high));
            let (part, later) = rest.split_at(len);
            parts.push(part);
            rest = later;
        }
        if !is_upward {
            parts.reverse();
        }
        for mut part in parts {
            self.read_leaves(tree, part).await?;
            while !part.is_empty() {
                let done = self.apply_run(tree, part, at).await?;
                part = &part[done..];
            }
        }
        Ok(())
    }

    /// Brings the leaves of operations below one parent into the pool, many at once.
    async fn read_leaves(&self, tree: Tree, ops: &[OpRef<'_>]) -> Result<(), Error> {
        let mut missing = Vec::new();
        if let Some(first) = ops.first() {
            let guard = self.find(tree, Seek::At(first.key), 1).await?;
            let parent = leaf(guard.bytes())?;
            let mut rest = if parent.level() == 1 { ops } else { &[] };
            while let Some(op) = rest.first().filter(|op| parent.covers(op.key)) {
                let index = parent.child_for(op.key);
                let child = parent.child(index);
                if self.pool.try_read(child).is_none() {
                    missing.push(child);
                }
                let high = (index + 1 < parent.len()).then(|| parent.key(index + 1));
                rest = match high {
                    Some(high) => &rest[rest.partition_point(|op| op.key < &high[..])..],
                    None => &[],
                };
            }
        }
        for pages in missing.chunks(READ_TOGETHER) {
            // A page that cannot be read is met again where it is needed.
            let reads = pages.iter().map(|page| async move { self.read_page(*page).await.map(drop) });
            together(reads.collect()).await;
        }
        Ok(())
    }
}

/// Operations of a stretch of the log, in the log's order.
struct Stretch {
    /// Their keys and values, one behind the other.
    bytes: Vec<u8>,
    ops: Vec<Place>,
    /// Where the stretch begins.
    since: Lsn,
    most: usize,
}

/// An operation of a stretch.
#[derive(Clone, Copy)]
struct Place {
    tree: u32,
    /// Where the key begins; the value is behind it.
    from: u32,
    key: u32,
    value: Option<u32>,
    large: bool,
}

/// Memory for an operation beside its bytes: its place, its place in the order of keys, the reference that is left.
const PLACE_BYTES: usize = size_of::<Place>() + size_of::<(u32, u64, u32)>() + size_of::<OpRef<'_>>();

impl Stretch {
    /// One that is full with so many bytes of memory.
    fn new(most: u64) -> Stretch {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(1 << 31);
        Stretch { bytes: Vec::new(), ops: Vec::new(), since: Lsn(0), most }
    }

    /// Adds the operations of a record's payload; `None` where it makes no sense.
    fn add(&mut self, at: Lsn, payload: &[u8]) -> Option<()> {
        if self.ops.is_empty() {
            self.since = at;
        }
        Entry::visit(payload, |op| {
            let from = self.bytes.len() as u32;
            self.bytes.extend_from_slice(op.key);
            self.bytes.extend_from_slice(op.value.unwrap_or_default());
            let (key, value) = (op.key.len() as u32, op.value.map(|value| value.len() as u32));
            self.ops.push(Place { tree: op.tree, from, key, value, large: op.large });
        })
        .map(drop)
    }

    fn is_full(&self) -> bool {
        self.bytes.len() + self.ops.len() * PLACE_BYTES > self.most
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ops.clear();
    }

    /// Forgets all but the first operations.
    fn truncate(&mut self, ops: usize) {
        self.ops.truncate(ops);
    }

    fn get(&self, index: u32) -> OpRef<'_> {
        let Place { tree, from, key, value, large } = self.ops[index as usize];
        let (key, rest) = self.bytes[from as usize..].split_at(key as usize);
        OpRef { tree, key, value: value.map(|len| &rest[..len as usize]), large }
    }

    /// The last operation on each key, by tree and key.
    fn last_by_key(&self) -> Vec<OpRef<'_>> {
        let all = || (0..self.ops.len() as u32).map(|index| self.get(index));
        // Keys lie all over memory, so most comparisons are of a few bytes behind what all keys have in common.
        let first = all().next().map_or(&[][..], |op| op.key);
        let shared = all().map(|op| shared_bytes(first, op.key)).min().unwrap_or(0);
        let mut order: Vec<(u32, u64, u32)> = Vec::with_capacity(self.ops.len());
        order.extend((0u32..).zip(all()).map(|(index, op)| (op.tree, head(&op.key[shared..]), index)));
        let key = |index: u32| self.get(index).key;
        order.sort_unstable_by(|one, other| {
            let heads = (one.0, one.1).cmp(&(other.0, other.1));
            heads.then_with(|| key(one.2).cmp(key(other.2))).then(one.2.cmp(&other.2))
        });
        order
            .chunk_by(|one, other| (one.0, one.1) == (other.0, other.1) && key(one.2) == key(other.2))
            .filter_map(|same| same.last().map(|last| self.get(last.2)))
            .collect()
    }
}

fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    std::iter::zip(one, other).take_while(|(one, other)| one == other).count()
}

/// The first eight bytes as a number; keys are in order wherever these numbers are.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Op;
    use crate::log::record::FRAME;
    use fulgurite_base::Prng;

    #[test]
    fn the_last_operation_on_each_key_is_left_in_order() {
        let mut prng = Prng::new(1, "stretch");
        for round in 0..300 {
            let mut stretch = Stretch::new(1 << 20);
            let mut expected = BTreeMap::new();
            for number in 0..prng.below(200) {
                // Keys that are beginnings of each other, with zeros at their ends, and longer than what is compared first.
                let shared = if round % 2 == 0 { "the same for all" } else { "" };
                let bytes = (0..prng.below(12)).map(|_| prng.below(3) as u8);
                let key: Box<[u8]> = shared.bytes().chain(bytes).collect();
                let value = (prng.below(4) > 0).then(|| Box::from(number.to_le_bytes()));
                let op = Op { tree: prng.below(2) as u32, key, value, large: false };
                expected.insert((op.tree, op.key.clone()), op.clone());
                let mut record = Vec::new();
                Entry { deltas: Vec::new(), ops: vec![op] }.encode(Lsn(number), &mut record);
                stretch.add(Lsn(number), &record[FRAME..]).unwrap();
            }
            let expected: Vec<Op> = expected.into_values().collect();
            let found: Vec<Op> = stretch.last_by_key().into_iter().map(OpRef::to_op).collect();
            assert_eq!(found, expected);
            stretch.clear();
            assert!(stretch.last_by_key().is_empty());
        }
    }
}

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

use crate::log::{Delta, LogReader, LogStart, Op, Tail};
use crate::page::{self, map};
use crate::shard::{Shard, count};
use crate::tree::{Applied, CATALOGUE, LARGE, Seek, Tree};
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
    while let Some((since, lsn, entry)) = reader.next().await? {
        let sound = entry.deltas.iter().all(|delta| data.contains(&delta.page().0))
            && entry.ops.iter().all(|op| op.fits(pages.page_bytes()));
        if !sound {
            let what = "a record says what no store does".to_owned();
            return Err(Error::LogCorrupt { at: since, what });
        }
        // A record may change a page in several steps, which its LSN covers together.
        let mut by_page: BTreeMap<PageId, Vec<&Delta>> = BTreeMap::new();
        for delta in &entry.deltas {
            by_page.entry(delta.page()).or_default().push(delta);
        }
        for (page, deltas) in by_page {
            redo_page(pool, page, lsn, &deltas, options).await?;
            pages.mark(page, since);
        }
        for op in entry.ops.iter().filter(|op| op.tree == LARGE && op.key.len() == 12) {
            next_large = next_large.max(u64::from_be_bytes(page::array(&op.key, 0)).saturating_add(1));
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
        let most = (self.options.memory_bytes / 8).max(1 << 20);
        let mut stretch = Stretch::default();
        let mut next = reader.next().await?;
        while let Some((since, _, entry)) = next {
            next = reader.next().await?;
            if next.is_some() || !planted!(self.options, LostTail) {
                stretch.add(since, entry.ops);
            }
            if next.is_none() || stretch.bytes > most {
                self.redo_stretch(&mut stretch, tail.at).await?;
                if self.log.used() > self.log.capacity() * 3 / 4 {
                    // The log may have no room for what is still to come, so what was done is made durable.
                    self.checkpoint(Lsn(u64::MAX)).await?;
                }
            }
        }
        Ok(())
    }

    async fn redo_stretch(self: &Rc<Self>, stretch: &mut Stretch, end: Lsn) -> Result<(), Error> {
        let Stretch { ops, since, .. } = std::mem::take(stretch);
        count(&self.counters.recovered_ops, ops.len() as u64);
        let at = Applied { since, lsn: end, keep_old: false };
        let ops: Vec<Op> = ops.into_values().collect();
        // New tables come first, since the trees of other operations may be theirs.
        let tables = ops.partition_point(|op| op.tree == CATALOGUE);
        for op in &ops[..tables] {
            self.apply(self.tree(CATALOGUE)?, op, at).await?;
        }
        if tables > 0 {
            self.load_catalogue().await?;
        }
        for part in ops[tables..].chunks(READ_TOGETHER) {
            let looks = part.iter().map(|op| async move {
                let tree: Tree = self.tree(op.tree)?;
                self.find(tree, Seek::At(&op.key), 0).await.map(drop)
            });
            for looked in together(looks.collect()).await {
                looked?;
            }
            for op in part {
                self.apply(self.tree(op.tree)?, op, at).await?;
            }
        }
        Ok(())
    }
}

/// The last operation on each key of a stretch of the log.
#[derive(Default)]
struct Stretch {
    ops: BTreeMap<(u32, Box<[u8]>), Op>,
    bytes: u64,
    /// Where the stretch begins.
    since: Lsn,
}

impl Stretch {
    fn add(&mut self, since: Lsn, ops: Vec<Op>) {
        if self.ops.is_empty() {
            self.since = since;
        }
        for op in ops {
            self.bytes += op.bytes() as u64 + 100;
            self.ops.insert((op.tree, op.key.clone()), op);
        }
    }
}

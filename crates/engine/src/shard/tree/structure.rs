//! Structure changes of the trees, one at a time: latches the pages, appends the log record, and changes the
//! pages. No other task runs between the append and the change.

use super::Seek;
use crate::format::log_record::{Delta, Entry, Op};
use crate::format::page;
use crate::format::page::node::Node;
use crate::format::page::node::leaf;
use crate::format::tree::Tree;
use crate::memory::record_cache::Record;
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_pool::WriteGuard;

/// The pages that a structure change has latched exclusively.
pub(crate) struct Held {
    latched: Vec<(PageId, WriteGuard)>,
    /// See [`Held::leaving`].
    left: Vec<PageId>,
}

impl Held {
    /// Returns the bytes of one of the latched pages.
    pub(crate) fn bytes(&self, page: PageId) -> Result<&[u8], Error> {
        let held = self.latched.iter().find(|(held, _)| *held == page);
        held.map(|(_, guard)| guard.bytes()).ok_or_else(|| Error::corrupt(page, "a change does not hold it"))
    }

    /// Adds pages, in ascending order, that the change frees and leaves as they are: nothing leads to them any more,
    /// so they are neither latched nor written.
    pub(crate) fn leaving(self, freed: Vec<PageId>) -> Held {
        Held { left: freed, ..self }
    }
}

/// The most pages that a change latches at once. A pool with the least memory has so many frames beside its spare
/// ones.
const MOST_HELD: usize = 10;

impl Shard {
    /// Returns the pages from the root down to the leaf that covers `key`. The path stays valid while the
    /// caller has the turn to change the structure.
    pub(crate) async fn path(&self, tree: Tree, key: &[u8]) -> Result<Vec<PageId>, Error> {
        let mut path = vec![tree.root];
        let mut above: Option<u8> = None;
        loop {
            let last = path[path.len() - 1];
            let guard = self.read_page(last).await?;
            let node = leaf(guard.bytes())?;
            let fits = page::tree(guard.bytes()) == tree.id && node.covers(key);
            if !fits || above.is_some_and(|above| above - 1 != node.level()) {
                return Err(Error::corrupt(last, format!("it has no place in tree {}", tree.id)));
            }
            if node.level() == 0 {
                return Ok(path);
            }
            above = Some(node.level());
            path.push(node.child(Seek::At(key).child(node)));
        }
    }

    /// Latches `pages` for a change, and creates the pages `fresh` without reading them.
    ///
    /// The task that has the turn to change the structure waits here for one latch while it holds others. No
    /// other task waits for a latch while it holds one, so there is no deadlock. Releasing the others during
    /// the wait might never end: a page that was latched for a change counts as dirty, so a write-back could
    /// latch these pages in turn again and again.
    pub(crate) async fn hold(&self, pages: &[PageId], fresh: &[PageId]) -> Result<Held, Error> {
        // In a damaged store a page may be its own neighbour, or be in use and marked as free. Latching the
        // same page twice would wait forever.
        let mut all = [pages, fresh].concat();
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::corrupt(
                pair[0],
                "it has two places in the tree, or is in use and marked as free",
            ));
        }
        debug_assert!(all.len() <= MOST_HELD, "a small pool has no frames for {} pages", all.len());
        let mut held = Vec::with_capacity(all.len());
        for page in fresh {
            held.push((*page, self.durable.pool().create(*page).await.map_err(self.of_pool())?));
        }
        // Reads the pages from the drive before the first of them is latched, so that no other task waits for
        // a latch during the reads.
        for page in pages {
            drop(self.read_page(*page).await?);
        }
        for page in pages {
            held.push((*page, self.write_page(*page).await?));
        }
        Ok(Held { latched: held, left: Vec::new() })
    }

    /// Tells the backup in progress which pages become used without their contents being in the log.
    fn note_unlogged(&self, deltas: &[Delta]) {
        let has_image =
            |page| deltas.iter().any(|delta| matches!(delta, Delta::Image { .. }) && delta.page() == page);
        self.state.with_backup(|watch| {
            for delta in deltas {
                if let Delta::Map { page, from, count, used: true } = delta {
                    let used = (*from..from + count).map(|index| PageId(page.0 + u64::from(index)));
                    used.filter(|page| !has_image(*page)).for_each(|page| watch.unlogged(page));
                }
            }
        });
    }

    /// Moves the pending records of the latched leaves to the leaves that cover their keys now.
    fn redistribute_records(&self, held: &Held) -> Result<(), Error> {
        let mut records = self.state.records_mut();
        if records.pending() == 0 {
            return Ok(());
        }
        let pages: Vec<PageId> = held.latched.iter().map(|(page, _)| *page).collect();
        let leaf_for = |record: Record<'_>| {
            let is_its_leaf = |bytes: &[u8]| {
                page::tree(bytes) == record.tree
                    && Node::new(bytes).is_some_and(|node| node.level() == 0 && node.covers(record.key))
            };
            held.latched.iter().find(|(_, guard)| is_its_leaf(guard.bytes())).map(|(page, _)| *page)
        };
        if records.redistribute(&pages, leaf_for) {
            Ok(())
        } else {
            Err(self.health.stop("a structure change leaves pending records without a leaf"))
        }
    }

    /// Appends the log record of a structure change, and changes the pages, which must all be latched.
    pub(crate) fn restructure(
        &self,
        mut held: Held,
        deltas: Vec<Delta>,
        ops: Vec<Op>,
    ) -> Result<(Lsn, Lsn), Error> {
        let entry = Entry { deltas, ops, part: None };
        let is_forgotten = entry.deltas.iter().any(|delta| match delta {
            Delta::Keep { .. } => planted!(self.options, SplitNotLogged),
            Delta::Free { .. } => planted!(self.options, FreePageReusedEarly),
            _ => false,
        });
        let (since, lsn) = if is_forgotten {
            (self.durable.log().tail(), self.durable.log().tail())
        } else {
            self.durable.log().append(&entry)
        };
        for delta in &entry.deltas {
            let number = delta.page();
            if matches!(delta, Delta::Free { .. }) && held.left.binary_search(&number).is_ok() {
                self.state.notes_mut().forget(number);
                continue;
            }
            let Some((_, guard)) = held.latched.iter_mut().find(|(page, _)| *page == number) else {
                return Err(self.health.stop(format!("a structure change does not hold page {}", number.0)));
            };
            let bytes = guard.bytes_mut();
            if let Err(what) = delta.apply(bytes) {
                // The log record cannot be taken back, so pages and log no longer agree.
                return Err(self.health.stop(format!("page {} could not be changed: {what}", number.0)));
            }
            page::set_structure_lsn(bytes, lsn);
            page::set_lsn(bytes, lsn);
            self.mark(number, since);
            if delta.replaces_page() {
                self.state.notes_mut().forget(number);
            }
            if let Delta::Map { page, from, count, used } = delta {
                self.state.space().changed(*page, *from, *count, *used, lsn);
            }
        }
        self.redistribute_records(&held)?;
        self.durable.set_last_structure(lsn);
        self.note_unlogged(&entry.deltas);
        Ok((since, lsn))
    }
}

//! The writes that a power cut may lose, with what their pages held before.
//!
//! The caller decides when a write becomes durable: when it completes, by a flush, by its number, or because the
//! completed writes are more than the cache holds. A page's history begins with its contents that nothing can take back
//! (`base`), followed by one change for each write. A durable change leaves the history when all changes before
//! it have left, since an earlier write must not come back over a later one.

use crate::pages::{Page, Pages, Spare};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The number of a write, in the order of submission.
pub type WriteId = u64;

/// One write's change of one page.
#[derive(Clone)]
struct Change {
    write: WriteId,
    /// The bytes of the page that the write changed.
    from: u32,
    to: u32,
    /// The page after this write and all writes before it.
    after: Option<Page>,
}

/// The contents that a page may have after a power cut.
#[derive(Clone)]
struct History {
    base: Option<Page>,
    changes: VecDeque<Change>,
}

/// A write, trim or write of zeros with changes that are in the histories of its pages.
#[derive(Clone)]
struct Write {
    offset: u64,
    length: u64,
    /// The pages that the write has changed; empty once it is durable.
    pages: Vec<u64>,
    /// The number of its changes in histories.
    changes: usize,
    is_durable: bool,
    /// The number of completions before that of this write; `None` while it is in flight.
    completed: Option<u64>,
}

/// A part of a write that a power cut keeps or loses as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// The number of the write, in the order of submission.
    pub write: u64,
    /// The address of its first byte.
    pub offset: u64,
    /// The number of its bytes.
    pub length: u64,
    /// Whether the write had not completed.
    pub in_flight: bool,
}

/// The effect of a power cut on the contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The number of pages with changes that were not durable.
    pub pages_unflushed: u64,
    /// The number of these pages that have lost a whole write.
    pub pages_lost: u64,
    /// The number of these pages that have a part of a write.
    pub pages_torn: u64,
}

/// All writes that are not durable.
#[derive(Clone)]
pub(crate) struct Unflushed {
    page_bytes: u64,
    /// A write is torn only at multiples of this number of bytes.
    tear_bytes: u64,
    /// The most bytes of completed writes that are not durable.
    cache_bytes: u64,
    histories: FxHashMap<u64, History>,
    writes: FxHashMap<WriteId, Write>,
    next: WriteId,
    /// The completed writes that are not durable, by their place among all completions, and their bytes.
    cached: BTreeMap<u64, WriteId>,
    cached_bytes: u64,
    completions: u64,
    /// The memory of pages that have left the histories.
    pub(crate) spare: Spare,
}

impl Unflushed {
    /// Creates the state of a drive with an empty cache.
    pub(crate) fn new(page_bytes: u32, tear_bytes: u64, cache_bytes: u64) -> Unflushed {
        Unflushed {
            page_bytes: u64::from(page_bytes),
            tear_bytes,
            cache_bytes,
            histories: FxHashMap::default(),
            writes: FxHashMap::default(),
            next: 0,
            cached: BTreeMap::new(),
            cached_bytes: 0,
            completions: 0,
            spare: Spare::default(),
        }
    }

    /// Returns the number of completions so far. A flush covers the writes that completed before this mark.
    pub(crate) fn mark(&self) -> u64 {
        self.completions
    }

    /// Returns the number of pages with changes that are not durable.
    pub(crate) fn pages(&self) -> u64 {
        self.histories.len() as u64
    }

    /// Returns the pages of a range with changes that are not durable, in any order.
    pub(crate) fn pages_in(&self, range: &Range<u64>) -> Vec<u64> {
        // Looks at the smaller of the two sets.
        if range.end - range.start <= self.histories.len() as u64 {
            return range.clone().filter(|lpn| self.histories.contains_key(lpn)).collect();
        }
        self.histories.keys().copied().filter(|lpn| range.contains(lpn)).collect()
    }

    /// Returns the next number of a write, which no write will have.
    pub(crate) fn reserve(&mut self) -> WriteId {
        self.next += 1;
        self.next - 1
    }

    /// Begins a write of the `length` bytes at `offset`. [`Unflushed::change`] records its pages.
    pub(crate) fn begin(&mut self, offset: u64, length: u64) -> WriteId {
        let id = self.reserve();
        let write =
            Write { offset, length, pages: Vec::new(), changes: 0, is_durable: false, completed: None };
        self.writes.insert(id, write);
        id
    }

    /// Records that `write` has changed the bytes `from..to` of page `lpn`, which held `before`.
    pub(crate) fn change(
        &mut self,
        write: WriteId,
        lpn: u64,
        (from, to): (u32, u32),
        before: Option<Page>,
        after: Option<Page>,
    ) {
        let history =
            self.histories.entry(lpn).or_insert_with(|| History { base: before, changes: VecDeque::new() });
        history.changes.push_back(Change { write, from, to, after });
        if let Some(write) = self.writes.get_mut(&write) {
            write.pages.push(lpn);
            write.changes += 1;
        }
    }

    /// Records that `write` has completed, durable if `is_durable`.
    pub(crate) fn complete(&mut self, id: WriteId, is_durable: bool) {
        let completed = self.completions;
        self.completions += 1;
        let Some(write) = self.writes.get_mut(&id).filter(|write| !write.is_durable) else { return };
        if is_durable || write.pages.is_empty() {
            self.store(id);
            return;
        }
        write.completed = Some(completed);
        self.cached_bytes += write.length;
        self.cached.insert(completed, id);
    }

    /// Returns the write that completed first, if more bytes have completed than the cache holds.
    pub(crate) fn overflow(&self) -> Option<WriteId> {
        let (_, oldest) = self.cached.first_key_value()?;
        (self.cached_bytes > self.cache_bytes).then_some(*oldest)
    }

    /// Makes all writes durable that completed before `mark`.
    pub(crate) fn flush(&mut self, mark: u64) {
        let covered: Vec<WriteId> = self.cached.range(..mark).map(|(_, id)| *id).collect();
        covered.into_iter().for_each(|id| self.store(id));
    }

    /// Makes a write durable.
    pub(crate) fn store(&mut self, id: WriteId) {
        let Some(write) = self.writes.get_mut(&id).filter(|write| !write.is_durable) else { return };
        write.is_durable = true;
        if write.completed.is_some_and(|completed| self.cached.remove(&completed).is_some()) {
            self.cached_bytes -= write.length;
        }
        let pages = std::mem::take(&mut write.pages);
        if pages.is_empty() {
            self.writes.remove(&id);
        }
        for lpn in pages {
            self.settle(lpn);
        }
    }

    /// Whether a power cut could lose a part of this write.
    pub(crate) fn is_losable(&self, id: WriteId) -> bool {
        self.writes.get(&id).is_some_and(|write| !write.is_durable && !write.pages.is_empty())
    }

    /// Removes the durable changes at the beginning of a page's history, and the writes that have no change left.
    fn settle(&mut self, lpn: u64) {
        let Some(history) = self.histories.get_mut(&lpn) else { return };
        while let Some(change) = history.changes.front() {
            let Some(write) = self.writes.get_mut(&change.write).filter(|write| write.is_durable) else {
                break;
            };
            write.changes -= 1;
            if write.changes == 0 {
                self.writes.remove(&change.write);
            }
            let after = history.changes.pop_front().and_then(|change| change.after);
            self.spare.keep(std::mem::replace(&mut history.base, after));
        }
        if history.changes.is_empty() {
            self.histories.remove(&lpn);
        }
    }

    /// Returns the parts of writes that a power cut may lose now, in the order of submission.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let mut ids: Vec<WriteId> = self.writes.keys().copied().filter(|id| self.is_losable(*id)).collect();
        ids.sort_unstable();
        ids.into_iter().flat_map(|id| self.pieces_of(id)).collect()
    }

    /// Returns the parts of one write that a power cut may lose now, by address.
    pub(crate) fn pieces_of(&self, id: WriteId) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let Some(write) = self.writes.get(&id).filter(|_| self.is_losable(id)) else { return pieces };
        let (mut offset, end) = (write.offset, write.offset + write.length);
        while offset < end {
            let border = (offset / self.tear_bytes + 1) * self.tear_bytes;
            let length = border.min(end) - offset;
            pieces.push(Piece { write: id, offset, length, in_flight: write.completed.is_none() });
            offset += length;
        }
        pieces
    }

    /// Removes the effect of writes from `pages`, and forgets all writes. `is_lost` is asked for each unit of
    /// `tear_bytes` that a write has changed, with the number of the write and that of the unit.
    pub(crate) fn lose(&mut self, pages: &mut Pages, is_lost: &dyn Fn(WriteId, u64) -> bool) -> Loss {
        let mut loss = Loss::default();
        for (lpn, history) in std::mem::take(&mut self.histories) {
            let has_volatile = history
                .changes
                .iter()
                .any(|change| self.writes.get(&change.write).is_some_and(|write| !write.is_durable));
            loss.pages_unflushed += u64::from(has_volatile);
            let mut page = history.base;
            let (mut has_lost, mut has_torn) = (false, false);
            for change in &history.changes {
                let start = lpn * self.page_bytes;
                let kept = self.kept(change, start, is_lost);
                let bytes: u64 = kept.iter().map(|(from, to)| u64::from(to - from)).sum();
                let whole = u64::from(change.to - change.from);
                has_lost |= bytes == 0;
                has_torn |= bytes > 0 && bytes < whole;
                if bytes == self.page_bytes {
                    page.clone_from(&change.after);
                } else if bytes > 0 {
                    page = Some(patched(page, change, &kept, self.page_bytes as usize));
                }
            }
            loss.pages_torn += u64::from(has_torn);
            loss.pages_lost += u64::from(has_lost && !has_torn);
            pages.replace(lpn, page);
        }
        self.writes.clear();
        self.cached.clear();
        self.cached_bytes = 0;
        loss
    }

    /// Returns the ranges of a change that are not lost. `start` is the address of its page.
    fn kept(&self, change: &Change, start: u64, is_lost: &dyn Fn(WriteId, u64) -> bool) -> Vec<(u32, u32)> {
        let (mut at, end) = (start + u64::from(change.from), start + u64::from(change.to));
        let mut kept: Vec<(u32, u32)> = Vec::new();
        while at < end {
            let border = ((at / self.tear_bytes + 1) * self.tear_bytes).min(end);
            let range = ((at - start) as u32, (border - start) as u32);
            if !is_lost(change.write, at / self.tear_bytes) {
                match kept.last_mut().filter(|last| last.1 == range.0) {
                    Some(last) => last.1 = range.1,
                    None => kept.push(range),
                }
            }
            at = border;
        }
        kept
    }
}

/// Returns `page` with these ranges of a change.
fn patched(page: Option<Page>, change: &Change, kept: &[(u32, u32)], page_bytes: usize) -> Page {
    let mut bytes = page.map_or_else(|| vec![0; page_bytes], |page| page.to_vec());
    for (from, to) in kept.iter().map(|(from, to)| (*from as usize, *to as usize)) {
        match &change.after {
            Some(after) => bytes[from..to].copy_from_slice(&after[from..to]),
            None => bytes[from..to].fill(0),
        }
    }
    bytes.into()
}

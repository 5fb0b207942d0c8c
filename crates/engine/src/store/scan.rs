//! Scans: return the records of a range in order, forward or backward, leaf by leaf.
//!
//! A scan reads leaves ahead. Their number depends on the *degree* of the scan (the number of leaves that it
//! reads at once) and on the number of records that it may still return. If no degree is set, a scan begins
//! with one leaf and doubles the number, so that a scan that is ended early has read few leaves in vain. An
//! index scan does the same with the database rows that its index entries refer to: it takes several entries
//! ahead, and reads the leaves of their rows together.

use crate::format::large_value::LargeValue;
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, Node};
use crate::format::tree::Tree;
use crate::memory::catalogue::Index;
use crate::memory::locks::Mode;
use crate::memory::versions::Old;
use crate::shard::Shard;
use crate::shard::tree::Seek;
use crate::store::read_view::{ReadView, Span};
use crate::store::row_batch::Rows;
use crate::{Error, StoreFuture};
use std::collections::{BTreeMap, VecDeque};

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In ascending order of keys.
    Forward,
    /// In descending order of keys.
    Backward,
}

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A scan of a range of keys. It holds no latch between two calls.
pub struct Scan<'a> {
    view: &'a ReadView,
    tree: Tree,
    /// The part of the range that was not scanned yet.
    span: Span,
    direction: Direction,
    /// The number of rows that may still be read.
    left: usize,
    found: Rows,
    /// The number of rows of `found` that were returned.
    given: usize,
    done: bool,
    ahead: Ahead,
}

/// The leaves that a scan has read ahead.
struct Ahead {
    window: Window,
    /// The number of leaves that were requested and not scanned yet.
    leaves: usize,
    /// The key at which the requested leaves end, or begin for a backward scan; `None` if no leaf was
    /// requested.
    from: Option<Vec<u8>>,
    /// Whether all leaves of the range were requested.
    done: bool,
}

/// The number of leaves or rows to request at once.
#[derive(Clone, Copy)]
struct Window {
    most: usize,
    /// The number that was requested last.
    last: usize,
}

impl Window {
    /// Creates a window that begins with one and grows up to the degree of the store.
    fn growing(shard: &Shard) -> Window {
        Window { most: shard.most_ahead(shard.options.degree), last: 0 }
    }

    /// Creates a window that requests `degree` leaves or rows from the beginning.
    fn fixed(shard: &Shard, degree: u32) -> Window {
        let most = shard.most_ahead(degree);
        Window { most, last: most }
    }

    /// Whether more should be requested when `left` of the requested leaves or rows are not used yet.
    fn is_due(&self, left: usize) -> bool {
        left <= self.last / 2
    }

    fn next(&mut self) -> usize {
        self.last = (2 * self.last).clamp(1, self.most);
        self.last
    }
}

/// The part of the range that one leaf covers.
struct Part {
    span: Span,
    is_last: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(view: &'a ReadView, tree: Tree, span: Span, direction: Direction) -> Scan<'a> {
        let done = span.is_empty();
        let ahead = Ahead { window: Window::growing(view.shard()), leaves: 0, from: None, done: false };
        let found = Rows::default();
        Scan { view, tree, span, direction, left: usize::MAX, found, given: 0, done, ahead }
    }

    /// Sets the number of leaves that are read at once. 1 reads one after the other; the maximum is a quarter
    /// of the pool. If no degree is set, the scan begins with one leaf and goes up to
    /// [`crate::Options::degree`].
    pub fn degree(mut self, leaves: u32) -> Self {
        self.ahead.window = Window::fixed(self.view.shard(), leaves);
        self
    }

    /// Ends the scan after `records` records. A transaction then locks only the part of the range that was
    /// returned.
    pub fn limit(mut self, records: usize) -> Self {
        let waiting = self.found.len() - self.given;
        self.found.truncate(self.given.saturating_add(records));
        self.left = records.saturating_sub(waiting);
        self
    }

    /// Returns the next record; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<Record>, Error> {
        self.next_record().await
    }

    fn next_record(&mut self) -> StoreFuture<'_, Option<Record>> {
        Box::pin(async move {
            loop {
                while self.given < self.found.len() {
                    self.given += 1;
                    let index = self.given - 1;
                    if let Some(value) = self.value(index).await?
                        && let Some((key, _)) = self.found.get(index)
                    {
                        return Ok(Some((key.to_vec(), value)));
                    }
                }
                if self.done || self.left == 0 {
                    return Ok(None);
                }
                self.found.truncate(0);
                self.given = 0;
                self.advance().await?;
            }
        })
    }

    /// Returns the keys of the next leaf; `None` at the end of the scan. Large values are not read.
    pub(crate) async fn next_keys(&mut self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        if self.done || self.left == 0 {
            return Ok(None);
        }
        self.found.truncate(0);
        self.advance().await?;
        self.given = self.found.len();
        Ok(Some(self.found.iter().map(|(key, _)| key.to_vec()).collect()))
    }

    /// Returns all remaining records.
    pub fn all(self) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            let rows = self.rows().await?;
            Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
        })
    }

    /// Returns all remaining records in one allocation.
    pub fn rows(mut self) -> StoreFuture<'a, Rows> {
        Box::pin(async move {
            while !self.done && self.left > 0 {
                self.advance().await?;
            }
            if self.given == 0 && !self.found.has_large() {
                return Ok(self.found);
            }
            let mut rows = Rows::default();
            for index in self.given..self.found.len() {
                if let Some(value) = self.value(index).await?
                    && let Some((key, _)) = self.found.get(index)
                {
                    rows.push(key, &value);
                }
            }
            Ok(rows)
        })
    }

    /// Returns the value of a row. A large value is read from its pieces; `None` if it was deleted since the
    /// row was found.
    async fn value(&self, index: usize) -> Result<Option<Vec<u8>>, Error> {
        match (self.found.cell(index), self.view) {
            (None, _) => Ok(None),
            (Some((_, Cell { bytes, large: false })), _) => Ok(Some(bytes.to_vec())),
            (Some((_, cell)), ReadView::Locked { shard, .. }) => {
                shard.read_large(LargeValue::read(cell.bytes)?).await
            }
            (Some((key, _)), ReadView::Past { shard, state }) => shard.past(self.tree, key, *state).await,
        }
    }

    /// Reads the records of the next leaf into `found`.
    async fn advance(&mut self) -> Result<(), Error> {
        self.view.check_tree(self.tree)?;
        // While a transaction has no lock yet, its table may be dropped during a read. The error of the read says
        // nothing then.
        self.read_leaf().await.map_err(|error| self.view.check_tree(self.tree).err().unwrap_or(error))
    }

    async fn read_leaf(&mut self) -> Result<(), Error> {
        self.read_ahead().await?;
        let mut found = std::mem::take(&mut self.found);
        let before = found.len();
        loop {
            self.view.check()?;
            found.truncate(before);
            let part = self.part(&mut found).await?;
            // After a wait for the lock another transaction may have changed the leaf, so it is read again.
            // Without a wait it is unchanged.
            if self.view.lock_span(self.tree, &part.span).await? {
                continue;
            }
            self.left -= found.len() - before;
            self.found = found;
            self.done = part.is_last;
            match self.direction {
                Direction::Forward => self.span.low = part.span.high.unwrap_or_default(),
                Direction::Backward => self.span.high = Some(part.span.low),
            }
            return Ok(());
        }
    }

    /// Requests the next leaves, unless enough of the requested ones are not scanned yet.
    async fn read_ahead(&mut self) -> Result<(), Error> {
        self.ahead.leaves = self.ahead.leaves.saturating_sub(1);
        if self.ahead.done || self.ahead.window.most < 2 || !self.ahead.window.is_due(self.ahead.leaves) {
            return Ok(());
        }
        let shard = self.view.shard();
        let most = match shard.state.leaf_records(self.tree) {
            // Reads no more leaves than the remaining records of the limit need.
            Some(records) if self.left < usize::MAX => {
                let needed = self.left.div_ceil(records.max(1)) + 1;
                needed.saturating_sub(self.ahead.leaves).min(self.ahead.window.most)
            }
            _ => self.ahead.window.next(),
        };
        // Reads only several leaves ahead; a single one is read on demand.
        if most + self.ahead.leaves < 2 {
            return Ok(());
        }
        let (seek, bound) = match (self.direction, &self.ahead.from) {
            (Direction::Forward, Some(from)) => (Seek::At(from), self.span.high.as_deref()),
            (Direction::Backward, Some(from)) => (Seek::Below(from), Some(&self.span.low[..])),
            (Direction::Forward, None) => (self.seek(), self.span.high.as_deref()),
            (Direction::Backward, None) => (self.seek(), Some(&self.span.low[..])),
        };
        let Some(leaves) = shard.leaves(self.tree, seek, bound, most).await? else {
            self.ahead.done = true;
            return Ok(());
        };
        shard.durable.pool().fetch(&leaves.pages).await.map_err(shard.of_pool())?;
        self.ahead.leaves += leaves.pages.len();
        self.ahead.done = match (self.direction, &leaves.end) {
            (_, None) => true,
            (Direction::Forward, Some(end)) => self.span.high.as_ref().is_some_and(|high| end >= high),
            (Direction::Backward, Some(end)) => *end <= self.span.low,
        };
        self.ahead.from = leaves.end;
        Ok(())
    }

    /// Returns the search for the next leaf.
    fn seek(&self) -> Seek<'_> {
        match (self.direction, &self.span.high) {
            (Direction::Forward, _) => Seek::At(&self.span.low),
            (Direction::Backward, Some(high)) => Seek::Below(high),
            (Direction::Backward, None) => Seek::Last,
        }
    }

    /// Adds the rows of the next leaf to `rows`. Returns the part of the range that the leaf covers.
    async fn part(&self, rows: &mut Rows) -> Result<Part, Error> {
        let shard = self.view.shard();
        let guard = shard.find(self.tree, self.seek(), 0).await?;
        let node = leaf(guard.bytes())?;
        shard.state.note_leaf_records(self.tree, node.len());
        let mut span = self.span.clone();
        if self.direction == Direction::Forward {
            if let Some(fence) = node.high()
                && span.high.as_ref().is_none_or(|high| fence < &high[..])
            {
                span.high = Some(fence.to_vec());
            }
        } else if node.low() > &span.low[..] {
            span.low = node.low().to_vec();
        }
        let mut is_last = match self.direction {
            Direction::Forward => span.high == self.span.high,
            Direction::Backward => span.low == self.span.low,
        };
        let mut from = node.search(&span.low).unwrap_or_else(|index| index);
        let mut to =
            span.high.as_ref().map_or(node.len(), |high| node.search(high).unwrap_or_else(|index| index));
        let seen = self.seen_instead(node, &span)?;
        if seen.is_empty() {
            // Takes no more rows than the limit allows.
            match self.direction {
                Direction::Forward => to = to.min(from.saturating_add(self.left)),
                Direction::Backward => from = from.max(to.saturating_sub(self.left)),
            }
        }
        let before = rows.len();
        // The rows in `seen` are inserted between the records of the leaf, or replace them.
        for (key, value) in seen {
            let (end, next) =
                node.search(&key).map_or_else(|index| (index, index), |index| (index, index + 1));
            rows.push_from(node, from..end);
            from = next;
            if let Some(value) = value {
                rows.push(&key, &value);
            }
        }
        rows.push_from(node, from..to);
        if self.direction == Direction::Backward {
            rows.reverse(before);
        }
        if rows.len() - before >= self.left {
            rows.truncate(before + self.left);
            is_last = true;
            if let Some((last, _)) = rows.len().checked_sub(1).and_then(|last| rows.get(last)) {
                match self.direction {
                    Direction::Forward => span.high = Some([last, &[0][..]].concat()),
                    Direction::Backward => span.low = last.to_vec(),
                }
            }
        }
        Ok(Part { span, is_last })
    }

    /// Returns the values that this view sees instead of the records of the leaf: pending records, overridden
    /// by the transaction's own writes, or by old versions.
    fn seen_instead(&self, leaf: Node<'_>, span: &Span) -> Result<Seen, Error> {
        let mut seen = Seen::new();
        let put = |seen: &mut Seen, key: &[u8], value: Option<&[u8]>| {
            seen.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        };
        let records = self.view.shard().state.records();
        for record in records.of_leaf(page::number(leaf.bytes())).filter(|record| span.contains(record.key)) {
            put(&mut seen, record.key, record.value);
        }
        match self.view {
            ReadView::Locked { writes, .. } => {
                let writes = writes.borrow();
                let inside = writes.get(&self.tree.id).map(|writes| writes.range::<[u8], _>(span.bounds()));
                for (key, value) in inside.into_iter().flatten() {
                    put(&mut seen, key, value.as_deref());
                }
            }
            ReadView::Past { shard, state } => {
                let versions = shard.state.versions();
                versions.check(state.lsn)?;
                if versions.hides_leaves(self.tree.id, *state) {
                    seen.values_mut().for_each(|value| *value = None);
                    for (key, _) in leaf.records().filter(|(key, _)| span.contains(key)) {
                        put(&mut seen, &key, None);
                    }
                }
                for (key, old) in versions.range(self.tree.id, span.bounds(), *state) {
                    match old {
                        Old::Here(value) => put(&mut seen, key, Some(value)),
                        Old::Absent => put(&mut seen, key, None),
                        // The old value is the one in the leaf, beneath the pending record, so it needs no
                        // replacement.
                        Old::InLeaf => drop(seen.remove(key)),
                    }
                }
            }
        }
        Ok(seen)
    }
}

/// Values by key that replace the records of a leaf; `None` hides a record.
type Seen = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A database row that was found through an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// The key of the index entry.
    pub index_key: Vec<u8>,
    /// The key of the row in the table.
    pub key: Vec<u8>,
    /// The value of the row in the table.
    pub value: Vec<u8>,
}

/// A scan of an index that returns the database rows which the index entries refer to.
pub struct IndexScan<'a> {
    scan: Scan<'a>,
    index: Index,
    window: Window,
    /// The index entries whose rows were requested: the index key, and the key of the row.
    entries: VecDeque<(Vec<u8>, Vec<u8>)>,
    ended: bool,
}

impl<'a> IndexScan<'a> {
    pub(crate) fn new(view: &'a ReadView, index: Index, span: Span, direction: Direction) -> IndexScan<'a> {
        let scan = Scan::new(view, index.tree, span, direction);
        let window = Window::growing(view.shard());
        IndexScan { scan, index, window, entries: VecDeque::new(), ended: false }
    }

    /// Ends the scan after `rows` rows.
    pub fn limit(mut self, rows: usize) -> Self {
        // Entries that were taken ahead count towards the limit.
        let waiting = self.entries.len();
        self.entries.truncate(rows);
        self.scan = self.scan.limit(rows.saturating_sub(waiting));
        self
    }

    /// Sets the number of rows whose leaves are read at once. 1 reads one after the other; the maximum is a
    /// quarter of the pool. If no degree is set, the scan begins with one row and goes up to
    /// [`crate::Options::degree`]. A transaction locks the index entries of as many rows ahead.
    pub fn degree(mut self, rows: u32) -> Self {
        self.window = Window::fixed(self.scan.view.shard(), rows);
        self
    }

    /// Returns the next row; `None` at the end of the scan.
    pub async fn next(&mut self) -> Result<Option<IndexRow>, Error> {
        self.next_row().await
    }

    fn next_row(&mut self) -> StoreFuture<'_, Option<IndexRow>> {
        Box::pin(async move {
            self.check_age()?;
            loop {
                if !self.ended && self.window.is_due(self.entries.len()) {
                    self.take_entries().await?;
                }
                let Some((index_key, key)) = self.entries.pop_front() else { return Ok(None) };
                let view = self.scan.view;
                if let Some(value) = view.get(self.index.table.0, &key, Mode::Shared).await? {
                    return Ok(Some(IndexRow { index_key, key, value }));
                }
            }
        })
    }

    /// Fails if the view is older than the index, in which it would not find the rows of its state.
    fn check_age(&self) -> Result<(), Error> {
        match self.scan.view {
            ReadView::Past { shard, state }
                if shard.state.catalogue().filled_at(self.index.tree.id) > state.lsn =>
            {
                Err(Error::SnapshotTooOld)
            }
            _ => Ok(()),
        }
    }

    /// Takes index entries ahead and requests the leaves of their rows.
    async fn take_entries(&mut self) -> Result<(), Error> {
        let fresh = self.entries.len();
        let most = self.window.next();
        while self.entries.len() < fresh + most && !self.ended {
            match self.scan.next().await? {
                Some((entry, _)) => {
                    self.entries.push_back(self.index.coding.split(&entry).ok_or_else(|| {
                        Error::corrupt(self.index.tree.root, "an entry of the index is damaged")
                    })?)
                }
                None => self.ended = true,
            }
        }
        // Prefetches only several rows; a single one is read on demand.
        if self.entries.len() > 1 {
            let mut keys: Vec<&[u8]> = self.entries.range(fresh..).map(|(_, key)| &key[..]).collect();
            keys.sort_unstable();
            self.scan.view.shard().fetch_leaves(self.index.table.0, &keys).await?;
        }
        Ok(())
    }

    /// Returns all remaining rows.
    pub fn all(mut self) -> StoreFuture<'a, Vec<IndexRow>> {
        Box::pin(async move {
            let mut rows = Vec::new();
            while let Some(row) = self.next().await? {
                rows.push(row);
            }
            Ok(rows)
        })
    }
}

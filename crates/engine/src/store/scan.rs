//! Scans: the records of a range in order, forward or backward, leaf by leaf.
//!
//! A scan reads leaves ahead. Their number depends on its *degree* and on the records that it may still
//! return. Without a degree it begins with one leaf and doubles, so that a scan that is ended early has read
//! little in vain. A scan of an index does the same with the rows that the index leads to: it takes so many
//! entries ahead, and the leaves of their rows are read together.

use crate::Error;
use crate::format::index_entry;
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
use fulgurite_device::Device;
use std::collections::{BTreeMap, VecDeque};

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key up.
    Forward,
    /// From the greatest key down.
    Backward,
}

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A scan. It holds no page between two calls.
pub struct Scan<'a, D: Device + 'static> {
    view: &'a ReadView<D>,
    tree: Tree,
    /// The rest of the range.
    span: Span,
    direction: Direction,
    /// The number of rows still to be returned.
    left: usize,
    found: Rows,
    /// The number of rows of `found` that were returned.
    given: usize,
    done: bool,
    ahead: Ahead,
}

/// The leaves that a scan has asked for ahead.
struct Ahead {
    window: Window,
    /// Leaves asked for and not scanned yet.
    leaves: usize,
    /// The key where the leaves asked for end (backward: begin); `None` if none was asked for.
    from: Option<Vec<u8>>,
    /// All leaves of the range were asked for.
    done: bool,
}

/// The number of leaves or rows to ask for at once.
#[derive(Clone, Copy)]
struct Window {
    most: usize,
    /// The number asked for last.
    last: usize,
}

impl Window {
    /// Grows up to the store's degree.
    fn growing<D: Device + 'static>(shard: &Shard<D>) -> Window {
        Window { most: shard.most_ahead(shard.options.degree), last: 0 }
    }

    /// Asks for `degree` from the beginning.
    fn fixed<D: Device + 'static>(shard: &Shard<D>, degree: u32) -> Window {
        let most = shard.most_ahead(degree);
        Window { most, last: most }
    }

    /// Whether to ask for more, with so many that were asked for and are not used yet.
    fn is_due(&self, left: usize) -> bool {
        left <= self.last / 2
    }

    fn next(&mut self) -> usize {
        self.last = (2 * self.last).clamp(1, self.most);
        self.last
    }
}

/// A part of the range whose records are in one leaf.
struct Part {
    span: Span,
    is_last: bool,
}

impl<'a, D: Device + 'static> Scan<'a, D> {
    pub(crate) fn new(view: &'a ReadView<D>, tree: Tree, span: Span, direction: Direction) -> Scan<'a, D> {
        let done = span.is_empty();
        let ahead = Ahead { window: Window::growing(view.shard()), leaves: 0, from: None, done: false };
        let found = Rows::default();
        Scan { view, tree, span, direction, left: usize::MAX, found, given: 0, done, ahead }
    }

    /// Reads so many leaves at once: 1 reads one after the other, and a quarter of the pool is the most.
    /// Without it, the scan begins with one and goes up to [`crate::Options::degree`].
    pub fn degree(mut self, leaves: u32) -> Self {
        self.ahead.window = Window::fixed(self.view.shard(), leaves);
        self
    }

    /// Ends after `records` records. A transaction then locks no more of the range than it has seen.
    pub fn limit(mut self, records: usize) -> Self {
        let waiting = self.found.len() - self.given;
        self.found.truncate(self.given.saturating_add(records));
        self.left = records.saturating_sub(waiting);
        self
    }

    /// The next record; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Record>, Error> {
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
    }

    /// All further records.
    pub async fn all(self) -> Result<Vec<Record>, Error> {
        let rows = self.rows().await?;
        Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
    }

    /// All further records, in one piece of memory.
    pub async fn rows(mut self) -> Result<Rows, Error> {
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
    }

    /// The value of a row, with a large one read from its pieces; `None` if that was deleted.
    async fn value(&self, index: usize) -> Result<Option<Vec<u8>>, Error> {
        match (self.found.cell(index), self.view) {
            (None, _) => Ok(None),
            (Some((_, Cell { bytes, large: false })), _) => Ok(Some(bytes.to_vec())),
            (Some((_, cell)), ReadView::Locked { shard, .. }) => {
                shard.read_large(LargeValue::read(cell.bytes)?).await
            }
            (Some((key, _)), ReadView::Past { shard, lsn, .. }) => shard.past(self.tree, key, *lsn).await,
        }
    }

    /// Adds the records of the next leaf to those found.
    async fn advance(&mut self) -> Result<(), Error> {
        self.read_ahead().await?;
        let mut found = std::mem::take(&mut self.found);
        let before = found.len();
        loop {
            self.view.check()?;
            found.truncate(before);
            let part = self.part(&mut found).await?;
            // Without a wait for the lock nothing has changed since the leaf was read.
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

    /// Asks for the next leaves, unless enough of them are on their way.
    async fn read_ahead(&mut self) -> Result<(), Error> {
        self.ahead.leaves = self.ahead.leaves.saturating_sub(1);
        if self.ahead.done || self.ahead.window.most < 2 || !self.ahead.window.is_due(self.ahead.leaves) {
            return Ok(());
        }
        let shard = self.view.shard();
        let most = match shard.state.leaf_records(self.tree) {
            // Reads no more leaves than hold the rest of the limit.
            Some(records) if self.left < usize::MAX => {
                let needed = self.left.div_ceil(records.max(1)) + 1;
                needed.saturating_sub(self.ahead.leaves).min(self.ahead.window.most)
            }
            _ => self.ahead.window.next(),
        };
        // A single leaf is read when it is needed.
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
        shard.durable.pool().fetch(&leaves.pages).await?;
        self.ahead.leaves += leaves.pages.len();
        self.ahead.done = match (self.direction, &leaves.end) {
            (_, None) => true,
            (Direction::Forward, Some(end)) => self.span.high.as_ref().is_some_and(|high| end >= high),
            (Direction::Backward, Some(end)) => *end <= self.span.low,
        };
        self.ahead.from = leaves.end;
        Ok(())
    }

    /// The search for the next leaf.
    fn seek(&self) -> Seek<'_> {
        match (self.direction, &self.span.high) {
            (Direction::Forward, _) => Seek::At(&self.span.low),
            (Direction::Backward, Some(high)) => Seek::Below(high),
            (Direction::Backward, None) => Seek::Last,
        }
    }

    /// Adds the rows of the next leaf to `rows`.
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
            // No more rows than the limit asks for.
            match self.direction {
                Direction::Forward => to = to.min(from.saturating_add(self.left)),
                Direction::Backward => from = from.max(to.saturating_sub(self.left)),
            }
        }
        let before = rows.len();
        // Rows that are seen instead come between the leaf's records or replace them.
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

    /// The rows that this view sees in place of the leaf's records: pending records, and over them its own
    /// writes or old versions.
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
            ReadView::Past { shard, lsn, .. } => {
                let versions = shard.state.versions();
                versions.check(*lsn)?;
                for (key, old) in versions.range(self.tree.id, span.bounds(), *lsn) {
                    match old {
                        Old::Here(value) => put(&mut seen, key, Some(value)),
                        Old::Absent => put(&mut seen, key, None),
                        // The leaf has the old value, beneath the pending record.
                        Old::Beneath => drop(seen.remove(key)),
                    }
                }
            }
        }
        Ok(seen)
    }
}

/// Values by key; `None` hides the leaf's record.
type Seen = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A row found through an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// The key in the index.
    pub index_key: Vec<u8>,
    /// The key in the table.
    pub key: Vec<u8>,
    /// The value in the table.
    pub value: Vec<u8>,
}

/// A scan of an index, with the rows that it leads to.
pub struct IndexScan<'a, D: Device + 'static> {
    scan: Scan<'a, D>,
    index: Index,
    window: Window,
    /// Entries whose rows were asked for: the index key, and the key of the row.
    entries: VecDeque<(Vec<u8>, Vec<u8>)>,
    ended: bool,
}

impl<'a, D: Device + 'static> IndexScan<'a, D> {
    pub(crate) fn new(
        view: &'a ReadView<D>,
        index: Index,
        span: Span,
        direction: Direction,
    ) -> IndexScan<'a, D> {
        let scan = Scan::new(view, index.tree, span, direction);
        let window = Window::growing(view.shard());
        IndexScan { scan, index, window, entries: VecDeque::new(), ended: false }
    }

    /// Ends after `rows` rows.
    pub fn limit(mut self, rows: usize) -> Self {
        // Rows that were asked for ahead count.
        let waiting = self.entries.len();
        self.entries.truncate(rows);
        self.scan = self.scan.limit(rows.saturating_sub(waiting));
        self
    }

    /// Reads the leaves of so many rows at once: 1 reads one after the other, and a quarter of the pool is
    /// the most. Without it, the scan begins with one and goes up to [`crate::Options::degree`]. A
    /// transaction locks the entries of so many rows ahead.
    pub fn degree(mut self, rows: u32) -> Self {
        self.window = Window::fixed(self.scan.view.shard(), rows);
        self
    }

    /// The next row; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<IndexRow>, Error> {
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
    }

    /// Takes entries ahead and asks for the leaves of their rows.
    async fn take_entries(&mut self) -> Result<(), Error> {
        let fresh = self.entries.len();
        let most = self.window.next();
        while self.entries.len() < fresh + most && !self.ended {
            match self.scan.next().await? {
                Some((entry, _)) => self.entries.push_back(index_entry::split(&entry).ok_or_else(|| {
                    Error::corrupt(self.index.tree.root, "an entry of the index is damaged")
                })?),
                None => self.ended = true,
            }
        }
        // A single row is read when it is needed.
        if self.entries.len() > 1 {
            let mut keys: Vec<&[u8]> = self.entries.range(fresh..).map(|(_, key)| &key[..]).collect();
            keys.sort_unstable();
            self.scan.view.shard().fetch_leaves(self.index.table.0, &keys).await?;
        }
        Ok(())
    }

    /// All further rows.
    pub async fn all(mut self) -> Result<Vec<IndexRow>, Error> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }
}

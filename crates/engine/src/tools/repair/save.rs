//! Reads the records of a damaged store, and puts them into a new one.

use super::pages::Pages;
use super::plan::Segment;
use crate::format::large_value::LargeValue;
use crate::format::page;
use crate::format::page::node::Node;
use crate::format::tree::LARGE;
use crate::memory::catalogue::Table;
use crate::store::Store;
use crate::{Durability, Error};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The maximum number of bytes and of records in one transaction.
const BATCH: (usize, usize) = (64 << 10, 256);

/// A value in a leaf or in the log.
pub(super) struct Value {
    pub bytes: Vec<u8>,
    pub large: bool,
}

/// Returns the records of a key range: those of its leaf, overridden by the operations of the log.
pub(super) async fn records(pages: &Pages<'_>, tree: u32, segment: &Segment) -> BTreeMap<Vec<u8>, Value> {
    let mut records = BTreeMap::new();
    let mut is_newer_than_log = false;
    let from = Bound::Included((tree, segment.low.clone()));
    let to = match &segment.high {
        Some(high) => Bound::Excluded((tree, high.clone())),
        None => Bound::Excluded((tree.saturating_add(1), Vec::new())),
    };
    let range = (from, to);
    if let Some(leaf) = segment.leaf
        && let Some(bytes) = pages.get(leaf).await
        && let Some(node) = Node::new(&bytes)
    {
        for (key, value) in node.records() {
            records.insert(key, Value { bytes: value.bytes.to_vec(), large: value.large });
        }
        // The leaf was written behind the end of the readable log, whose operations would bring old values
        // back.
        is_newer_than_log = pages.cut.is_some_and(|cut| page::lsn(&bytes) > cut);
    }
    if is_newer_than_log {
        return records;
    }
    for ((_, key), op) in pages.ops.range(range) {
        match &op.value {
            Some(value) => {
                records.insert(key.clone(), Value { bytes: value.to_vec(), large: op.large });
            }
            None => {
                records.remove(key);
            }
        }
    }
    records
}

/// The records of a leaf with pieces of large values, and the index of this leaf among the segments.
type Cached = Option<(usize, BTreeMap<Vec<u8>, Value>)>;

/// The tree that contains the pieces of large values.
pub(super) struct Large<'a, 'b> {
    pages: &'a Pages<'b>,
    segments: Vec<Segment>,
    /// The leaf that was read last, because it mostly contains the next piece too.
    last: RefCell<Cached>,
}

impl<'a, 'b> Large<'a, 'b> {
    /// Creates a reader for the large values whose pieces are in these key ranges.
    pub(super) fn new(pages: &'a Pages<'b>, segments: Vec<Segment>) -> Large<'a, 'b> {
        Large { pages, segments, last: RefCell::default() }
    }

    /// Returns the contents of a value; `None` if it is a large one with missing pieces.
    pub(super) async fn value(&self, value: Value) -> Option<Vec<u8>> {
        if !value.large {
            return Some(value.bytes);
        }
        let place = LargeValue::read(&value.bytes).ok()?;
        let mut whole = Vec::new();
        let mut piece = 0;
        while (whole.len() as u64) < place.bytes {
            let found = self.piece(&place.key(piece)).await.filter(|found| !found.is_empty())?;
            whole.extend_from_slice(&found);
            piece += 1;
        }
        Some(whole).filter(|whole| whole.len() as u64 == place.bytes)
    }

    async fn piece(&self, key: &[u8]) -> Option<Vec<u8>> {
        let index = self.segments.partition_point(|segment| segment.low[..] <= *key).checked_sub(1)?;
        let known = self.last.borrow().as_ref().is_some_and(|(known, _)| *known == index);
        if !known {
            let records = records(self.pages, LARGE, &self.segments[index]).await;
            *self.last.borrow_mut() = Some((index, records));
        }
        let last = self.last.borrow();
        last.as_ref().and_then(|(_, records)| records.get(key)).map(|value| value.bytes.clone())
    }
}

/// Puts records into a table of a new store, many in one transaction.
pub(super) struct Saving<'a> {
    store: &'a Store,
    table: Table,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    saved: u64,
}

impl<'a> Saving<'a> {
    /// Creates an empty batch for this table.
    pub(super) fn new(store: &'a Store, table: Table) -> Saving<'a> {
        Saving { store, table, batch: Vec::new(), bytes: 0, saved: 0 }
    }

    /// Puts a record.
    pub(super) async fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Error> {
        let len = key.len() + value.len();
        // A small log admits only small transactions.
        let most = BATCH.0.min(self.store.0.durable.log().capacity() as usize / 64);
        if self.bytes + len > most || self.batch.len() == BATCH.1 {
            self.commit().await?;
        }
        self.bytes += len;
        self.batch.push((key, value));
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        match self.put_all(&batch).await {
            // The records fit one by one, as they did into the old store.
            Err(Error::TransactionTooLarge { .. }) if batch.len() > 1 => {
                for one in batch.chunks(1) {
                    self.put_all(one).await?;
                }
            }
            outcome => outcome?,
        }
        self.saved += batch.len() as u64;
        Ok(())
    }

    async fn put_all(&self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Error> {
        let transaction = self.store.begin();
        for (key, value) in records {
            transaction.put(self.table, key, value).await?;
        }
        // Closing the store makes the commits durable.
        transaction.commit_with(Durability::Relaxed).await
    }

    /// Puts the remaining records. Returns how many records were put in all.
    pub(super) async fn finish(mut self) -> Result<u64, Error> {
        self.commit().await?;
        Ok(self.saved)
    }
}

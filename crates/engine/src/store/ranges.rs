//! Ranges of keys: the range of a prefix, and the deletion of a range.

use crate::format::tree::Tree;
use crate::memory::locks::TxnId;
use crate::shard::commit::Size;
use crate::store::read_view::Span;
use crate::store::scan::{Direction, Scan};
use crate::store::transaction::{Range, Transaction};
use crate::{Error, Store, StoreFuture, Table};
use std::ops::Bound;

/// The number of records that [`Store::delete_range`] deletes in one transaction.
const DELETED_TOGETHER: usize = 1_024;

/// The keys that begin with a prefix. [`Prefix::range`] is their range, for scans and deletions of tables, and for
/// scans of indexes.
///
/// ```
/// let users = fulgurite_engine::prefix(b"user:");
/// assert!(users.contains(b"user:7") && !users.contains(b"users"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    low: Vec<u8>,
    /// The first key behind the range; `None` if every key from `low` on begins with the prefix.
    high: Option<Vec<u8>>,
}

/// Returns the keys that begin with `prefix`.
pub fn prefix(prefix: &[u8]) -> Prefix {
    // The first key behind them is the prefix with its last byte raised by one. A byte 255 cannot be raised, so the
    // byte before it is.
    let high = prefix.iter().rposition(|byte| *byte < 255).map(|last| {
        let mut high = prefix[..=last].to_vec();
        high[last] += 1;
        high
    });
    Prefix { low: prefix.to_vec(), high }
}

impl Prefix {
    /// Returns the range of the keys.
    pub fn range(&self) -> Range<'_> {
        let high = self.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.low), high)
    }

    /// Whether a key begins with the prefix.
    pub fn contains(&self, key: &[u8]) -> bool {
        key.starts_with(&self.low)
    }
}

impl Transaction {
    /// Deletes the records of a range, and returns their number. Until the transaction ends, no other one can read the
    /// range or write into it. [`Error::TransactionTooLarge`] means that the log is too small for the deletions; then
    /// nothing of the range was deleted. [`Store::delete_range`] deletes any number of records.
    pub fn delete_range<'a>(&'a self, table: Table, range: Range<'a>) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let (span, view) = (Span::new(range), self.view());
            view.shard().check_writable()?;
            let is_indexed = self.is_indexed(table)?;
            if span.is_empty() {
                return view.check_tree(table.0).map(|()| 0);
            }
            view.lock_alone(table.0, &span).await?;
            let mut scan = Scan::new(view, table.0, span, Direction::Forward);
            let (mut keys, mut entries, mut size) = (Vec::new(), Vec::new(), self.size());
            let deletion = |tree: Tree, key: &[u8]| Size::of(tree.id, key, None, view.shard().page_bytes());
            if is_indexed {
                while let Some((key, value)) = scan.next().await? {
                    let changes = self.index_changes(table, &key, Some(&value), None)?;
                    size = size + deletion(table.0, &key);
                    size = changes.iter().fold(size, |size, (tree, entry, _)| size + deletion(*tree, entry));
                    view.shard().check_size(size)?;
                    keys.push(key);
                    entries.push(changes);
                }
            } else {
                while let Some(mut some) = scan.next_keys().await? {
                    size = some.iter().fold(size, |size, key| size + deletion(table.0, key));
                    view.shard().check_size(size)?;
                    keys.append(&mut some);
                }
            }
            for changes in entries {
                self.write_entries(changes).await?;
            }
            let count = keys.len() as u64;
            keys.into_iter().for_each(|key| self.note_deletion(table.0, key.into()));
            self.set_size(size);
            Ok(count)
        })
    }
}

impl Store {
    /// Deletes the records of a range in many transactions, from the first key to the last, and returns their number.
    /// It deletes any number of records, and locks few at a time. So others may see a part of the range, and after an
    /// error or a crash a beginning of the range is deleted. Records that others put meanwhile may stay.
    pub fn delete_range<'a>(&'a self, table: Table, range: Range<'a>) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let (mut left, mut count, mut together) = (Span::new(range), 0, DELETED_TOGETHER);
            let mut first: Option<TxnId> = None;
            while !left.is_empty() {
                let transaction = match first {
                    None => self.begin(),
                    Some(first) => self.begin_again(first, None),
                };
                let number = transaction.number();
                match delete_first(transaction, table, &left, together).await {
                    Ok(None) => break,
                    Ok(Some((last, deleted))) => {
                        left.low = [&last[..], &[0]].concat();
                        count += deleted;
                        (first, together) = (None, (together * 2).min(DELETED_TOGETHER));
                    }
                    // The pieces of large values and the entries of indexes count too.
                    Err(Error::TransactionTooLarge { .. }) if together > 1 => together /= 2,
                    Err(Error::Deadlock) => {
                        first.get_or_insert(number);
                        together = (together / 2).max(1);
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(count)
        })
    }
}

/// Deletes the first records of a range, at most `most`, and commits. Returns the last key and the number of records;
/// `None` if there is no record.
async fn delete_first(
    transaction: Transaction,
    table: Table,
    span: &Span,
    most: usize,
) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let mut keys = Vec::new();
    let mut scan = Scan::new(transaction.view(), table.0, span.clone(), Direction::Forward).limit(most);
    while let Some(mut some) = scan.next_keys().await? {
        keys.append(&mut some);
    }
    drop(scan);
    for key in &keys {
        transaction.delete(table, key).await?;
    }
    transaction.commit().await?;
    let count = keys.len() as u64;
    Ok(keys.pop().map(|last| (last, count)))
}

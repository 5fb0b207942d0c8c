//! Tracks inserted records, so that only committed ones are read as the latest. Numbers are assigned to
//! inserts in order, but inserts can end in any order.

use super::record::scrambled;
use crate::error::Error;
use fulgurite_engine::sharded::{Store, Table};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The numbers of the records that were inserted or are being inserted.
pub(super) struct Inserts {
    /// The number of the next record to insert.
    next: Cell<u64>,
    /// The first number whose record may be missing: all records with lower numbers were inserted.
    complete: Cell<u64>,
    /// The numbers of records that were inserted although a record with a lower number is still being
    /// inserted.
    ahead: RefCell<BTreeSet<u64>>,
}

impl Inserts {
    /// Finds the number of records in the table. It is at least `loaded`, and larger if earlier runs inserted
    /// records.
    pub(crate) async fn find(store: &Store, table: Table, loaded: u64) -> Result<Inserts, Error> {
        let snapshot = store.snapshot().await;
        let there = async |record: u64| -> Result<bool, Error> {
            Ok(snapshot.get(table, &scrambled(record).to_be_bytes()).await?.is_some())
        };
        // Doubling steps find a missing record. Halving steps then find the first missing one.
        let (mut low, mut step) = (loaded, 1);
        while there(low + step - 1).await? {
            low += step;
            step *= 2;
        }
        let mut high = low + step - 1;
        while low < high {
            let middle = low + (high - low) / 2;
            match there(middle).await? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(Inserts { next: Cell::new(low), complete: Cell::new(low), ahead: RefCell::default() })
    }

    /// Assigns a number to a new record.
    pub(crate) fn begin(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Records that the insert of a record has ended.
    pub(crate) fn end(&self, record: u64) {
        let mut ahead = self.ahead.borrow_mut();
        ahead.insert(record);
        while ahead.remove(&self.complete.get()) {
            self.complete.set(self.complete.get() + 1);
        }
    }

    /// Returns the first number whose record may be missing: all records with lower numbers were inserted.
    pub(crate) fn complete(&self) -> u64 {
        self.complete.get()
    }

    /// Returns the least and the greatest possible number of records in the table.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.complete.get() + self.ahead.borrow().len() as u64, self.next.get())
    }
}

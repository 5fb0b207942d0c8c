//! Keeps track of inserted records. Numbers are given out in order, and inserts end in any order.

use super::record::scrambled;
use crate::error::Error;
use fulgurite_device::Device;
use fulgurite_engine::{Store, Table};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The numbers of inserted records.
pub(super) struct Inserts {
    /// The next number to give out.
    next: Cell<u64>,
    /// Every record below this number is there.
    complete: Cell<u64>,
    /// Inserts that ended while an earlier one had not.
    ahead: RefCell<BTreeSet<u64>>,
}

impl Inserts {
    /// Looks in the table for how many records there are, at least `loaded`: run after run may have inserted some.
    pub async fn find<D: Device + 'static>(
        store: &Store<D>,
        table: Table,
        loaded: u64,
    ) -> Result<Inserts, Error> {
        let snapshot = store.snapshot();
        let there = async |record: u64| -> Result<bool, Error> {
            Ok(snapshot.get(table, &scrambled(record).to_be_bytes()).await?.is_some())
        };
        // Doubling steps find a record that is missing, halving steps the first one.
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

    /// A number for a new record.
    pub fn begin(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// The record was inserted.
    pub fn end(&self, record: u64) {
        let mut ahead = self.ahead.borrow_mut();
        ahead.insert(record);
        while ahead.remove(&self.complete.get()) {
            self.complete.set(self.complete.get() + 1);
        }
    }

    /// Every record below this number is there.
    pub fn complete(&self) -> u64 {
        self.complete.get()
    }

    /// The least and the greatest number of records that there can be.
    pub fn bounds(&self) -> (u64, u64) {
        (self.complete.get() + self.ahead.borrow().len() as u64, self.next.get())
    }
}

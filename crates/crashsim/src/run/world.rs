//! Holds the state that all clients share, which is an open store with its history.

use super::progress::Tables;
use crate::device::CrashDevice;
use crate::history::History;
use crate::plan::GROUPS;
use crate::plan::StorePlan;
use crate::value::{Key, TableName, TxnId, Version};
use crate::violation::{Violation, ViolationKind};
use fulgurite_engine::sharded::{Index, Store, Table};
use fulgurite_engine::{Error, Extract, Options};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Returns the group of an amount, by which the index groups rows.
pub(super) fn group(amount: i64) -> u8 {
    amount.rem_euclid(i64::from(GROUPS)) as u8
}

/// The reason why a step ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The same step may succeed if it is repeated.
    Retry,
    /// The step cannot succeed.
    Step,
    /// The client cannot continue and ends.
    Client,
}

/// An open store, its history, and the findings of its clients.
pub(super) struct World {
    pub store: Store,
    pub device: CrashDevice,
    tables: [Table; 4],
    pub index: Index,
    pub history: RefCell<History>,
    next_txn: Cell<u32>,
    /// The first violation; `None` if there was none.
    pub violation: RefCell<Option<Violation>>,
    /// The first error that does not occur in ordinary operation; a fault must explain it. `None` if there
    /// was none.
    pub error: RefCell<Option<String>>,
    /// The text of the last error of any kind.
    pub last_error: RefCell<String>,
    /// The number of clients that have not ended.
    pub clients: Cell<usize>,
    /// The expected sum of all accounts.
    pub sum: i64,
    /// Whether the record cache has memory of its own.
    pub has_records: bool,
    /// The options of the store.
    pub plan: StorePlan,
    /// The tables beside those of the history.
    pub tables_beside: RefCell<Tables>,
}

impl World {
    /// Creates the shared state, and opens or creates the tables and the index.
    pub(super) async fn new(
        store: Store,
        device: CrashDevice,
        first_txn: u32,
        initial: BTreeMap<Key, Version>,
        sum: i64,
        plan: &StorePlan,
    ) -> Result<World, Error> {
        let accounts = store.create_table(TableName::Accounts.text()).await?;
        let registers = store.create_table(TableName::Registers.text()).await?;
        let rows = store.create_table(TableName::Rows.text()).await?;
        let markers = store.create_table(TableName::Markers.text()).await?;
        let index = store.create_index(rows, "groups", extract()).await?;
        Ok(World {
            store,
            device,
            tables: [accounts, registers, rows, markers],
            index,
            history: RefCell::new(History::new(initial)),
            next_txn: Cell::new(first_txn),
            violation: RefCell::new(None),
            error: RefCell::new(None),
            last_error: RefCell::new(String::new()),
            clients: Cell::new(0),
            sum,
            has_records: plan.records > 0,
            plan: plan.clone(),
            tables_beside: RefCell::default(),
        })
    }

    pub(super) fn table(&self, name: TableName) -> Table {
        self.tables[name as usize]
    }

    pub(super) fn next_txn(&self) -> TxnId {
        let id = self.next_txn.get();
        self.next_txn.set(id + 1);
        TxnId(id)
    }

    /// Returns the number of the next transaction.
    pub(super) fn txns(&self) -> u32 {
        self.next_txn.get()
    }

    /// Records a violation. Only the first one is kept.
    pub(super) fn violate(&self, violation: Violation) {
        self.violation.borrow_mut().get_or_insert(violation);
    }

    /// Records that wrong data was read.
    pub(super) fn wrong(&self, text: String) -> Stop {
        Stop::violation(self, text)
    }

    /// Returns the consequence of an error for its client. An error that only a fault can explain is
    /// recorded.
    pub(super) fn stop(&self, error: &Error) -> Stop {
        self.last_error.replace(error.to_string());
        match error {
            error if error.is_retryable() => Stop::Retry,
            Error::Full { .. } | Error::TransactionTooLarge { .. } => Stop::Step,
            error => {
                self.error.borrow_mut().get_or_insert_with(|| error.to_string());
                if matches!(error, Error::Fatal(_) | Error::Closed) { Stop::Client } else { Stop::Step }
            }
        }
    }

    /// Compares the sum of the accounts with the expected one.
    pub(super) fn compare_sum(&self, sum: i64, who: &str) {
        if sum != self.sum {
            let text = format!("{who} sums the accounts to {sum} in place of {}", self.sum);
            self.violate(Violation::new(ViolationKind::Sum, text));
        }
    }
}

/// Returns the function that extracts the index key of a row: the group of its amount.
fn extract() -> Extract {
    Rc::new(|_key: &[u8], value: &[u8], keys: &mut Vec<Vec<u8>>| {
        if let Some(amount) = value.get(8..16).and_then(|bytes| bytes.try_into().ok()) {
            keys.push(vec![group(i64::from_le_bytes(amount))]);
        }
    })
}

/// Returns the options of the engine for a plan.
pub(super) fn options(plan: &StorePlan) -> Result<Options, String> {
    let text = |error: fulgurite_base::SpecError| error.to_string();
    let write_back: fulgurite_pool::WriteBackConfig = plan.write_back.parse().map_err(text)?;
    // This inverts the division of memory in `Options`. Each frame needs 64 bytes besides its page.
    let frames = u64::from(plan.frames) * (u64::from(plan.page_bytes) + 64) * 4 / 3 + 64;
    let memory = frames * 100 / (100 - u64::from(plan.records)) + 100 + plan.map_bytes;
    Ok(Options {
        page_bytes: plan.page_bytes,
        memory_bytes: memory,
        log_bytes: u64::from(plan.log_pages) * u64::from(plan.page_bytes),
        torn_pages: plan.torn_pages,
        replacement: plan.replacement.parse().map_err(text)?,
        write_back: Some(write_back.resolve(Drive).map_err(text)?),
        prefetch: plan.prefetch.parse().map_err(text)?,
        group_window: plan.group_window,
        relaxed_window: plan.relaxed_window,
        verify_writes: plan.verify_writes,
        records: plan.records,
        place: plan.place.parse().map_err(text)?,
        planted: plan.planted,
        ..Options::default()
    })
}

/// The parameters of the drive that write-back policies ask for.
struct Drive;

impl fulgurite_pool::write_back::MeasuredDrive for Drive {
    fn k_w(&mut self) -> Result<u32, fulgurite_base::SpecError> {
        Ok(4)
    }

    fn curves(&mut self) -> Result<[fulgurite_pool::write_back::Curve; 2], fulgurite_base::SpecError> {
        let curve = |one: f64| vec![(1, one), (2, one * 1.9), (4, one * 3.5), (8, one * 4.0)];
        Ok([curve(12_000.0), curve(8_000.0)])
    }
}

//! Gives a user of a run access to the store. Each call of the store is measured and charged with CPU time.

use crate::Error;
use crate::codec::{Key, KeyRange, Row};
use crate::meter::Meter;
use fulgurite_base::Nanos;
use fulgurite_device::Handle;
pub use fulgurite_engine::Record;
use fulgurite_engine::sharded::{Attempts, Index, IndexScan, Scan, Snapshot, Store, Table, Transaction};
use fulgurite_engine::{Direction, IndexRow};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// The time for which users may take turns before the executor polls a device that has its own clock.
const TURN: Nanos = Nanos::from_micros(20);

/// The store as one user of a benchmark run calls it.
pub struct Session {
    store: Store,
    meter: Rc<Meter>,
    /// The CPU time of each call of the store, on a simulated device.
    cpu_per_op: Nanos,
    /// The number of calls of each shard whose CPU time was not charged yet.
    debts: Vec<Cell<u64>>,
    /// The attempts of the current request.
    attempts: RefCell<Rc<Attempts>>,
    /// The time when the executor last polled the device for the users, who share it.
    looked: Rc<Cell<Nanos>>,
}

impl Session {
    pub(crate) fn new(
        store: &Store,
        meter: &Rc<Meter>,
        cpu_per_op: Nanos,
        looked: &Rc<Cell<Nanos>>,
    ) -> Session {
        Session {
            store: store.clone(),
            meter: Rc::clone(meter),
            cpu_per_op,
            debts: vec![Cell::new(0); store.shards()],
            attempts: RefCell::default(),
            looked: Rc::clone(looked),
        }
    }

    /// Returns the current time on the device's clock.
    pub fn now(&self) -> Nanos {
        self.handle().now()
    }

    /// Begins a transaction. If the driver repeats a request, its transaction is as old as the first attempt.
    pub fn begin(&self) -> Work<'_> {
        let transaction = self.store.begin_attempt(&self.attempts.borrow());
        Work { session: self, transaction, written: Cell::new(None) }
    }

    /// Begins another request.
    pub(crate) fn next_request(&self) {
        self.attempts.take();
    }

    /// Waits until a request whose transaction was aborted to resolve a deadlock may be repeated.
    pub(crate) async fn wait_for_turn(&self) {
        let attempts = Rc::clone(&self.attempts.borrow());
        self.store.wait_for_turn(&attempts).await;
    }

    /// Returns a snapshot of the committed state.
    pub async fn view(&self) -> View<'_> {
        View { session: self, snapshot: self.store.snapshot().await }
    }

    /// Returns a snapshot of each shard, which are not one state; see [`Store::snapshot_of_each`].
    pub fn view_of_each(&self) -> View<'_> {
        View { session: self, snapshot: self.store.snapshot_of_each() }
    }

    /// Returns the newest committed value of a key; `None` if the key does not exist.
    pub async fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.owe_for(key.bytes(), 1);
        self.read(self.store.get(table, key.bytes())).await
    }

    fn handle(&self) -> &Handle {
        self.store.handle()
    }

    /// Charges the CPU time of the calls that were counted, each on the core of its shard.
    async fn pay(&self) {
        for (shard, debt) in self.debts.iter().enumerate() {
            let calls = debt.take();
            if self.cpu_per_op > Nanos::ZERO && calls > 0 {
                let cost = Nanos(self.cpu_per_op.0.saturating_mul(calls));
                self.store.handle_of(shard).compute(cost).await;
            }
        }
    }

    /// Counts calls of a shard. Their CPU time is charged with the next call that can wait.
    fn owe(&self, shard: usize, calls: u64) {
        self.debts[shard].set(self.debts[shard].get() + calls);
    }

    /// Counts calls of the shard of a key.
    fn owe_for(&self, key: &[u8], calls: u64) {
        self.owe(self.store.shard_of(key), calls);
    }

    /// Counts a call of each shard.
    fn owe_for_all(&self) {
        (0..self.debts.len()).for_each(|shard| self.owe(shard, 1));
    }

    async fn read<T>(
        &self,
        read: impl Future<Output = Result<T, fulgurite_engine::Error>>,
    ) -> Result<T, Error> {
        let begin = self.now();
        self.pay().await;
        let (found, waited) = watched(read).await;
        let found = found?;
        let now = self.now();
        self.meter.read(now, now.saturating_sub(begin), waited);
        Ok(found)
    }

    /// Returns the values of several keys, which `get` looks up.
    async fn get_many<'a>(
        &self,
        keys: &'a [Key],
        get: impl AsyncFnOnce(&[&'a [u8]]) -> Result<Vec<Option<Vec<u8>>>, fulgurite_engine::Error>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keys: Vec<&[u8]> = keys.iter().map(Key::bytes).collect();
        keys.iter().for_each(|key| self.owe_for(key, 1));
        self.read(get(&keys)).await
    }

    /// Returns the records of a scan, at most `most`.
    async fn scan(&self, scan: Scan<'_>, most: usize) -> Result<Vec<Record>, Error> {
        let scan = async {
            let records = scan.limit(most).all().await?;
            records.iter().for_each(|(key, _)| self.owe_for(key, 1));
            Ok(records)
        };
        self.owe_for_all();
        self.read(scan).await
    }

    /// Lets the other users and the device proceed after a transaction that began at `begin`.
    pub(crate) async fn turn(&self, begin: Nanos) {
        let now = self.now();
        // The executor polls the device only when no task is ready. So a user whose transactions never wait
        // must sleep to let it poll: on a simulated device whenever the clock has not advanced, on a real
        // device from time to time.
        if now == begin || now.saturating_sub(self.looked.get()) >= TURN {
            self.looked.set(now);
            self.handle().sleep_until(now + Nanos(1)).await;
        } else {
            yield_to_others().await;
        }
    }
}

/// Runs a future. Returns its output, and whether the future had to wait.
async fn watched<T>(future: impl Future<Output = T>) -> (T, bool) {
    let (mut future, mut waited) = (pin!(future), false);
    poll_fn(|context| {
        let poll = future.as_mut().poll(context);
        waited |= poll.is_pending();
        poll.map(|output| (output, waited))
    })
    .await
}

/// Moves the current task to the end of the queue of ready tasks.
async fn yield_to_others() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A running transaction. Dropping it before its commit rolls it back.
pub struct Work<'a> {
    session: &'a Session,
    transaction: Transaction,
    /// The number of bytes of keys and values that were written; `None` if nothing was written.
    written: Cell<Option<u64>>,
}

impl Work<'_> {
    /// Returns the value of a key; `None` if the key does not exist. No other transaction can change the
    /// value until this one ends.
    pub async fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.session.owe_for(key.bytes(), 1);
        self.session.read(self.transaction.get(table, key.bytes())).await
    }

    /// Returns the value of a key that this transaction will change, under an exclusive lock. `None` if the
    /// key does not exist.
    pub async fn get_for_update(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.session.owe_for(key.bytes(), 1);
        self.session.read(self.transaction.get_for_update(table, key.bytes())).await
    }

    /// Returns a row that this transaction will change; `None` if the row does not exist.
    pub(crate) async fn find_for_update<R: Row>(&self, table: Table, key: &Key) -> Result<Option<R>, Error> {
        self.get_for_update(table, key).await?.map(|found| R::decode(&found)).transpose()
    }

    /// Returns a row that this transaction will change. Fails if the row does not exist.
    pub(crate) async fn row_for_update<R: Row>(&self, table: Table, key: &Key) -> Result<R, Error> {
        R::found(self.get_for_update(table, key).await?)
    }

    /// Returns the values of several keys, in the order of `keys`.
    pub async fn get_many(&self, table: Table, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.session.get_many(keys, async |keys| self.transaction.get_many(table, keys).await).await
    }

    /// Returns the records of a range in the order of `direction`, at most `most`.
    pub async fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        self.session.scan(self.transaction.scan(table, range.bounds(), direction), most).await
    }

    /// Sets the value of a key.
    pub async fn put(&self, table: Table, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.wrote(key, value.len());
        Ok(self.transaction.put(table, key.bytes(), value).await?)
    }

    /// Sets the value of a key to a row.
    pub async fn put_row<R: Row>(&self, table: Table, key: &Key, row: &R) -> Result<(), Error> {
        self.put(table, key, &row.encode()).await
    }

    /// Deletes a key.
    pub async fn delete(&self, table: Table, key: &Key) -> Result<(), Error> {
        self.wrote(key, 0);
        Ok(self.transaction.delete(table, key.bytes()).await?)
    }

    fn wrote(&self, key: &Key, value_bytes: usize) {
        let bytes = (key.bytes().len() + value_bytes) as u64;
        self.session.owe_for(key.bytes(), 1);
        self.written.set(Some(self.written.get().unwrap_or(0) + bytes));
    }

    /// Commits the transaction with the durability that the store is configured for.
    pub async fn commit(self) -> Result<(), Error> {
        let begin = self.session.now();
        self.transaction.commit_calls().for_each(|(shard, calls)| self.session.owe(shard, calls));
        self.session.pay().await;
        self.transaction.commit().await?;
        // A commit of a transaction without writes is not recorded: it waits for nothing and would distort
        // the commit latencies.
        if let Some(bytes) = self.written.get() {
            let now = self.session.now();
            self.session.meter.commit(now, now.saturating_sub(begin), bytes);
        }
        Ok(())
    }
}

/// A snapshot of the committed state. A read of it waits for no transaction.
pub struct View<'a> {
    session: &'a Session,
    snapshot: Snapshot,
}

impl View<'_> {
    /// Returns the value of a key; `None` if the key does not exist.
    pub async fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.session.owe_for(key.bytes(), 1);
        self.session.read(self.snapshot.get(table, key.bytes())).await
    }

    /// Returns a row. Fails if the row does not exist.
    pub async fn row<R: Row>(&self, table: Table, key: &Key) -> Result<R, Error> {
        R::found(self.get(table, key).await?)
    }

    /// Returns the values of several keys, in the order of `keys`.
    pub async fn get_many(&self, table: Table, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.session.get_many(keys, async |keys| self.snapshot.get_many(table, keys).await).await
    }

    /// Returns the records of a range in the order of `direction`, at most `most`.
    pub async fn scan(
        &self,
        table: Table,
        range: &KeyRange,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        self.session.scan(self.snapshot.scan(table, range.bounds(), direction), most).await
    }

    /// Returns the rows of a range of index keys in the order of `direction`, at most `most`.
    pub async fn index_scan(
        &self,
        index: Index,
        range: &KeyRange,
        direction: Direction,
        most: usize,
    ) -> Result<Vec<IndexRow>, Error> {
        self.rows(self.snapshot.index_scan(index, range.bounds(), direction).limit(most)).await
    }

    /// Returns all rows of a range of index keys, reading `degree` rows concurrently.
    pub(crate) async fn index_scan_of(
        &self,
        index: Index,
        range: &KeyRange,
        direction: Direction,
        degree: u32,
    ) -> Result<Vec<IndexRow>, Error> {
        self.rows(self.snapshot.index_scan(index, range.bounds(), direction).degree(degree)).await
    }

    async fn rows(&self, scan: IndexScan<'_>) -> Result<Vec<IndexRow>, Error> {
        let scan = async {
            let rows = scan.all().await?;
            rows.iter().for_each(|row| self.session.owe_for(&row.key, 1));
            Ok(rows)
        };
        self.session.owe_for_all();
        self.session.read(scan).await
    }
}

//! Exports the store in a file to Python: its tables of keys and values, its transactions and its snapshots.
//!
//! Every call may wait for the drive or for another thread's transaction, so every call releases the GIL (the
//! interpreter's lock) while it waits (`waiting.rs`). A thread has at most one transaction per store, and
//! must write through that transaction. Otherwise the thread could wait for its own locks for ever.
//!
//! A store belongs to the process that opened it. A fork copies the memory of a store, and two processes with
//! a copy would write the same pages of the file. So another process must not use the store, its transactions
//! or its snapshots, and must not even drop them.

mod waiting;

use self::waiting::{goes_on, waiting};
use crate::errors::{error, of_engine, of_stack};
use fulgurite_base::option::parse_choice;
use fulgurite_db::{
    Access, Db, Direction, Durability, Error, Record, Snapshot as InnerSnapshot, Table as InnerTable,
    Transaction as Inner,
};
use fulgurite_stack::StackError;
use fulgurite_store_file::{self as store, NewStore, StoreFile};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::ops::Bound as End;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A store in a file.
#[pyclass(frozen, module = "fulgurite._native")]
struct Store {
    home: Home,
    db: Mutex<Option<Db>>,
    writers: Arc<Writers>,
}

/// The id of the process that opened a store.
#[derive(Clone, Copy)]
struct Home(u32);

impl Home {
    fn here() -> Home {
        Home(process::id())
    }

    fn is_here(self) -> bool {
        process::id() == self.0
    }

    /// Raises an exception in another process. Callers check this before they lock a mutex: a thread that
    /// does not exist after the fork may have locked it.
    fn check(self) -> PyResult<()> {
        match self.is_here() {
            true => Ok(()),
            false => {
                let sentence = "the store was opened by another process; open it in this one";
                Err(error("StoreError", sentence.to_owned()))
            }
        }
    }

    /// Drops an object of the store, or forgets it in another process. Returns whether the object was still
    /// there.
    fn drop<T>(self, part: &mut Mutex<Option<T>>) -> bool {
        let part = part.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let is_open = part.is_some();
        match self.is_here() {
            true => drop(part),
            false => std::mem::forget(part),
        }
        is_open
    }
}

/// The threads that have a transaction of the store.
#[derive(Default)]
struct Writers(Mutex<Vec<ThreadId>>);

impl Writers {
    fn list(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises an exception in a thread that has a transaction and would wait for itself.
    fn refuse_own(&self, what: &str) -> PyResult<()> {
        if !self.list().contains(&thread::current().id()) {
            return Ok(());
        }
        Err(error(
            "StoreError",
            format!("this thread has a transaction of the store and would wait for itself; accepted: {what}"),
        ))
    }

    fn end(&self, thread: ThreadId) {
        self.list().retain(|known| *known != thread);
    }
}

/// A table of a store.
#[pyclass(frozen, module = "fulgurite._native")]
struct StoreTable(InnerTable);

fn durability(text: Option<&str>) -> PyResult<Durability> {
    let chosen = text.map(parse_choice::<Durability>).transpose();
    let chosen =
        chosen.map_err(|refused| of_stack(StackError::request(format!("--durability: {refused}"))))?;
    Ok(chosen.unwrap_or(Durability::Group))
}

fn pairs<'py>(py: Python<'py>, records: &[Record]) -> Vec<Pair<'py>> {
    records.iter().map(|(key, value)| (PyBytes::new(py, key), PyBytes::new(py, value))).collect()
}

fn bytes<'py>(py: Python<'py>, value: Option<Vec<u8>>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

/// Returns the range of keys from `low` (exclusive if `after`) to `high` (always exclusive).
fn range<'a>(low: Option<&'a [u8]>, after: bool, high: Option<&'a [u8]>) -> (End<&'a [u8]>, End<&'a [u8]>) {
    let low = match (low, after) {
        (None, _) => End::Unbounded,
        (Some(low), false) => End::Included(low),
        (Some(low), true) => End::Excluded(low),
    };
    (low, high.map_or(End::Unbounded, End::Excluded))
}

fn direction(backward: bool) -> Direction {
    if backward { Direction::Backward } else { Direction::Forward }
}

impl Store {
    fn new(db: Db) -> Store {
        Store { home: Home::here(), db: Mutex::new(Some(db.asking(goes_on))), writers: Arc::default() }
    }

    /// Raises an exception in a thread that has a transaction and would wait for itself.
    fn refuse_own(&self, what: &str) -> PyResult<()> {
        self.home.check()?;
        self.writers.refuse_own(what)
    }

    fn db(&self) -> PyResult<Db> {
        self.home.check()?;
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        db.clone().ok_or_else(|| of_engine(&Error::Closed))
    }
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, size=None, page=None, log=None, place=None, memory=None, durability=None))]
    #[allow(clippy::too_many_arguments)] // all are keyword arguments in Python
    fn create(
        py: Python<'_>,
        path: PathBuf,
        size: Option<String>,
        page: Option<String>,
        log: Option<String>,
        place: Option<String>,
        memory: Option<String>,
        durability: Option<&str>,
    ) -> PyResult<Store> {
        let (durability, new) = (self::durability(durability)?, NewStore { size, page, log, place });
        crate::watched::watched(py, None, move |_| {
            store::create(&StoreFile::new(path, memory.as_deref())?, &new, durability)
        })
        .map(Store::new)
    }

    #[staticmethod]
    #[pyo3(signature = (path, read_only=false, size=None, memory=None, durability=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        size: Option<String>,
        memory: Option<String>,
        durability: Option<&str>,
    ) -> PyResult<Store> {
        let durability = self::durability(durability)?;
        let access = if read_only { Access::Read } else { Access::Write };
        crate::watched::watched(py, None, move |_| {
            store::open(&StoreFile::new(path, memory.as_deref())?, access, size.as_deref(), durability)
        })
        .map(Store::new)
    }

    /// Returns a sentence for each problem of the store; none if it is sound.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let db = self.db()?;
        let reports = waiting(py, move || db.check())?;
        Ok(reports.iter().flat_map(|report| &report.problems).map(ToString::to_string).collect())
    }

    /// Makes the store smaller. Returns the number of pages in use before and after.
    fn compact(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.refuse_own("to end it first")?;
        let db = self.db()?;
        let reports = waiting(py, move || db.compact())?;
        Ok(reports.first().map_or((0, 0), |report| (report.pages_before, report.pages_after)))
    }

    fn backup(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let db = self.db()?;
        crate::watched::watched(py, None, move |_| store::backup_open(&db, &path))
    }

    /// Copies the records into a new store of these sizes. Returns the number of records.
    #[pyo3(signature = (path, size=None, page=None, log=None, place=None))]
    fn copy(
        &self,
        py: Python<'_>,
        path: PathBuf,
        size: Option<String>,
        page: Option<String>,
        log: Option<String>,
        place: Option<String>,
    ) -> PyResult<u64> {
        let (db, new) = (self.db()?, NewStore { size, page, log, place });
        crate::watched::watched(py, None, move |_| store::copy_open(&db, &path, &new))
    }

    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db()?;
        waiting(py, move || db.checkpoint())
    }

    /// Returns the counters since the store was opened, and its current sizes.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let db = self.db()?;
        let counters = PyDict::new(py);
        for statistics in waiting(py, move || db.statistics())?.iter().take(1) {
            statistics.fields().iter().try_for_each(|(name, value)| counters.set_item(name, value))?;
        }
        Ok(counters)
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let db = self.db()?;
        waiting(py, move || db.tables())
    }

    /// Returns the table with this name. The table is created if it does not exist.
    fn create_table(&self, py: Python<'_>, name: String) -> PyResult<StoreTable> {
        self.refuse_own("to make tables outside of it")?;
        let db = self.db()?;
        waiting(py, move || db.create_table(&name)).map(StoreTable)
    }

    /// Returns the table with this name, or None if it does not exist.
    fn table(&self, py: Python<'_>, name: String) -> PyResult<Option<StoreTable>> {
        let db = self.db()?;
        waiting(py, move || match db.table(&name) {
            Err(Error::NoTable(_)) => Ok(None),
            found => found.map(Some),
        })
        .map(|found| found.map(StoreTable))
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        table: &StoreTable,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let db = self.db()?;
        Ok(bytes(py, waiting(py, || db.get(&table.0, key))?))
    }

    fn put(&self, py: Python<'_>, table: &StoreTable, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.refuse_own("to write through it")?;
        let db = self.db()?;
        waiting(py, || db.put(&table.0, key, value))
    }

    fn begin(&self) -> PyResult<Transaction> {
        self.refuse_own("one transaction at a time")?;
        let (inner, thread) = (self.db()?.begin(), thread::current().id());
        self.writers.list().push(thread);
        let writers = Arc::clone(&self.writers);
        let (inner, aborted) = (Mutex::new(Some(inner)), Mutex::default());
        Ok(Transaction { home: self.home, inner, aborted, thread, writers })
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let db = self.db()?;
        let inner = waiting(py, move || db.snapshot())?;
        Ok(Snapshot { home: self.home, inner: Mutex::new(Some(Arc::new(inner))) })
    }

    /// Writes all dirty pages and marks the store as closed. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.refuse_own("to end it first")?;
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting(py, move || db.map_or(Ok(()), |db| db.close()))
    }

    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        self.home.check()?;
        Ok(self.db.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// Whether this process opened the store.
    #[getter]
    fn is_here(&self) -> bool {
        self.home.is_here()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.home.drop(&mut self.db);
    }
}

/// A transaction. It has no effect if it is dropped before its commit.
#[pyclass(frozen, module = "fulgurite._native")]
struct Transaction {
    home: Home,
    inner: Mutex<Option<Inner>>,
    /// The transaction after its commit has aborted it, until it begins again.
    aborted: Mutex<Option<Inner>>,
    thread: ThreadId,
    writers: Arc<Writers>,
}

/// Creates the exception for an ended transaction or a closed snapshot.
fn ended(sentence: &str) -> PyErr {
    error("StoreClosedError", sentence.to_owned())
}

fn busy() -> PyErr {
    let sentence = "the transaction is in the middle of a call, which a signal interrupted; accepted: to \
         leave the signal's handler first";
    error("StoreError", sentence.to_owned())
}

fn transaction_ended() -> PyErr {
    ended("the transaction has ended; accepted: another one, by store.transaction()")
}

impl Transaction {
    /// Raises an exception in a process that did not open the store, and in a thread that did not begin the
    /// transaction.
    fn check(&self) -> PyResult<()> {
        self.home.check()?;
        if thread::current().id() == self.thread {
            return Ok(());
        }
        let sentence = "the transaction belongs to another thread; accepted: the thread that began it";
        Err(error("StoreError", sentence.to_owned()))
    }

    /// Returns the transaction, or `None` while another call uses it: a signal handler may run within a call
    /// that waits.
    fn inner(&self) -> Option<MutexGuard<'_, Option<Inner>>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn take(&self) -> PyResult<Option<Inner>> {
        let inner = self.inner().ok_or_else(busy)?.take();
        // Removes the thread from the list only once. After an earlier end the thread may have another
        // transaction.
        if inner.is_some() {
            self.writers.end(self.thread);
        }
        Ok(inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.check()?;
        let mut inner = self.inner().ok_or_else(busy)?;
        let inner = inner.as_mut().ok_or_else(transaction_ended)?;
        waiting(py, || work(inner))
    }
}

#[pymethods]
impl Transaction {
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: &StoreTable,
        key: &[u8],
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = self.with(py, |inner| match for_update {
            true => inner.get_for_update(&table.0, key),
            false => inner.get(&table.0, key),
        })?;
        Ok(bytes(py, found))
    }

    fn put(&self, py: Python<'_>, table: &StoreTable, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.with(py, |inner| inner.put(&table.0, key, value))
    }

    fn delete(&self, py: Python<'_>, table: &StoreTable, key: &[u8]) -> PyResult<()> {
        self.with(py, |inner| inner.delete(&table.0, key))
    }

    #[allow(clippy::too_many_arguments)] // a range has two ends and a direction
    fn scan<'py>(
        &self,
        py: Python<'py>,
        table: &StoreTable,
        low: Option<&[u8]>,
        after: bool,
        high: Option<&[u8]>,
        backward: bool,
        most: usize,
    ) -> PyResult<Vec<Pair<'py>>> {
        let found = self.with(py, |inner| {
            let records = inner.scan(&table.0, range(low, after, high), direction(backward))?;
            records.limit(most).collect::<Result<Vec<Record>, Error>>()
        })?;
        Ok(pairs(py, &found))
    }

    fn commit(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        self.check()?;
        let durability = durability.map(|text| self::durability(Some(text))).transpose()?;
        let mut inner = self.take()?.ok_or_else(transaction_ended)?;
        let aborted = &self.aborted;
        waiting(py, move || {
            let outcome = inner.try_commit(durability);
            *aborted.lock().unwrap_or_else(PoisonError::into_inner) = outcome.is_err().then_some(inner);
            outcome
        })
    }

    /// Rolls the transaction back if it has not ended. If it was aborted to resolve a deadlock, begins it again when it
    /// is its turn, and returns true.
    fn again(&self, py: Python<'_>) -> PyResult<bool> {
        self.check()?;
        let aborted = || self.aborted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(last) = self.take()?.or_else(aborted) else { return Ok(false) };
        let Some(next) = waiting(py, move || last.again())? else { return Ok(false) };
        *self.inner().ok_or_else(busy)? = Some(next);
        self.writers.list().push(self.thread);
        Ok(true)
    }

    /// Rolls the transaction back. A second call does nothing.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.check()?;
        let inner = self.take()?;
        waiting(py, move || {
            drop(inner);
            Ok(())
        })
    }

    /// Whether the transaction was committed or rolled back.
    #[getter]
    fn is_ended(&self) -> PyResult<bool> {
        self.home.check()?;
        Ok(self.inner().is_some_and(|inner| inner.is_none()))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Removes the thread from the list only once. After an earlier end the thread may have another
        // transaction.
        if self.home.drop(&mut self.inner) && self.home.is_here() {
            self.writers.end(self.thread);
        }
        self.home.drop(&mut self.aborted);
    }
}

/// A snapshot of the store.
#[pyclass(frozen, module = "fulgurite._native")]
struct Snapshot {
    home: Home,
    /// The snapshot; `None` once it is closed. Each call keeps a reference until it ends, so that no call
    /// waits for another.
    inner: Mutex<Option<Arc<InnerSnapshot>>>,
}

impl Snapshot {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&InnerSnapshot) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.home.check()?;
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let inner = inner
            .ok_or_else(|| ended("the snapshot was closed; accepted: another one, by store.snapshot()"))?;
        waiting(py, move || work(&inner))
    }
}

#[pymethods]
impl Snapshot {
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: &StoreTable,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(bytes(py, self.with(py, |inner| inner.get(&table.0, key))?))
    }

    #[allow(clippy::too_many_arguments)] // a range has two ends and a direction
    fn scan<'py>(
        &self,
        py: Python<'py>,
        table: &StoreTable,
        low: Option<&[u8]>,
        after: bool,
        high: Option<&[u8]>,
        backward: bool,
        most: usize,
    ) -> PyResult<Vec<Pair<'py>>> {
        let found = self.with(py, |inner| {
            let records = inner.scan(&table.0, range(low, after, high), direction(backward));
            records.limit(most).collect::<Result<Vec<Record>, Error>>()
        })?;
        Ok(pairs(py, &found))
    }

    /// Closes the snapshot and releases the versions of records that it needs.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.home.check()?;
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting(py, move || {
            drop(inner);
            Ok(())
        })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.home.drop(&mut self.inner);
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Store>()?;
    module.add_class::<StoreTable>()?;
    module.add_class::<Transaction>()?;
    module.add_class::<Snapshot>()
}

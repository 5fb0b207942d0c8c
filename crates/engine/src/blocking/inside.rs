//! The core of a shard: its executor and its store, which one thread at a time may use.

use super::confined::Confined;
use super::jobs::{Broken, Core, Job, Next};
use super::retries::Attempt;
use crate::memory::decisions::Decisions;
use crate::memory::locks::{TxnId, WaitsFor};
use crate::store::names::Locked;
use crate::tools::backup::Backup;
use crate::{BulkLoad, Error, Options, Sink, Snapshot, Store, Transaction};
use fulgurite_base::Nanos;
use fulgurite_device::{Device, Done, Errand, Executor, Outlook, RunError, TaskId};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::cell::{Ref, RefCell, RefMut};
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A bulk load in a shard. The slot is empty while a call uses the load.
pub(super) type LoadSlot = Rc<RefCell<Option<BulkLoad>>>;

/// A table or an index in a shard that is locked for a drop. The slot is empty before and after.
pub(super) type DropSlot = Rc<RefCell<Option<Locked>>>;

/// A backup in a shard, and its target.
pub(super) type BackupSlot = Rc<(Backup, Box<dyn Sink>)>;

/// The slot for the result of a job that had to wait; `None` until the job has ended.
pub(super) type Slot<T> = Arc<Mutex<Option<Result<T, Error>>>>;

/// The store of a shard, its executor, and the transactions, snapshots, bulk loads and backups that handles refer to.
pub(super) struct Inside {
    pub store: Store,
    /// The open transactions, by number.
    pub transactions: FxHashMap<u64, Rc<Transaction>>,
    pub snapshots: FxHashMap<u64, Rc<Snapshot>>,
    /// The open bulk loads, by number.
    pub loads: FxHashMap<u64, LoadSlot>,
    /// The drops in progress, by number.
    pub drops: FxHashMap<u64, DropSlot>,
    /// The backups in progress, by number.
    pub backups: FxHashMap<u64, BackupSlot>,
    drawn: u64,
    ended: Rc<RefCell<Vec<Job>>>,
    /// The tasks of the jobs that wait, by job.
    tasks: FxHashMap<Job, Waiting>,
    executor: Executor,
}

/// The task of a job that waits.
struct Waiting {
    task: TaskId,
    /// Whether the job waits for the log, so that its thread may execute the commands of the log.
    for_log: bool,
}

impl Inside {
    /// Creates a store on `device`, or opens the existing one.
    pub(super) fn begin(
        device: impl Device + Send + 'static,
        options: Options,
        create: bool,
    ) -> Result<Inside, Error> {
        if device.is_bound_to_thread() {
            return Err(Error::Options(
                "the device works on one thread only; open it for many threads (many_threads)".to_owned(),
            ));
        }
        let executor = Executor::of_any(device);
        let handle = executor.handle();
        let store = run_first(&executor, async move {
            if create {
                Store::create(handle, options).await
            } else {
                Store::open_shard(handle, options).await
            }
        })?;
        Ok(Inside {
            store,
            transactions: FxHashMap::default(),
            snapshots: FxHashMap::default(),
            loads: FxHashMap::default(),
            drops: FxHashMap::default(),
            backups: FxHashMap::default(),
            drawn: 0,
            ended: Rc::default(),
            tasks: FxHashMap::default(),
            executor,
        })
    }

    /// Returns a new number for a transaction, a snapshot, a bulk load, a drop or a backup.
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Begins a transaction in this shard, which is `shard`; `txn` is its number if it began in another one. If it
    /// repeats an attempt, it gets the age of the first one, and the turn if that is of this shard. Otherwise it is the
    /// first attempt, and is put into `attempt`.
    pub(super) fn begin_transaction(
        &self,
        shard: usize,
        txn: Option<TxnId>,
        attempt: &mut Option<Attempt>,
    ) -> Transaction {
        let turn = attempt.as_mut().filter(|again| again.shard == shard).and_then(|again| again.turn.take());
        let turn = turn.map(|turn| Box::new(turn) as Box<dyn Any>);
        let first = attempt.as_ref().map(|attempt| attempt.first);
        let transaction = match (txn, first) {
            (Some(txn), first) => self.store.begin_side(txn, first.unwrap_or(txn), turn),
            (None, Some(first)) => self.store.begin_again(first, turn),
            (None, None) => self.store.begin(),
        };
        attempt.get_or_insert_with(|| Attempt { shard, first: transaction.number(), turn: None });
        transaction
    }

    /// Borrows the decisions about transactions of several shards.
    pub(super) fn decisions(&self) -> Ref<'_, Decisions> {
        self.store.0.transactions.decisions()
    }

    /// Borrows the decisions, to change them.
    pub(super) fn decisions_mut(&self) -> RefMut<'_, Decisions> {
        self.store.0.transactions.decisions_mut()
    }

    /// Returns the edges of the waits-for graph of the shard.
    pub(super) fn edges(&self) -> Vec<WaitsFor> {
        self.store.0.transactions.locks().edges()
    }

    /// Counts a deadlock that the lock manager of the shard did not see.
    pub(super) fn count_deadlock(&self) {
        self.store.0.counters.count(|counts| counts.deadlocks += 1);
    }

    /// Returns an open transaction.
    pub(super) fn transaction(&self, number: u64) -> Result<Rc<Transaction>, Error> {
        self.transactions.get(&number).cloned().ok_or(Error::Closed)
    }

    /// Takes an open transaction out of the list, to end it. Every call of it has completed, so no task uses it.
    pub(super) fn take_transaction(&mut self, number: u64) -> Result<Transaction, Error> {
        self.transactions.remove(&number).and_then(Rc::into_inner).ok_or(Error::Closed)
    }

    /// Runs `work` to completion before any other thread uses the store.
    pub(super) fn first<T: 'static, F: Future<Output = Result<T, Error>> + 'static>(
        &self,
        work: impl FnOnce(Store) -> F,
    ) -> Result<T, Error> {
        run_first(&self.executor, work(self.store.clone()))
    }

    /// Runs `work` until it waits. If it does, `slot` will receive its result, and the end of `job` will be
    /// reported. `for_log` says whether `work` waits for the log.
    pub(super) fn start<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<T, Error>> + 'static,
        job: Job,
        for_log: bool,
        slot: &mut Option<Slot<T>>,
    ) -> Option<Result<T, Error>> {
        let tasks = &mut self.tasks;
        self.executor.try_now(work, |task| {
            tasks.insert(job, Waiting { task, for_log });
            let late = Slot::default();
            *slot = Some(Arc::clone(&late));
            let (ended, interrupt) = (Rc::clone(&self.ended), self.executor.interrupt());
            move |result| {
                *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                ended.borrow_mut().push(job);
                // The interrupt ends the current turn soon, so that the thread of the job is woken before
                // other tasks run.
                interrupt.store(true, Relaxed);
            }
        })
    }

    fn after(&mut self, outcome: Result<(), RunError>, ended: &mut Vec<Job>) -> Result<(), Broken> {
        for job in self.ended.borrow_mut().drain(..) {
            self.tasks.remove(&job);
            ended.push(job);
        }
        outcome.map_err(|_| Broken)
    }
}

/// Runs `work` to completion. Page writes that it started may still be in progress then, unless it fails: in
/// this case the store is dropped next, and the drive must be idle before.
fn run_first<T: 'static>(
    executor: &Executor,
    work: impl Future<Output = Result<T, Error>> + 'static,
) -> Result<T, Error> {
    let outcome = executor.run_until(work).map_err(stopped)?;
    if outcome.is_err() {
        executor.run().map_err(stopped)?;
    }
    outcome
}

fn stopped(error: RunError) -> Error {
    Error::Fatal(format!("the device violated its contract: {error}"))
}

impl Core for Confined<Inside> {
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.with(|inside| {
            let outcome = inside.executor.turn();
            inside.after(outcome, ended)
        })
    }

    fn wait(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.with(|inside| {
            let outcome = inside.executor.wait();
            inside.after(outcome, ended)
        })
    }

    fn errand(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<Option<Errand>, Broken> {
        self.with(|inside| {
            inside.executor.run_ready();
            inside.after(Ok(()), ended)?;
            let waiting = inside.tasks.get(&job);
            Ok(waiting.and_then(|job| inside.executor.errand(job.task, job.for_log)))
        })
    }

    fn has_errand_for_all(&self) -> bool {
        self.look(|inside| inside.executor.has_errand_for_all())
    }

    fn carries_for_all(&self, job: Job) -> bool {
        self.look(|inside| inside.tasks.get(&job).is_some_and(|job| job.for_log))
    }

    fn end_errand(&mut self, done: Done, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.with(|inside| {
            let outcome = inside.executor.end_errand(done).and_then(|()| inside.executor.turn());
            inside.after(outcome, ended)
        })
    }

    fn give_up(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.with(|inside| {
            if let Some(Waiting { task, .. }) = inside.tasks.remove(&job) {
                inside.executor.cancel(task);
            }
            inside.after(Ok(()), ended)
        })
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        self.look(|inside| inside.executor.interrupt())
    }

    #[inline]
    fn next(&self) -> Next {
        self.look(|inside| match inside.executor.outlook() {
            Outlook::Ready => Next::Turn,
            Outlook::Waiting { until } => Next::Wait { until },
            Outlook::Idle => Next::Nothing,
        })
    }

    fn now(&self) -> Nanos {
        self.look(|inside| inside.store.handle().now())
    }
}

//! Executes a run of `bench`. A run loads the data, warms up, executes the measured part, and then makes all
//! checks.

mod watched;
mod shared;
mod prepare;
mod row;

use crate::progress::{Step, step};
use crate::run::Rows;
use crate::{Progress, Row, StackError};
use fulgurite_base::Nanos;
use fulgurite_bench::{BenchmarkConfig, Extent, Outcome, Plan};
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::Options;
use fulgurite_engine::sharded::{Store, divide};
use shared::{Counted, Measured, failed};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;
use watched::{Watched, Watcher};

pub(super) use shared::BenchRun;

/// The state of a benchmark run's tasks. It owns all values, because tasks must not borrow from outside the
/// executor.
struct Job {
    benchmark: BenchmarkConfig,
    /// The options of each shard.
    options: Options,
    shards: u32,
    plan: Plan,
    watcher: Watcher,
    /// The label of the device, for errors and progress.
    device: String,
}

impl BenchRun<'_> {
    /// Executes the run.
    pub(super) fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StackError> {
        let label = &self.run.stack.device.label;
        let drive = {
            let _step = step(format!("loading {} into {label}", self.asked.benchmark.name()), 0);
            self.loaded_drive()?
        };
        let start = Instant::now();
        let (watched, watcher) = Watched::new(drive);
        let executor = Executor::with_cores(watched, self.stage.cores);
        let job = Job {
            benchmark: self.asked.benchmark.clone(),
            options: self.stage.options(),
            shards: self.stage.shards,
            plan: self.plan(),
            watcher: watcher.clone(),
            device: self.run.stack.device.label.clone(),
        };
        let measured =
            executor.block_on(job.measure(executor.handle().into())).map_err(StackError::run)??;
        self.check_outcome(&measured.outcome)?;
        check_drive(&watcher)?;
        progress.add(self.run.ops());
        self.rows(&measured, start)
    }

    fn plan(&self) -> Plan {
        Plan {
            users: self.asked.users,
            stop: self.asked.stop,
            warm_up: self.asked.warm_up,
            seed: self.run.seed,
            cpu_per_op: self.stage.cpu_per_op,
            interval: match self.run.measure.rows {
                Rows::TimeIntervals(length) | Rows::TypeIntervals(length) => Some(length),
                _ => None,
            },
        }
    }

    /// Checks that every transaction of the measured part has ended and was counted once.
    fn check_outcome(&self, outcome: &Outcome) -> Result<(), StackError> {
        let (transactions, counted) = (outcome.transactions(), outcome.latency.count());
        let in_series = outcome.series.as_ref().map_or(transactions, |series| {
            series.intervals.iter().map(|figures| figures.transactions()).sum()
        });
        let asked = match self.asked.stop {
            Extent::Ops(ops) => ops,
            Extent::Time(_) => transactions,
        };
        if (transactions, counted, in_series) == (asked, asked, asked) {
            return Ok(());
        }
        Err(StackError::run(format!(
            "conservation is broken: {asked} transactions were asked for, {transactions} ended, {counted} have a \
                latency, {in_series} are in the time series"
        )))
    }
}

impl Job {
    /// Executes the benchmark, checks its data and the store, and closes the store.
    async fn measure(self, handle: Handle) -> Result<Measured, StackError> {
        let failed = |error| failed(&self.device, error);
        let engine = |error: fulgurite_engine::Error| failed(error.into());
        let handles = divide(handle, self.shards).map_err(engine)?;
        let store = Store::open(handles, self.options).await.map_err(engine)?;
        let program = self.benchmark.open(&store).await.map_err(failed)?;
        let before = Rc::new(RefCell::new(None));
        let name = self.benchmark.name();
        let way =
            Rc::new(PartProgress::new(format!("warming up {name} on {}", self.device), self.plan.warm_up));
        let note = {
            let (before, store, watcher) = (Rc::clone(&before), store.clone(), self.watcher.clone());
            let (way, running) = (Rc::clone(&way), format!("running {name} on {}", self.device));
            move || {
                way.begin(running, self.plan.stop);
                *before.borrow_mut() = Some(Counted::now(&store, &watcher));
            }
        };
        let ended: Rc<dyn Fn(Nanos)> = {
            let way = Rc::clone(&way);
            Rc::new(move |elapsed| way.ended(elapsed))
        };
        let outcome = program.run(&store, &self.plan, note, &ended).await.map_err(failed)?;
        drop((ended, way));
        let _checking = step("checking the store", 0);
        // Read the counts before the checks, which read all data and would add to the counts.
        let after = Counted::now(&store, &self.watcher);
        let before = before.take().ok_or_else(|| StackError::run("the measured part never began"))?;
        let verified = program.verify(&store).await.map_err(failed)?;
        let report = store.check().await.map_err(engine)?;
        if let Some(problem) = report.problems.first() {
            let more = report.problems.len() - 1;
            return Err(StackError::run(format!("the store is damaged: {problem} (and {more} more)")));
        }
        let torn_pages = store.first().torn_pages();
        store.close().await.map_err(engine)?;
        Ok(Measured { outcome, before, after, torn_pages, verified })
    }
}

/// The progress of the warm-up or the measured part: a step that counts transactions, or nanoseconds of a
/// given time.
struct PartProgress {
    part: RefCell<(Step, Extent)>,
    /// Nanoseconds that were already reported, if the part of the run ends at a given time.
    passed: Cell<u64>,
}

impl PartProgress {
    fn new(what: String, extent: Extent) -> PartProgress {
        PartProgress { part: RefCell::new((PartProgress::step(what, extent), extent)), passed: Cell::new(0) }
    }

    fn step(what: String, extent: Extent) -> Step {
        let (Extent::Ops(total) | Extent::Time(Nanos(total))) = extent;
        step(what, total)
    }

    /// Begins the step of another part of the run.
    fn begin(&self, what: String, extent: Extent) {
        self.part.replace((PartProgress::step(what, extent), extent));
        self.passed.set(0);
    }

    /// Reports a transaction that ended `elapsed` after the part of the run began.
    fn ended(&self, elapsed: Nanos) {
        let (step, extent) = &*self.part.borrow();
        match extent {
            Extent::Ops(_) => step.add(1),
            Extent::Time(_) => step.add(elapsed.0.saturating_sub(self.passed.replace(elapsed.0))),
        }
    }
}

/// Checks the invariants of the drive, and that the drive has received all pages that the store wrote.
fn check_drive(watcher: &Watcher) -> Result<(), StackError> {
    watcher
        .with(|drive| {
            drive.settle();
            drive.drain_events();
            drive.verify(true)
        })
        .map_err(StackError::run)?;
    let seen = watcher.look();
    match seen.done.host_pages_written() {
        Some(received) if received != seen.pages_written => Err(StackError::run(format!(
            "conservation is broken: the store wrote {} drive pages, the drive received {received}",
            seen.pages_written
        ))),
        _ => Ok(()),
    }
}

//! What one process does with one engine: load, warm up, measure, verify.

use crate::engine::{Engine, Kind, Options, Order, Session, kind};
use crate::ledger::{self, Ledger};
use crate::meter::{self, Device, Process, Traffic};
use crate::rows::{Key, ROW_BYTES, Record, Rows, Version};
use crate::setting::{Durability, Measure, Task};
use crate::workload::{Workload, Zipf, shuffled};
use anyhow::{Context, Result, anyhow, ensure};
use fulgurite_base::Prng;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Rows of a scan.
const SCAN_ROWS: usize = 100;

/// What a run has measured. Times are in µs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub ops: u64,
    pub elapsed_s: f64,
    pub ops_per_s: f64,
    /// p50, p99, p99.9 of reads (or scans).
    pub read_us: Option<[f64; 3]>,
    /// p50, p99, p99.9 of commits.
    pub commit_us: Option<[f64; 3]>,
    pub commits: u64,
    pub user_bytes: u64,
    pub process_write_bytes: u64,
    pub process_read_bytes: u64,
    pub device_write_bytes: Option<u64>,
    pub device_reads: Option<u64>,
    pub device_read_bytes: Option<u64>,
    pub device_flushes: Option<u64>,
    pub cpu_us: u64,
    pub space_bytes: u64,
    pub peak_rss_bytes: u64,
    /// The peak of the memory group, with its page cache.
    pub peak_group_bytes: Option<u64>,
    /// Values and scanned rows that were checked, and rows whose last value was checked afterwards.
    pub reads_checked: u64,
    pub rows_verified: u64,
    /// The rows were verified a second time after the store was closed and opened again.
    pub reopened: bool,
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPED: u8 = 2;

/// Does `task`.
///
/// # Errors
/// The engine fails, or returns what was never written.
pub fn work(task: &Task) -> Result<Option<Outcome>> {
    let kind = kind(&task.engine).with_context(|| format!("there is no engine {}", task.engine))?;
    let durable = task.measure.as_ref().is_some_and(|measure| measure.durability == Durability::Durable);
    let options = Options {
        cache_bytes: task.cache_bytes,
        durable,
        direct: task.direct && kind.direct,
        threads: task.threads.into(),
        rows: task.rows,
    };
    let rows = Rows::new(task.rows);
    let engine = (kind.open)(&task.folder, &options)?;
    if let Some(order) = task.load {
        load(engine.as_ref(), rows, order)?;
    }
    let Some(measure) = &task.measure else {
        engine.close()?;
        return Ok(None);
    };
    let (mut outcome, ledgers) = run(engine.as_ref(), rows, task, measure)?;
    outcome.rows_verified = verify(engine.as_ref(), rows, &ledgers)?;
    engine.close()?;
    if kind.reopens {
        verify_reopened(kind, task, &options, rows, &ledgers)?;
        outcome.reopened = true;
    }
    Ok(Some(outcome))
}

fn load(engine: &dyn Engine, rows: Rows, order: Order) -> Result<()> {
    let record = |row| rows.record(row, Version::LOADED);
    match order {
        Order::Sorted => engine.load(&mut (0..rows.len()).map(record), order),
        Order::Random => engine.load(&mut shuffled(rows.len()).map(record), order),
    }
}

/// What one thread has done while it was measured.
struct Tally {
    ops: u64,
    updates: u64,
    checked: u64,
    reads: Histogram<u64>,
    commits: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Tally> {
        // A nanosecond to a hundred seconds, to three digits.
        let histogram = || Histogram::new_with_bounds(1, 100_000_000_000, 3);
        Ok(Tally { ops: 0, updates: 0, checked: 0, reads: histogram()?, commits: histogram()? })
    }

    fn add(&mut self, other: &Tally) -> Result<()> {
        self.ops += other.ops;
        self.updates += other.updates;
        self.checked += other.checked;
        self.reads.add(&other.reads)?;
        Ok(self.commits.add(&other.commits)?)
    }
}

fn run(engine: &dyn Engine, rows: Rows, task: &Task, measure: &Measure) -> Result<(Outcome, Vec<Ledger>)> {
    let zipf = Zipf::new(rows.len(), measure.theta);
    let phase = AtomicU8::new(WARMING);
    let barrier = Barrier::new(usize::from(task.threads) + 1);
    let device = Device::of(&task.folder)?;
    let traffic = || device.as_ref().map(Device::traffic).transpose();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..task.threads {
            let (zipf, phase, barrier) = (&zipf, &phase, &barrier);
            threads.push(scope.spawn(move || {
                // Whatever happens, the barrier is reached: the others wait there.
                let user = User::new(engine, rows, task, measure, number, zipf);
                barrier.wait();
                user?.run(phase)
            }));
        }
        barrier.wait();
        pause(measure.warmup_s, &threads);
        // What the warm-up left in the page cache is not charged to what is measured.
        meter::sync_device(&task.folder)?;
        let before = (Process::now()?, traffic()?);
        let start = Instant::now();
        phase.store(MEASURING, Ordering::Relaxed);
        pause(measure.seconds, &threads);
        phase.store(STOPPED, Ordering::Relaxed);
        let mut tally = Tally::new()?;
        let mut ledgers = Vec::new();
        for thread in threads {
            let (one, ledger) = thread.join().map_err(|_| anyhow!("a thread has panicked"))??;
            tally.add(&one)?;
            ledgers.push(ledger);
        }
        let elapsed = start.elapsed();
        let process = Process::now()?;
        // What is still in the page cache belongs to the run.
        meter::sync_device(&task.folder)?;
        let mut outcome = summary(&tally, elapsed, before, (process, traffic()?));
        outcome.space_bytes = meter::space_bytes(&task.folder)?;
        outcome.peak_rss_bytes = meter::peak_rss_bytes()?;
        Ok((outcome, ledgers))
    })
}

/// Sleeps for `seconds`, less where a thread has given up.
fn pause<T>(seconds: f64, threads: &[thread::ScopedJoinHandle<'_, T>]) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while let left = end.saturating_duration_since(Instant::now())
        && !left.is_zero()
        && !threads.iter().any(thread::ScopedJoinHandle::is_finished)
    {
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}

fn summary(
    tally: &Tally,
    elapsed: Duration,
    before: (Process, Option<Traffic>),
    after: (Process, Option<Traffic>),
) -> Outcome {
    let device =
        |field: fn(&Traffic) -> Option<u64>| Some(field(&after.1?)?.wrapping_sub(field(&before.1?)?));
    Outcome {
        ops: tally.ops,
        elapsed_s: elapsed.as_secs_f64(),
        ops_per_s: tally.ops as f64 / elapsed.as_secs_f64(),
        read_us: percentiles(&tally.reads),
        commit_us: percentiles(&tally.commits),
        commits: tally.commits.len(),
        user_bytes: tally.updates * ROW_BYTES,
        process_write_bytes: after.0.write_bytes - before.0.write_bytes,
        process_read_bytes: after.0.read_bytes - before.0.read_bytes,
        device_write_bytes: device(|traffic| Some(traffic.write_bytes)),
        device_reads: device(|traffic| Some(traffic.reads)),
        device_read_bytes: device(|traffic| Some(traffic.read_bytes)),
        device_flushes: device(|traffic| traffic.flushes),
        cpu_us: after.0.cpu_us - before.0.cpu_us,
        reads_checked: tally.checked,
        ..Outcome::default()
    }
}

fn percentiles(histogram: &Histogram<u64>) -> Option<[f64; 3]> {
    let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    (!histogram.is_empty()).then(|| [us(0.5), us(0.99), us(0.999)])
}

/// One thread with its session.
struct User<'a> {
    session: Box<dyn Session + 'a>,
    rows: Rows,
    zipf: &'a Zipf,
    workload: Workload,
    batch_size: usize,
    random: Prng,
    ledger: Ledger,
    tally: Tally,
    value: Vec<u8>,
    batch: Vec<Record>,
    pending: Vec<(u64, Version)>,
}

impl<'a> User<'a> {
    fn new(
        engine: &'a dyn Engine,
        rows: Rows,
        task: &Task,
        measure: &Measure,
        number: u8,
        zipf: &'a Zipf,
    ) -> Result<User<'a>> {
        Ok(User {
            session: engine.session()?,
            rows,
            zipf,
            workload: measure.workload,
            batch_size: measure.batch,
            random: Prng::new(task.seed, &format!("peers-{number}")),
            ledger: Ledger::new(measure.run, number, measure.aged),
            tally: Tally::new()?,
            value: Vec::new(),
            batch: Vec::new(),
            pending: Vec::new(),
        })
    }

    /// Works until the phase says stop. Only what begins in the measured phase is counted. Updates that were drawn but
    /// not committed when it ends are dropped.
    fn run(mut self, phase: &AtomicU8) -> Result<(Tally, Ledger)> {
        let mut measured = false;
        loop {
            match phase.load(Ordering::Relaxed) {
                STOPPED => return Ok((self.tally, self.ledger)),
                MEASURING if !measured => {
                    measured = true;
                    self.tally = Tally::new()?;
                }
                _ => {}
            }
            let row = self.zipf.row(&mut self.random);
            if self.workload == Workload::Scan {
                self.scan(row)?;
            } else if self.random.below(100) < self.workload.updates_percent() {
                self.update(row)?;
            } else {
                self.read(row)?;
            }
        }
    }

    fn read(&mut self, row: u64) -> Result<()> {
        let key = self.rows.key(row);
        let start = Instant::now();
        let found = self.session.get(&key, &mut self.value)?;
        self.tally.reads.saturating_record(nanos(start));
        ensure!(found, "row {row} is not there");
        let version = self.rows.check(row, &self.value)?;
        self.ledger.read(row, version)?;
        self.tally.ops += 1;
        self.tally.checked += 1;
        Ok(())
    }

    fn update(&mut self, row: u64) -> Result<()> {
        let version = self.ledger.next_version();
        self.batch.push(self.rows.record(row, version));
        self.pending.push((row, version));
        if self.batch.len() < self.batch_size {
            return Ok(());
        }
        let start = Instant::now();
        self.session.commit(&self.batch)?;
        self.tally.commits.saturating_record(nanos(start));
        self.tally.ops += self.batch.len() as u64;
        self.tally.updates += self.batch.len() as u64;
        self.batch.clear();
        for (row, version) in self.pending.drain(..) {
            self.ledger.committed(row, version);
        }
        Ok(())
    }

    fn scan(&mut self, row: u64) -> Result<()> {
        let (rows, ledger) = (self.rows, &self.ledger);
        let mut next = row;
        let start = Instant::now();
        let found = self.session.scan(&rows.key(row), SCAN_ROWS, &mut |key, value| {
            ensure!(rows.row(key)? == next, "a scan from row {row} gives another row than {next}");
            ledger.read(next, rows.check(next, value)?)?;
            next += 1;
            Ok(())
        })?;
        self.tally.reads.saturating_record(nanos(start));
        let wanted = (rows.len() - row).min(SCAN_ROWS as u64);
        ensure!(found as u64 == wanted && next - row == wanted, "a scan from row {row} gives {found} rows");
        self.tally.ops += 1;
        self.tally.checked += wanted;
        Ok(())
    }
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// Checks the sampled rows that were updated, and some that were not.
fn verify(engine: &dyn Engine, rows: Rows, ledgers: &[Ledger]) -> Result<u64> {
    let expected = ledger::expected(ledgers);
    let mut session = engine.session()?;
    let mut value = Vec::new();
    let mut look = |row: u64| -> Result<Version> {
        let key: Key = rows.key(row);
        ensure!(session.get(&key, &mut value)?, "row {row} is not there after the run");
        rows.check(row, &value)
    };
    for (&row, allowed) in &expected {
        ledger::settle(row, look(row)?, allowed)?;
    }
    let mut random = Prng::new(1, "verify");
    for _ in 0..1000 {
        look(random.below(rows.len()))?;
    }
    Ok(expected.len() as u64 + 1000)
}

fn verify_reopened(
    kind: &Kind,
    task: &Task,
    options: &Options,
    rows: Rows,
    ledgers: &[Ledger],
) -> Result<()> {
    let engine = (kind.open)(&task.folder, options).context("opening the store again")?;
    verify(engine.as_ref(), rows, ledgers).context("after the store was opened again")?;
    engine.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    /// What an engine in memory does wrong.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        Nothing,
        LosesABatch,
        ReturnsANeighbour,
        TearsAValue,
        ForgetsARow,
        ScansPastARow,
        UndoesAtTheEnd,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Running,
        Ended,
    }

    struct Memory {
        rows: Mutex<BTreeMap<Key, Vec<u8>>>,
        loaded: Mutex<BTreeMap<Key, Vec<u8>>>,
        fault: Fault,
        calls: AtomicU64,
        state: Mutex<State>,
    }

    struct Thread<'a>(&'a Memory);

    impl Memory {
        fn new(fault: Fault) -> Memory {
            Memory {
                rows: Mutex::default(),
                loaded: Mutex::default(),
                fault,
                calls: AtomicU64::new(0),
                state: Mutex::new(State::Running),
            }
        }

        /// True now and then, once the fault has something to spoil.
        fn strikes(&self, fault: Fault) -> bool {
            self.fault == fault && self.calls.fetch_add(1, Ordering::Relaxed) % 50 == 49
        }
    }

    impl Engine for Memory {
        fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
            let loaded: BTreeMap<Key, Vec<u8>> =
                rows.map(|record| (record.key, record.value.to_vec())).collect();
            *self.loaded.lock().unwrap() = loaded.clone();
            *self.rows.lock().unwrap() = loaded;
            Ok(())
        }

        fn session(&self) -> Result<Box<dyn Session + '_>> {
            Ok(Box::new(Thread(self)))
        }

        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    impl Session for Thread<'_> {
        fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
            let rows = match (self.0.fault, *self.0.state.lock().unwrap()) {
                (Fault::UndoesAtTheEnd, State::Ended) => self.0.loaded.lock().unwrap(),
                _ => self.0.rows.lock().unwrap(),
            };
            let mut found = rows.get(key);
            if self.0.strikes(Fault::ReturnsANeighbour) {
                found = rows.range(*key..).nth(1).map(|(_, value)| value);
            }
            if self.0.strikes(Fault::ForgetsARow) {
                found = None;
            }
            let Some(found) = found else { return Ok(false) };
            value.clone_from(found);
            if self.0.strikes(Fault::TearsAValue) {
                value[60..].fill(0);
            }
            Ok(true)
        }

        fn commit(&mut self, batch: &[Record]) -> Result<()> {
            if !self.0.strikes(Fault::LosesABatch) {
                let mut rows = self.0.rows.lock().unwrap();
                rows.extend(batch.iter().map(|record| (record.key, record.value.to_vec())));
            }
            Ok(())
        }

        fn scan(
            &mut self,
            from: &Key,
            count: usize,
            each: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>,
        ) -> Result<usize> {
            let skipped = if self.0.strikes(Fault::ScansPastARow) { 3 } else { usize::MAX };
            let rows = self.0.rows.lock().unwrap();
            let range = rows.range(*from..).enumerate().filter(|&(at, _)| at != skipped).take(count);
            let mut found = 0;
            for (_, (key, value)) in range {
                each(key, value)?;
                found += 1;
            }
            Ok(found)
        }
    }

    fn attempt(fault: Fault, workload: Workload) -> Result<u64> {
        let measure = Measure {
            workload,
            durability: Durability::Relaxed,
            batch: 8,
            theta: 0.99,
            warmup_s: 0.05,
            seconds: 0.3,
            run: 9,
            aged: false,
        };
        let task = Task {
            engine: "memory".to_owned(),
            folder: std::env::current_dir()?,
            rows: 3000,
            threads: 2,
            cache_bytes: 0,
            direct: false,
            seed: 1,
            load: None,
            measure: None,
        };
        let rows = Rows::new(task.rows);
        let engine = Memory::new(fault);
        load(&engine, rows, Order::Random)?;
        let (outcome, ledgers) = run(&engine, rows, &task, &measure)?;
        *engine.state.lock().unwrap() = State::Ended;
        verify(&engine, rows, &ledgers)?;
        Ok(outcome.ops)
    }

    #[test]
    fn an_engine_that_keeps_everything_passes() {
        for workload in Workload::ALL {
            assert!(attempt(Fault::Nothing, workload).unwrap() > 100);
        }
    }

    #[test]
    fn a_broken_engine_has_no_result() {
        for (fault, workload) in [
            (Fault::LosesABatch, Workload::A),
            (Fault::ReturnsANeighbour, Workload::C),
            (Fault::TearsAValue, Workload::C),
            (Fault::ForgetsARow, Workload::Write),
            (Fault::ScansPastARow, Workload::Scan),
            (Fault::UndoesAtTheEnd, Workload::Write),
        ] {
            assert!(attempt(fault, workload).is_err(), "{workload:?}");
        }
    }
}

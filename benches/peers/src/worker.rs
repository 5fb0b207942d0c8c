//! What one process does with one engine: load, warm up, measure, verify.

use crate::engine::{Engine, Kind, Options, Order, kind};
use crate::ledger::{self, Ledger};
use crate::meter::{self, Device, Process, Traffic};
use crate::rows::{Key, ROW_BYTES, Rows, Version};
use crate::setting::{Durability, Measure, Task};
use crate::workload::{Zipf, shuffled};
use anyhow::{Context, Result, anyhow, ensure};
use fulgurite_base::Prng;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use user::{Tally, User};

mod user;

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
        memory_bytes: task.memory_bytes,
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

/// Warms up and measures. Returns what the threads have written, for `verify`.
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
        let begin = || {
            pause(measure.warmup_s, &threads);
            // What the warm-up left in the page cache is not charged to what is measured.
            meter::sync_device(&task.folder)?;
            anyhow::Ok((Process::now()?, traffic()?))
        };
        let before = begin();
        let start = Instant::now();
        if before.is_ok() {
            phase.store(MEASURING, Ordering::Relaxed);
            pause(measure.seconds, &threads);
        }
        // On every path: the scope waits for the threads.
        phase.store(STOPPED, Ordering::Relaxed);
        let before = before?;
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
mod tests;

//! The worker process, with one engine: loads, warms up, measures and verifies.

use crate::engine::{Direct, Engine, Options, Order, kind};
use crate::holes;
use crate::inserts::Inserts;
use crate::ledger::{self, Ledger};
use crate::meter::{self, Device, Process, Traffic};
use crate::rows::{Key, ROW_BYTES, Rows, Version};
use crate::setting::{Durability, Measure, Task};
use crate::workload::{Workload, Zipf};
use anyhow::{Context, Result, anyhow, ensure};
use fulgurite_base::Prng;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use user::{Shared, Tally, User};

mod course;
mod user;

/// The results of a run, up to the end of the last thread. Times are in µs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub ops: u64,
    pub elapsed_s: f64,
    pub ops_per_s: f64,
    /// p50, p99, p99.9 of reads or scans.
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
    /// The number of rows in the store at the end.
    pub rows: u64,
    /// The disk space of the store's files.
    pub space_bytes: u64,
    /// The part of it that is not zeros.
    pub data_bytes: u64,
    pub peak_rss_bytes: u64,
    /// The peak memory of the memory group including its page cache.
    pub peak_group_bytes: Option<u64>,
    /// The number of values and scanned rows that were checked, plus the rows whose last value was checked
    /// afterwards.
    pub reads_checked: u64,
    pub rows_verified: u64,
    /// Whether the rows were verified again after the store was closed and reopened.
    pub reopened: bool,
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPED: u8 = 2;

/// Executes `task`.
///
/// # Errors The engine fails, or returns a value that was never written.
pub fn work(task: &Task) -> Result<Option<Outcome>> {
    let kind = kind(&task.engine).with_context(|| format!("there is no engine {}", task.engine))?;
    let durable = task.measure.as_ref().is_some_and(|measure| measure.durability == Durability::Durable);
    let options = Options {
        cache_bytes: task.cache_bytes,
        memory_bytes: task.memory_bytes,
        durable,
        direct: task.direct && kind.direct != Direct::Never,
        threads: task.threads.into(),
        rows: task.rows,
    };
    let rows = Rows::new(task.rows);
    let mut engine = (kind.open)(&task.folder, &options)?;
    if let Some(order) = task.load {
        load(engine.as_ref(), rows, order)?;
    }
    let Some(measure) = &task.measure else {
        engine.close()?;
        return Ok(None);
    };
    let loads = measure.workload == Workload::Load;
    if loads {
        // Some engines create their files only now.
        engine.load(&mut std::iter::empty(), Order::Random)?;
    }
    let (mut outcome, written) = run(engine.as_ref(), rows, task, measure)?;
    outcome.rows_verified = verify(engine.as_ref(), rows, &written)?;
    if kind.reopens {
        engine.close()?;
        engine = (kind.open)(&task.folder, &options).context("opening the store again")?;
        verify(engine.as_ref(), rows, &written).context("after the store was opened again")?;
        outcome.reopened = true;
    }
    if loads {
        // This takes longest, so it is done once, on the final state.
        verify_whole(engine.as_ref(), rows, &written)?;
        outcome.rows_verified = outcome.rows;
    }
    engine.close()?;
    Ok(Some(outcome))
}

fn load(engine: &dyn Engine, rows: Rows, order: Order) -> Result<()> {
    let record = |row| rows.record(row, Version::LOADED);
    match order {
        Order::Sorted => engine.load(&mut (0..rows.loaded()).map(record), order),
        Order::Random => engine.load(&mut (0..rows.loaded()).map(|turn| record(rows.nth(turn))), order),
    }
}

/// The rows that a run may insert: all rows into an empty store, otherwise new ones.
fn inserts(rows: Rows, workload: Workload) -> Inserts {
    match workload {
        Workload::Load => Inserts::new(0, rows.loaded()),
        _ => Inserts::new(rows.loaded(), rows.room()),
    }
}

/// The writes of a run, for `verify`.
struct Written {
    ledgers: Vec<Ledger>,
    /// The turns that were inserted.
    inserted: Range<u64>,
}

/// Warms up and measures. Without a warm-up, everything from the first operation on is measured.
fn run(engine: &dyn Engine, rows: Rows, task: &Task, measure: &Measure) -> Result<(Outcome, Written)> {
    let zipf = Zipf::new(rows.loaded(), measure.theta);
    let shared = Shared { engine, rows, zipf, inserts: inserts(rows, measure.workload) };
    let warms = measure.warmup_s > 0.0;
    let phase = AtomicU8::new(if warms { WARMING } else { MEASURING });
    let barrier = Barrier::new(usize::from(task.threads) + 1);
    let device = Device::of(&task.folder)?;
    let traffic = || device.as_ref().map(Device::traffic).transpose();
    let counters = || {
        // Dirty pages of the page cache belong to earlier work and are written now.
        meter::sync_device(&task.folder)?;
        anyhow::Ok((Process::now()?, traffic()?))
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..task.threads {
            let (shared, phase, barrier) = (&shared, &phase, &barrier);
            threads.push(scope.spawn(move || {
                // The barrier must be reached even after an error, because the other threads wait there.
                let user = User::new(shared, task, measure, number);
                barrier.wait();
                user?.run(phase)
            }));
        }
        let mut before = counters();
        let mut start = Instant::now();
        barrier.wait();
        if warms {
            pause(measure.warmup_s, &threads);
            (before, start) = (counters(), Instant::now());
        }
        if before.is_ok() {
            phase.store(MEASURING, Ordering::Relaxed);
            pause(measure.seconds, &threads);
        }
        // Done on every path, because the scope waits for the threads.
        phase.store(STOPPED, Ordering::Relaxed);
        let before = before?;
        let mut tally = Tally::new()?;
        tally.end = start;
        let mut ledgers = Vec::new();
        for thread in threads {
            let (one, ledger) = thread.join().map_err(|_| anyhow!("a thread has panicked"))??;
            tally.add(&one)?;
            ledgers.push(ledger);
        }
        let process = Process::now()?;
        let (_, traffic) = counters()?;
        let mut outcome = summary(&tally, tally.end - start, before, (process, traffic));
        outcome.rows = shared.inserts.committed();
        outcome.space_bytes = meter::space_bytes(&task.folder)?;
        outcome.data_bytes = holes::data_bytes(&task.folder)?;
        outcome.peak_rss_bytes = meter::peak_rss_bytes()?;
        Ok((outcome, Written { ledgers, inserted: shared.inserts.done() }))
    })
}

/// Sleeps for `seconds`, or less if a thread has ended early.
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
        user_bytes: tally.written * ROW_BYTES,
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

/// Checks the sampled rows that were written, inserted rows, and some loaded rows.
fn verify(engine: &dyn Engine, rows: Rows, written: &Written) -> Result<u64> {
    /// The maximum number of inserted rows to look up. They are spread evenly over the run and include the
    /// last one.
    const INSERTED: u64 = 10_000;
    const OTHERS: u64 = 1000;
    let expected = ledger::expected(&written.ledgers);
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
    let Range { start, end } = written.inserted;
    let stride = (end - start).div_ceil(INSERTED).max(1);
    let mut count = expected.len() as u64;
    for turn in (start..end).rev().step_by(stride as usize) {
        look(rows.nth(turn))?;
        count += 1;
    }
    let mut random = Prng::new(1, "verify");
    let others = if start > 0 { OTHERS } else { 0 };
    for _ in 0..others {
        look(rows.nth(random.below(start)))?;
    }
    Ok(count + others)
}

/// Checks that a store that began empty contains exactly the inserted rows.
fn verify_whole(engine: &dyn Engine, rows: Rows, written: &Written) -> Result<()> {
    course::whole(engine.session()?.as_mut(), rows, written.inserted.end)
}

#[cfg(test)]
mod tests;

//! Measures the cost of a call through the blocking handle: cached reads by one thread and by several, and
//! relaxed commits. For comparison, it also measures the same read by a task on the thread of the executor.
//!
//! `cargo bench -p fulgurite-engine --bench blocking`; `--test` makes a short run.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Durability, Error, Options, Store};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

const RECORDS: u64 = 100_000;

fn options() -> Options {
    Options { log_bytes: 32 << 20, durability: Durability::Relaxed, ..Options::default() }
}

fn drive() -> MemDevice {
    MemDevice::new(32_768, 4096, 64, Nanos::from_micros(10))
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn filled() -> Result<(Db, Table), Error> {
    let db = Db::create(vec![drive()], options())?;
    let table = db.create_table("records")?;
    for from in (0..RECORDS).step_by(500) {
        db.transact(|transaction| {
            (from..from + 500).try_for_each(|number| transaction.put(&table, &key(number), &[1; 100]))
        })?;
    }
    Ok((db, table))
}

/// The number of rounds of each measurement. The fastest round counts, because other programs only make a
/// round slower.
const ROUNDS: u64 = 40;

/// Returns the nanoseconds per call, for `calls` calls made by `threads` threads.
fn time(threads: u64, calls: u64, call: impl Fn(&mut Prng) + Sync) -> f64 {
    let each = (calls / threads / ROUNDS).max(1);
    let begin = Barrier::new(threads as usize + 1);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (begin, call) = (&begin, &call);
            scope.spawn(move || {
                let mut prng = Prng::new(thread, "calls");
                for _ in 0..ROUNDS {
                    begin.wait();
                    (0..each).for_each(|_| call(&mut prng));
                    begin.wait();
                }
            });
        }
        let round = |_| {
            // The clock starts before the threads do, because this thread may be the last to be scheduled.
            let start = Instant::now();
            begin.wait();
            begin.wait();
            start.elapsed().as_secs_f64() * 1e9 / (threads * each) as f64
        };
        (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    })
}

/// Measures the same read by a task of the executor, without the handle. Returns the nanoseconds per read.
fn own_core(calls: u64) -> f64 {
    let executor = Executor::new(drive());
    let handle = executor.handle();
    let run = async move {
        let store = Store::create(handle, options()).await?;
        let table = store.create_table("records").await?;
        for from in (0..RECORDS).step_by(500) {
            let transaction = store.begin();
            for number in from..from + 500 {
                transaction.put(table, &key(number), &[1; 100]).await?;
            }
            transaction.commit().await?;
        }
        let mut prng = Prng::new(0, "calls");
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..calls / ROUNDS {
                black_box(store.snapshot().get(table, &key(prng.below(RECORDS))).await?);
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (calls / ROUNDS) as f64);
        }
        Ok::<f64, Error>(best)
    };
    executor.block_on(run).expect("every task ends").expect("the reads succeed")
}

fn main() -> Result<(), Error> {
    let calls = if std::env::args().any(|argument| argument == "--test") { 2_000 } else { 4_000_000 };
    println!("cached get on the executor's core    {:7.0} ns", own_core(calls));
    let (db, table) = filled()?;
    for threads in [1, 2, 8, 100] {
        let get = |prng: &mut Prng| {
            black_box(db.get(&table, &key(prng.below(RECORDS))).expect("the read succeeds"));
        };
        println!("cached get, {threads:3} threads             {:7.0} ns", time(threads, calls, get));
    }
    for threads in [1, 2, 8, 100] {
        let put = |prng: &mut Prng| {
            db.put(&table, &key(prng.below(RECORDS)), &[2; 100]).expect("the commit succeeds");
        };
        println!("relaxed put, {threads:3} threads            {:7.0} ns", time(threads, calls / 10, put));
    }
    db.close()
}

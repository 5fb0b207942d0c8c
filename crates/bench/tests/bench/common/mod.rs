//! Helpers for tests: a store over a drive in memory, and runs of benchmarks on it.

use fulgurite_base::Nanos;
use fulgurite_bench::{Benchmark, BenchmarkConfig, Error, Extent, Outcome, Plan, Program};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::Options;
use fulgurite_engine::sharded::{Store, divide};
use std::rc::Rc;

pub(crate) type MemStore = Store;

/// Runs `test` over an empty store on a drive in memory whose commands take 20 µs each.
pub(crate) fn on_store<T: 'static>(test: impl AsyncFnOnce(MemStore) -> T + 'static) -> T {
    on_shards(1, test)
}

/// Does the same over a store of several shards, each with a core of its own.
pub(crate) fn on_shards<T: 'static>(shards: u32, test: impl AsyncFnOnce(MemStore) -> T + 'static) -> T {
    let device = MemDevice::new(1 << 16, 4096, 64, Nanos::from_micros(20));
    let executor = Executor::with_cores(device, shards);
    let handles = divide(executor.handle(), shards).unwrap();
    let options = Options { memory_bytes: 16 << 20, log_bytes: 16 << 20, ..Options::default() };
    let run = async move {
        let store = Store::create(handles, options).await.unwrap();
        let output = test(store.clone()).await;
        store.close().await.unwrap();
        output
    };
    executor.block_on(run).unwrap()
}

pub(crate) fn config(text: &str) -> BenchmarkConfig {
    text.parse().unwrap()
}

/// Loads the data of a benchmark and opens the benchmark.
pub(crate) async fn loaded(store: &MemStore, text: &str) -> Program {
    config(text).load(store, 7).await.unwrap();
    config(text).open(store).await.unwrap()
}

/// Returns a plan with eight users and `transactions` transactions.
pub(crate) fn plan(transactions: u64) -> Plan {
    Plan { users: 8, stop: Extent::Ops(transactions), ..Plan::default() }
}

/// Returns a callback that ignores the ends of transactions.
pub(crate) fn unwatched() -> Rc<dyn Fn(Nanos)> {
    Rc::new(|_| ())
}

pub(crate) async fn run(program: &Program, store: &MemStore, transactions: u64) -> Outcome {
    program.run(store, &plan(transactions), || (), &unwatched()).await.unwrap()
}

/// Returns the error message of a verification, which must fail.
pub(crate) async fn refusal(program: &Program, store: &MemStore) -> String {
    match program.verify(store).await {
        Err(error @ Error::Broken(_)) => error.to_string(),
        other => panic!("verifying should have failed: {other:?}"),
    }
}

/// Checks the shares of the types of transactions that `benchmark` draws, by a chi-square test.
pub(crate) fn check_mix(benchmark: &impl Benchmark, shares: &[f64]) {
    let mut prng = fulgurite_base::Prng::new(3, "mix");
    let draws = 50_000;
    let mut counts = vec![0.0; shares.len()];
    for _ in 0..draws {
        counts[benchmark.kind(&benchmark.draw(&mut prng))] += 1.0;
    }
    let total: f64 = shares.iter().sum();
    let expected = |share: f64| share / total * f64::from(draws);
    let terms =
        counts.iter().zip(shares).map(|(count, share)| (count - expected(*share)).powi(2) / expected(*share));
    let (chi_square, freedom): (f64, _) = (terms.sum(), shares.len() as f64 - 1.0);
    // The limit is five standard deviations above the mean of the chi-square distribution.
    assert!(chi_square <= freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-9, "{chi_square}: {counts:?}");
}

//! What the tests share.

#![allow(dead_code)] // each test file uses a part

use fulgurite_base::Nanos;
use fulgurite_device::{Device, Executor, Handle, MemDevice};
use fulgurite_engine::{Options, Store};
use std::future::Future;

/// A drive of 16 MiB on which every command takes 10 µs.
pub fn mem() -> MemDevice {
    MemDevice::new(4096, 4096, 64, Nanos::from_micros(10))
}

/// A small pool and a small log, so that both are always short.
pub fn options() -> Options {
    Options { memory_bytes: 400 << 10, log_bytes: 2 << 20, ..Options::default() }
}

/// Runs a task to its end and returns what it gives.
pub fn run<D: Device + 'static, T: 'static, F: Future<Output = T> + 'static>(
    executor: &Executor<D>,
    task: impl FnOnce(Handle<D>) -> F,
) -> T {
    executor.block_on(task(executor.handle())).expect("every task ends")
}

/// Commits records, some at a time.
pub async fn fill<D: Device + 'static>(
    store: &Store<D>,
    table: &str,
    records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) {
    let table = store.create_table(table).await.unwrap();
    let records: Vec<_> = records.collect();
    for part in records.chunks(20) {
        let transaction = store.begin();
        for (key, value) in part {
            transaction.put(table, key, value).await.unwrap();
        }
        transaction.commit().await.unwrap();
    }
}

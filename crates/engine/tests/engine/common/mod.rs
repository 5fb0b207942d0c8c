//! Helpers that the tests share.

pub(crate) mod cuts;
pub(crate) mod patched;
pub(crate) mod powered;
pub(crate) mod refuses;
pub(crate) mod sample;

use fulgurite_base::Nanos;
use fulgurite_device::{Device, Executor, Handle, MemDevice};
use fulgurite_engine::{Direction, Error, Options, Record, Store};
use std::future::Future;
use std::ops::Bound;

/// Returns a drive of 16 MiB on which every command takes 10 µs.
pub(crate) fn mem() -> MemDevice {
    MemDevice::new(4096, 4096, 64, Nanos::from_micros(10))
}

/// Returns options with a small pool and a small log, so that both are always short of space.
pub(crate) fn options() -> Options {
    Options { memory_bytes: 400 << 10, log_bytes: 2 << 20, ..Options::default() }
}

/// Runs a task to completion and returns its result.
pub(crate) fn run<D: Device + 'static, T: 'static, F: Future<Output = T> + 'static>(
    executor: &Executor<D>,
    task: impl FnOnce(Handle) -> F,
) -> T {
    executor.block_on(task(executor.handle().into())).expect("every task ends")
}

/// Commits records, several in each transaction.
pub(crate) async fn fill(store: &Store, table: &str, records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
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

/// Returns every record of a table.
pub(crate) async fn all(store: &Store, table: &str) -> Result<Vec<Record>, Error> {
    let table = store.table(table).await?;
    store.snapshot().scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward).all().await
}

/// Adds the checksum to a page, for a store with this salt.
pub(crate) fn seal(page: &mut [u8], salt: u32) {
    let sum = crc32c::crc32c_append(salt, &page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the salt of the store in an image, from one of its superblocks.
pub(crate) fn salt(image: &[u8]) -> u32 {
    let at = if &image[..9] == b"fulgurite" { 96 } else { 65536 + 96 };
    u32::from_le_bytes([image[at], image[at + 1], image[at + 2], image[at + 3]])
}

//! Makes pools over an ideal drive, and makes requests one after another.

use fulgurite_base::{Nanos, PageId};
use fulgurite_device::{Device, Executor, MemDevice};
use fulgurite_pool::{BufferPool, PoolConfig, PoolError, ReplacementConfig, WriteBack};

pub(crate) const PAGE_BYTES: u32 = 512;

pub(crate) fn config(frames: u32, write_back: WriteBack) -> PoolConfig {
    let replacement = "lru".parse::<ReplacementConfig>().unwrap().start(frames).unwrap();
    PoolConfig::new(frames, PAGE_BYTES, replacement, write_back)
}

pub(crate) fn mem(pages: u64) -> MemDevice {
    MemDevice::new(pages, PAGE_BYTES, 64, Nanos::from_micros(10))
}

/// Creates a pool over `device` and the executor that runs the pool's tasks.
pub(crate) fn pool_over<D: Device + 'static>(
    device: D,
    frames: u32,
    write_back: WriteBack,
) -> (Executor<D>, BufferPool<D>) {
    let executor = Executor::new(device);
    let pool = BufferPool::new(executor.handle(), config(frames, write_back)).unwrap();
    (executor, pool)
}

pub(crate) async fn request<D: Device>(
    pool: &BufferPool<D>,
    page: u64,
    write: bool,
) -> Result<(), PoolError> {
    match write {
        true => pool.write(PageId(page)).await.map(drop),
        false => pool.read(PageId(page)).await.map(drop),
    }
}

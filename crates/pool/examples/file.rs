//! Uses a pool on a file: changes a page, flushes, and reads the page through a new pool.
//!
//! `cargo run --release -p fulgurite-pool --example file [PATH]`

use fulgurite_base::PageId;
use fulgurite_device::Executor;
use fulgurite_pool::{BufferPool, PoolConfig, ReplacementConfig, WriteBack};
use fulgurite_uring::{DriveOptions, PsyncDevice as Drive};
use std::error::Error;
use std::path::{Path, PathBuf};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Opens a pool of sixteen frames of 4 KiB; on Linux, `fulgurite_uring::UringDevice` can be used in the same
/// way.
fn open(path: &Path) -> Outcome<(Executor<Drive>, BufferPool<Drive>)> {
    let drive = Drive::open(path, &DriveOptions { pages: Some(1_000), ..DriveOptions::default() })?;
    let executor = Executor::new(drive);
    let replacement = "lru".parse::<ReplacementConfig>()?.start(16)?;
    let pool = BufferPool::new(executor.handle(), PoolConfig::new(16, 4096, replacement, WriteBack::ace(8)))?;
    Ok((executor, pool))
}

fn main() -> Outcome<()> {
    let path =
        std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("fulgurite-example"), PathBuf::from);
    let (executor, pool) = open(&path)?;
    executor.block_on(async move {
        let mut page = pool.write(PageId(7)).await?;
        page.bytes_mut()[..5].copy_from_slice(b"hello");
        drop(page);
        pool.flush().await
    })??;
    drop(executor);

    let (executor, pool) = open(&path)?;
    let found = executor
        .block_on(async move { pool.read(PageId(7)).await.map(|page| page.bytes()[..5].to_vec()) })??;
    println!("page 7 of {} says {}", path.display(), String::from_utf8_lossy(&found));
    Ok(())
}

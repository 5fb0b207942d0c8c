//! Uses a pool of 64 frames over a simulated drive: changes pages, flushes, and reads them through a new
//! pool.
//!
//! `cargo run --release -p fulgurite-pool --example embed`

use fulgurite_base::{PageId, Spec};
use fulgurite_device::Executor;
use fulgurite_pool::{BufferPool, PoolConfig, ReplacementConfig, WriteBack};
use fulgurite_ssd::{SimDrive, preset};
use std::error::Error;

const FRAMES: u32 = 64;

fn config(write_back: WriteBack) -> Result<PoolConfig, Box<dyn Error>> {
    let replacement = "lru".parse::<ReplacementConfig>()?.start(FRAMES)?;
    Ok(PoolConfig::new(FRAMES, 4096, replacement, write_back))
}

fn main() -> Result<(), Box<dyn Error>> {
    // The drive is a quarter of a P4510 and stores the contents of its pages.
    let drive = preset::configure(Spec::parse("p4510:blocks=20,precondition=none")?)?;
    let executor = Executor::new(SimDrive::new(drive, 42, true)?);

    let pool = BufferPool::new(executor.handle(), config(WriteBack::ace(8))?)?;
    let changing = pool.clone();
    executor.block_on(async move {
        for page in 0..1_000u64 {
            let mut guard = changing.write(PageId(page)).await?;
            guard.bytes_mut()[..8].copy_from_slice(&page.to_le_bytes());
        }
        changing.flush().await
    })??;
    let counters = pool.counters();
    println!(
        "changed 1,000 pages in {:.2} ms: {} written back in {} batches, {} flushed",
        executor.handle().now().as_secs_f64() * 1e3,
        counters.pages_written,
        counters.write_ios,
        counters.pages_flushed
    );

    let fresh = BufferPool::new(executor.handle(), config(WriteBack::SINGLE)?)?;
    executor.block_on(async move {
        for page in 0..1_000u64 {
            let guard = fresh.read(PageId(page)).await?;
            assert_eq!(guard.bytes()[..8], page.to_le_bytes(), "a change was lost");
        }
        Ok::<_, fulgurite_pool::PoolError>(())
    })??;
    println!("every change was found again");
    Ok(())
}

//! Runs a user's own replacement policy under ACE, and compares it with LRU.
//!
//! `cargo run --release -p fulgurite-pool --example own_policy`

use fulgurite_base::{FrameId, PageId, Spec};
use fulgurite_device::Executor;
use fulgurite_pool::{
    Arrival, BufferPool, Cursor, FrameTable, PoolConfig, Replacement, ReplacementConfig, ReplacementPolicy,
    WriteBack,
};
use fulgurite_ssd::{SimDrive, preset};
use fulgurite_workload::{GeneratorConfig, Op};
use std::collections::VecDeque;
use std::error::Error;

const FRAMES: u32 = 1_000;
const PAGES: u64 = 20_000;

/// FIFO (first in, first out): evicts the page that was read in first, used or not.
#[derive(Default)]
struct Fifo(VecDeque<FrameId>);

impl ReplacementPolicy for Fifo {
    fn insert(&mut self, frame: FrameId, _: PageId, _: Arrival) {
        self.0.push_back(frame);
    }

    fn access(&mut self, _: FrameId, _: bool) {}

    fn remove(&mut self, frame: FrameId) {
        self.0.retain(|held| *held != frame);
    }

    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let place = (cursor.step as usize..self.0.len()).find(|place| !frames.is_pinned(self.0[*place]))?;
        cursor.step = place as u64 + 1;
        Some(self.0[place])
    }
}

fn misses(replacement: Replacement) -> Result<(u64, f64), Box<dyn Error>> {
    let drive = preset::configure(Spec::parse("p4510")?)?;
    let executor = Executor::new(SimDrive::new(drive, 42, false)?);
    let write_back = WriteBack::ace(8);
    let config = PoolConfig::new(FRAMES, 4096, replacement, write_back);
    let pool = BufferPool::new(executor.handle(), config)?;
    let user = pool.clone();
    let requests = "zipf:theta=0.99".parse::<GeneratorConfig>()?.start(PAGES, 4096, 42)?.take(100_000);
    executor.block_on(async move {
        for request in requests {
            let page = PageId(request.page);
            match request.op {
                Op::Write => user.write(page).await.map(drop)?,
                _ => user.read(page).await.map(drop)?,
            }
        }
        Ok::<_, fulgurite_pool::PoolError>(())
    })??;
    Ok((pool.counters().misses, executor.handle().now().as_secs_f64()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (lru, lru_s) = misses("lru".parse::<ReplacementConfig>()?.start(FRAMES)?)?;
    let (fifo, fifo_s) = misses(Replacement::Custom(Box::new(Fifo::default())))?;
    println!("lru    {lru} misses, {lru_s:.3} s on a simulated P4510");
    println!("fifo   {fifo} misses, {fifo_s:.3} s");
    assert!(fifo > lru, "on a skewed workload recency must pay");
    Ok(())
}

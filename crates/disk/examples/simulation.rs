//! A log in a deterministic simulation. A writer appends records, syncs after each tenth and acknowledges these. The
//! power is cut at a time that the seed chooses, and the log is read back. The drive is a simulated SSD, so a sync
//! takes as long as on that drive, garbage collection included, and the same seed gives the same run.
//!
//! `cargo run --release -p fulgurite-disk --example simulation`

use fulgurite_base::{Nanos, Prng};
use fulgurite_disk::{Cache, PowerModel, Request, Ssd};

const RECORD: usize = 512;

fn main() {
    let mut slowest = Nanos::ZERO;
    let (mut lost, mut records) = (0, 0);
    for seed in 0..200 {
        let model = PowerModel::of(Cache::Volatile);
        let mut disk: Ssd<()> = Ssd::simulated("p4510:blocks=64", model, seed).expect("the preset exists");
        let mut random = Prng::new(seed, "writer");
        let power_fails = Nanos(random.below(20_000_000));
        let (mut written, mut acknowledged) = (0u64, 0u64);
        while disk.now() < power_fails {
            // The program computes for some microseconds between two requests.
            let now = disk.now() + Nanos(random.below(10_000));
            let is_sync = written % 10 == 9;
            let record = [1 + (written % 250) as u8; RECORD];
            let offset = written * RECORD as u64;
            disk.execute(Request::Write { offset, data: &record, durable: false }, (), now).expect("alone");
            written += 1;
            if is_sync {
                let synced = disk.execute(Request::Flush, (), disk.now()).expect("alone");
                slowest = slowest.max(synced.at - synced.submitted);
                acknowledged = written;
            }
        }
        let cut = disk.power_cut(seed);
        lost += cut.loss.pages_lost + cut.loss.pages_torn;
        records += written;
        for number in 0..acknowledged {
            let mut record = Vec::new();
            disk.copy(number * RECORD as u64, RECORD, &mut record);
            assert_eq!(record, [1 + (number % 250) as u8; RECORD], "seed {seed} lost record {number}");
        }
    }
    println!("200 power cuts: {records} records, {lost} pages lost or torn, no acknowledged record lost");
    println!("slowest sync: {:.1} ms", slowest.as_secs_f64() * 1e3);
}

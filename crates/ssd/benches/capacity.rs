//! Measures the simulator's own cost by the capacity of the drive: *reference-e* with more erase blocks,
//! under uniform random writes at queue depth 64, with garbage collection. Prints nanoseconds of one core per
//! page operation (reads + programs), and bytes of memory.
//!
//! `cargo bench -p fulgurite-ssd --bench capacity` takes some minutes, mostly for preconditioning; `--test`
//! runs small drives once.

use fulgurite_base::{Lpn, Prng};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_ssd::{SimDrive, SsdConfig, preset};
use std::time::Instant;

fn main() {
    let test = std::env::args().any(|argument| argument == "--test");
    let (blocks, pages, requests) =
        if test { (vec![32, 64], 16, 5_000) } else { (vec![256, 2_048, 32_768], 256, 4_000_000) };
    for blocks in blocks {
        let config = SsdConfig { blocks, pages, ..preset::reference_e() };
        let gib = config.physical_pages() as f64 * f64::from(config.page_bytes) / f64::from(1 << 30);
        let mut drive = SimDrive::new(config, 42, false).expect("the preset is valid");
        // Warms the processor's caches, outside the measured time.
        run(&mut drive, requests / 4);
        let before = drive.counters();
        let start = Instant::now();
        run(&mut drive, requests);
        let seconds = start.elapsed().as_secs_f64();
        drive.verify(false).expect("a checked run");
        let after = drive.counters();
        let operations = after.flash_pages_read + after.flash_pages_programmed
            - before.flash_pages_read
            - before.flash_pages_programmed;
        println!(
            "{gib:8.3} GiB: {:5.1} ns a page operation, {:.2} operations a request, {:.3} GiB of memory",
            seconds * 1e9 / operations as f64,
            operations as f64 / requests as f64,
            drive.bytes() as f64 / f64::from(1 << 30),
        );
    }
}

fn run(drive: &mut SimDrive, requests: u64) {
    let pages = drive.caps().pages;
    let mut prng = Prng::new(7, "capacity");
    let mut completions = Vec::new();
    let (mut submitted, mut completed) = (0, 0);
    while completed < requests {
        while submitted < requests && submitted - completed < 64 {
            let operation = Operation::write(Lpn(prng.below(pages)), 1);
            drive.submit(Command { tag: Tag(submitted), operation }).expect("the queue is deeper than 64");
            submitted += 1;
        }
        drive.wait(None, &mut completions);
        completed += completions.drain(..).count() as u64;
    }
}

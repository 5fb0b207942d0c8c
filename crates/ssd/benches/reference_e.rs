//! Measures the simulator's own cost on the reference geometry: uniform random 4 KiB writes at queue depth 64
//! on a preconditioned drive, with garbage collection. Prints host requests and page operations (reads +
//! programs) per second of one core, and bytes of memory per physical page.
//!
//! `cargo bench -p fulgurite-ssd --bench reference_e` runs it; `--test` runs a small drive once.

use fulgurite_base::{Lpn, Prng};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_ssd::{SimDrive, SsdConfig, preset};
use std::time::Instant;

const QUEUE_DEPTH: u64 = 64;

fn run(drive: &mut SimDrive, requests: u64) {
    let pages = drive.caps().pages;
    let mut prng = Prng::new(42, "bench");
    let mut completions = Vec::new();
    let mut submitted = 0;
    let mut write = |drive: &mut SimDrive, tag: Tag| {
        let operation = Operation::write(Lpn(prng.below(pages)), 1);
        drive.submit(Command { tag, operation }).expect("the queue is deeper than 64");
    };
    for tag in 0..QUEUE_DEPTH {
        write(drive, Tag(tag));
        submitted += 1;
    }
    let mut completed = 0;
    while completed < submitted {
        drive.wait(None, &mut completions);
        for completion in completions.drain(..) {
            completed += 1;
            if submitted < requests {
                submitted += 1;
                write(drive, completion.tag);
            }
        }
    }
}

fn main() {
    let test = std::env::args().any(|argument| argument == "--test");
    let (config, requests, rounds) = if test {
        (SsdConfig { blocks: 32, pages: 16, ..preset::reference_e() }, 10_000, 1)
    } else {
        (preset::reference_e(), 2_000_000, 3)
    };
    let mut drive = SimDrive::new(config, 42, false).expect("the preset is valid");
    let physical = drive.config().physical_pages();
    for round in 1..=rounds {
        let before = drive.counters();
        let start = Instant::now();
        run(&mut drive, requests);
        let seconds = start.elapsed().as_secs_f64();
        let after = drive.counters();
        drive.verify(false).expect("a checked run");
        let operations = after.flash_pages_read + after.flash_pages_programmed
            - before.flash_pages_read
            - before.flash_pages_programmed;
        println!(
            "round {round}: {:.2} M requests/s, {:.2} M page operations/s, {:.2} operations a request, \
             {:.1} B a physical page",
            requests as f64 / seconds / 1e6,
            operations as f64 / seconds / 1e6,
            operations as f64 / requests as f64,
            drive.bytes() as f64 / physical as f64,
        );
    }
}

//! Measures the cost of a request to the simulation that makes it: writes and reads of a page, one at a time, on a
//! drive that collects garbage. Prints nanoseconds of one core.
//!
//! `cargo bench -p fulgurite-disk` runs it; `--test` runs a few requests once.

use fulgurite_base::Prng;
use fulgurite_disk::{Cache, PowerModel, Request, Ssd};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let requests = if std::env::args().any(|argument| argument == "--test") { 1_000 } else { 2_000_000u64 };
    let mut disk: Ssd<()> =
        Ssd::simulated("p4510:blocks=64", PowerModel::of(Cache::Volatile), 7).expect("the preset exists");
    let (page, mut random) = (disk.page_bytes(), Prng::new(1, "bench"));
    // As much as a simulated program usually writes. More than the processor's caches hold costs the time of memory.
    let pages = (64 << 20) / page;
    let data = vec![1; page as usize];
    let mut run = |name: &str, make: &mut dyn FnMut(u64) -> bool| {
        let start = Instant::now();
        for at in 0..requests {
            let offset = random.below(pages) * page;
            let request = match (make(at), at % 64) {
                (_, 63) => Request::Flush,
                (true, _) => Request::Write { offset, data: &data, durable: false },
                (false, _) => Request::Read { offset, length: page },
            };
            black_box(disk.execute(request, (), disk.now()));
        }
        println!("{name}: {:.0} ns a request", start.elapsed().as_secs_f64() * 1e9 / requests as f64);
    };
    run("writes", &mut |_| true);
    run("reads", &mut |_| false);
    run("half of each", &mut |at| at % 2 == 0);
    assert!(disk.pages_written() > 0);
}

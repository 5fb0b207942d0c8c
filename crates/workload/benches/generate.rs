//! Measures the wall-clock time of each generator, in nanoseconds per request. The numbers of pages and
//! requests are tiny unless `cargo bench` runs this program.

use fulgurite_workload::GeneratorConfig;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let is_full =
        std::env::args().any(|arg| arg == "--bench") && !std::env::args().any(|arg| arg == "--test");
    let (pages, requests) = if is_full { (10_000_000, 20_000_000) } else { (64_000, 1_000) };
    let variants = ["zipf:theta=0", "zipf:theta=0.5", "zipf:theta=1.5", "zipf:theta=5"];
    let names = GeneratorConfig::registry().names().filter(|name| *name != "switch");
    for text in names.chain(variants) {
        let making = Instant::now();
        let generator = text
            .parse::<GeneratorConfig>()
            .and_then(|config| config.start(pages, 4096, 42))
            .expect("the text is known");
        let made_us = making.elapsed().as_secs_f64() * 1e6;
        let start = Instant::now();
        for request in generator.take(requests) {
            black_box(request);
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / requests as f64;
        println!("{text:<20} {ns:6.2} ns/request, made in {made_us:.0} us, {pages} pages");
    }
}

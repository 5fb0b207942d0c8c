//! Measures the write amplification of uniform random writes on the translation layer alone, without virtual
//! time, by over-provisioning, and compares it with the closed form.
//!
//! `cargo run --release -p fulgurite-ftl --example write_amplification`

use fulgurite_base::{Prng, StreamId};
use fulgurite_ftl::{CountingSink, Ftl, FtlConfig, analytic};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("spare   WAF     closed form");
    for logical_pages in [29_000, 27_000, 24_000] {
        let config = FtlConfig::plain(logical_pages, 500, 64);
        let mut ftl = Ftl::new(config.clone())?;
        let mut sink = CountingSink::default();
        let mut prng = Prng::new(42, "example");
        let mut write = |lpn, sink: &mut CountingSink| ftl.write(lpn, 1, StreamId(0), sink);
        (0..logical_pages).for_each(|lpn| write(lpn, &mut sink));
        let mut writes = |count: u32, sink: &mut CountingSink| {
            (0..count).for_each(|_| write(prng.below(u64::from(logical_pages)) as u32, sink));
        };
        writes(10 * logical_pages, &mut sink);
        let before = sink.programs;
        writes(10 * logical_pages, &mut sink);
        let waf = (sink.programs - before) as f64 / f64::from(10 * logical_pages);
        let spare = config.spare_effective();
        let expected = analytic::waf_greedy(spare, config.segment_pages).ok_or("no closed form")?;
        println!("{spare:.3}   {waf:.3}   {expected:.3}");
        assert!((waf / expected - 1.0).abs() < 0.01, "beyond 1 % of the closed form");
    }
    Ok(())
}

//! Compares a user's own placement policy with no placement. The policy gives recently written pages and
//! other pages separate streams.
//!
//! `cargo run --release -p fulgurite-ftl --example own_placement`

use fulgurite_base::{Prng, StreamId};
use fulgurite_ftl::placement::{
    AnyPlacement, CustomPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, SegmentTable};
use std::error::Error;
use std::sync::Arc;

const PAGES: u32 = 50_000;

/// A policy with two streams: stream 0 for pages that the host wrote recently, stream 1 for all others.
#[derive(Clone, Debug)]
struct Recent {
    /// The time of each page's last host write, in page writes.
    written_at: Vec<u64>,
    /// The age up to which a page counts as recent, in page writes.
    window: u64,
}

impl PlacementPolicy for Recent {
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let age = segments.now() - self.written_at[context.lpn as usize];
        StreamId(u16::from(age > self.window))
    }

    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        // A copy does not show how often the host writes a page, so only host writes are recorded.
        if !context.copied {
            self.written_at[context.lpn as usize] = segments.now();
        }
    }
}

/// The policy as a value of a configuration.
#[derive(Debug)]
struct RecentConfig;

impl CustomPlacement for RecentConfig {
    fn name(&self) -> &str {
        "recent"
    }

    fn streams(&self) -> u16 {
        2
    }

    fn start(&self, drive: &DriveShape) -> Box<dyn AnyPlacement> {
        let pages = drive.logical_pages;
        Box::new(Recent { written_at: vec![0; pages as usize], window: u64::from(pages) })
    }
}

/// Returns the steady write amplification when nine of ten writes go to a tenth of the pages.
fn write_amplification(placement: PlacementConfig) -> Result<f64, Box<dyn Error>> {
    let mut ftl = Ftl::new(FtlConfig {
        collect: Collect { placement, ..Collect::PLAIN },
        ..FtlConfig::plain(PAGES, 900, 64)
    })?;
    let (mut prng, mut sink) = (Prng::new(42, "example"), CountingSink::default());
    (0..PAGES).for_each(|page| ftl.write(page, 1, StreamId(0), &mut sink));
    let mut write = |count: u32, sink: &mut CountingSink| {
        for _ in 0..count {
            let range = if prng.below(10) < 9 { PAGES / 10 } else { PAGES };
            ftl.write(prng.below(u64::from(range)) as u32, 1, StreamId(0), sink);
        }
    };
    write(10 * PAGES, &mut sink);
    let before = sink.programs;
    write(10 * PAGES, &mut sink);
    Ok((sink.programs - before) as f64 / f64::from(10 * PAGES))
}

fn main() -> Result<(), Box<dyn Error>> {
    let none = write_amplification(PlacementConfig::ONE_STREAM)?;
    let recent = write_amplification(PlacementConfig::Custom(Arc::new(RecentConfig)))?;
    let found = format!("write amplification: {none:.2} without placement, {recent:.2} with recent");
    println!("{found}");
    assert_eq!(found, "write amplification: 4.86 without placement, 3.76 with recent");
    Ok(())
}

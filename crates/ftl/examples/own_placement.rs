//! A placement policy from outside the crate, beside no placement at all: pages that are written often lie apart from
//! the others.
//!
//! `cargo run --release -p fulgurite-ftl --example own_placement`

use fulgurite_base::{NoOptions, Prng, StreamId};
use fulgurite_ftl::placement::{
    ConfiguredPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, SegmentTable};
use std::error::Error;

const PAGES: u32 = 50_000;

/// Stream 0: pages that the host wrote not long ago. Stream 1: the others.
#[derive(Clone, Debug)]
pub struct Recent {
    /// When the host wrote each page last, in page writes.
    written_at: Vec<u64>,
    /// What counts as not long ago.
    window: u64,
}

impl PlacementPolicy for Recent {
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let age = segments.now() - self.written_at[context.lpn as usize];
        StreamId(u16::from(age > self.window))
    }

    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        // A copy says nothing about how often the host writes a page.
        if !context.copied {
            self.written_at[context.lpn as usize] = segments.now();
        }
    }
}

impl ConfiguredPlacement for Recent {
    type Config = NoOptions;

    fn streams(_: &NoOptions) -> u16 {
        2
    }

    fn start(_: &NoOptions, drive: &DriveShape) -> Recent {
        Recent { written_at: vec![0; drive.logical_pages as usize], window: u64::from(drive.logical_pages) }
    }
}

/// Write amplification once it has settled: nine of ten writes go to a tenth of the pages.
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
    let recent = write_amplification(PlacementConfig::custom::<Recent>("recent", NoOptions))?;
    let found = format!("write amplification: {none:.2} without placement, {recent:.2} with recent");
    println!("{found}");
    assert_eq!(found, "write amplification: 4.86 without placement, 3.76 with recent");
    Ok(())
}

//! SepBIT: a host write goes by the lifespan of the page that it invalidates, a copy by its age.
//!
//! "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in Log-Structured
//! Storage" (Wang et al., FAST 2022). Six classes. A page that the host writes goes to class 1 if the copy it
//! invalidates lived for less than ℓ, else to class 2; ℓ is the mean lifespan of the last 16 collected
//! segments of class 1, infinite at first. Copies from class 1 go to class 3; the others, by the age g
//! since the host wrote them, to class 4 (g < 4ℓ), 5 (g < 16ℓ) or 6.
//!
//! The paper's program knows recent writes from a queue whose length follows ℓ (`queue=yes`): it grows by one
//! with every write and shrinks by one where it is too long, so a page is in it if its lifespan is below the
//! smaller of ℓ and the queue's length. Ages come from the time that is stored with each page: 4 bytes a
//! page here. Times are kept modulo 2^32 page writes. O(1).

use super::{ConfiguredPlacement, DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, YES_NO};
use fulgurite_base::{Declared, Opt, StreamId, opt, prefetch};

/// The options of SepBIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SepBitConfig {
    /// Lifespans are known only for pages in the queue.
    pub queue: bool,
    /// Collected segments of class 1 that ℓ is the mean of.
    pub collected: u32,
}

impl Default for SepBitConfig {
    fn default() -> SepBitConfig {
        SepBitConfig { queue: true, collected: 16 }
    }
}

impl Declared for SepBitConfig {
    const OPTIONS: &'static [Opt<SepBitConfig>] = &[
        opt!(
            "queue",
            queue,
            YES_NO,
            "lifespans are known only for pages in the queue, as in the paper's program"
        ),
        opt!("collected", collected, COUNT, 1 => u32::MAX, "collected segments that the mean lifespan is of"),
    ];
}

/// When each page was written, and ℓ.
#[derive(Clone, Debug)]
pub struct SepBit {
    config: SepBitConfig,
    written_at: Vec<u32>,
    /// ℓ.
    lifespan: u64,
    queue: u64,
    collected: u32,
    sum: u64,
}

impl ConfiguredPlacement for SepBit {
    type Config = SepBitConfig;

    fn streams(_: &SepBitConfig) -> u16 {
        6
    }

    fn start(config: &SepBitConfig, drive: &DriveShape) -> SepBit {
        SepBit {
            config: *config,
            written_at: vec![0; drive.logical_pages as usize],
            lifespan: u64::MAX,
            queue: 0,
            collected: 0,
            sum: 0,
        }
    }
}

impl SepBit {
    /// Page writes since the host wrote `lpn`.
    #[inline]
    fn age(&self, lpn: u32, segments: &SegmentTable) -> u64 {
        u64::from((segments.now() as u32).wrapping_sub(self.written_at[lpn as usize]))
    }
}

impl PlacementPolicy for SepBit {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(1) };
        let age = self.age(context.lpn, segments);
        if !context.copied {
            let known = if self.config.queue { self.queue.min(self.lifespan) } else { self.lifespan };
            // Classes count from 1 in the paper, streams from 0.
            return StreamId(u16::from(age >= known));
        }
        if segments.stream(segment).0 == 0 {
            return StreamId(2);
        }
        let spans = |times: u64| self.lifespan.saturating_mul(times);
        StreamId(if age < spans(4) {
            3
        } else if age < spans(16) {
            4
        } else {
            5
        })
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        if context.copied {
            return;
        }
        self.written_at[context.lpn as usize] = segments.now() as u32;
        if self.queue < self.lifespan {
            self.queue += 1;
        } else if self.queue > self.lifespan {
            self.queue -= 1;
        }
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        if segments.stream(victim).0 != 0 {
            return;
        }
        // A segment's lifespan in the paper runs from its first page to its collection.
        self.sum += segments.now() - segments.opened_at(victim);
        self.collected += 1;
        if self.collected == self.config.collected {
            self.lifespan = self.sum / u64::from(self.collected);
            (self.collected, self.sum) = (0, 0);
        }
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.written_at, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.written_at[..])
    }
}

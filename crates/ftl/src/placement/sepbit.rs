//! SepBIT: placement of a host write by the lifespan of the copy that it invalidates, and of a copy by its
//! age.
//!
//! "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in Log-Structured
//! Storage" (Wang et al., FAST 2022). There are six classes. A host page goes to class 1 if the copy that it
//! invalidates lived for less than ℓ, and otherwise to class 2. ℓ is the mean lifespan of the last 16
//! collected segments of class 1, infinite at first. Copies from class 1 go to class 3. Other copies go by
//! the age g since the host write: to class 4 (g < 4ℓ), 5 (g < 16ℓ) or 6.
//!
//! The program by Wang et al. keeps recent writes in a queue whose length follows ℓ (`queue=yes`). The queue
//! grows by one with every write and shrinks by one while it is too long. So a page is in the queue if its
//! lifespan is below both ℓ and the queue's length. Ages come from a time that is stored for each page: 4
//! bytes a page here. Times are kept modulo 2^32 page writes. A decision takes O(1).

use super::lifespan::Lifespan;
use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, YES_NO};
use fulgurite_base::{Declared, Opt, StreamId, opt, prefetch};

/// The options of SepBIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SepBitConfig {
    /// Whether lifespans are known only for pages in the queue.
    pub queue: bool,
    /// The number of collected segments of class 1 over which ℓ is averaged.
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
        opt!("collected", collected, COUNT, 1 => u32::MAX, "collected segments in the mean lifespan"),
    ];
}

/// The write time of each page, and ℓ.
#[derive(Clone, Debug)]
pub struct SepBit {
    config: SepBitConfig,
    written_at: Vec<u32>,
    /// The mean lifespan ℓ of collected segments of class 1.
    lifespan: Lifespan,
    queue: u64,
}

impl SepBit {
    pub(super) fn streams(_: &SepBitConfig) -> u16 {
        6
    }

    pub(super) fn start(config: &SepBitConfig, drive: &DriveShape) -> SepBit {
        SepBit {
            config: *config,
            written_at: vec![0; drive.logical_pages as usize],
            lifespan: Lifespan::new(config.collected),
            queue: 0,
        }
    }

    /// Returns the number of page writes since the host wrote `lpn`.
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
            let lifespan = self.lifespan.mean();
            let known = if self.config.queue { self.queue.min(lifespan) } else { lifespan };
            // Wang et al. count classes from 1, streams count from 0.
            return StreamId(u16::from(age >= known));
        }
        if segments.stream(segment).0 == 0 {
            return StreamId(2);
        }
        let spans = |times: u64| self.lifespan.mean().saturating_mul(times);
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
        if self.queue < self.lifespan.mean() {
            self.queue += 1;
        } else if self.queue > self.lifespan.mean() {
            self.queue -= 1;
        }
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        self.lifespan.picked(victim, segments);
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.written_at, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.written_at[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::victim::VictimConfig;

    /// The page that the host writes only to let time pass.
    const OTHER: u32 = 99;
    const SEGMENT: SegmentId = SegmentId(7);

    struct Rig {
        policy: SepBit,
        table: SegmentTable,
    }

    impl Rig {
        /// Creates a rig in which ℓ is the mean of two collected segments.
        fn new(queue: bool) -> Rig {
            let drive = DriveShape {
                logical_pages: 100,
                segments: 8,
                segment_pages: 16,
                reserve: 2,
                victim: VictimConfig::GREEDY,
            };
            let policy = SepBit::start(&SepBitConfig { queue, collected: 2 }, &drive);
            Rig { policy, table: SegmentTable::new(8, 16, 6) }
        }

        fn context(lpn: u32, copied: bool) -> WriteContext {
            WriteContext { lpn, copied, hint: StreamId(0), segment: Some(SEGMENT) }
        }

        fn write(&mut self, lpn: u32) {
            self.policy.written(&Rig::context(lpn, false), StreamId(0), &self.table);
            // Copies are not host writes, so they do not count.
            self.policy.written(&Rig::context(lpn, true), StreamId(0), &self.table);
            self.table.tick();
        }

        fn pass(&mut self, writes: u32) {
            (0..writes).for_each(|_| self.write(OTHER));
        }

        /// Returns the class, from 1, of a host page whose copy is `age` writes old.
        fn class_at(&mut self, lpn: u32, age: u32) -> u16 {
            self.write(lpn);
            self.pass(age - 1);
            self.class(lpn)
        }

        fn class(&self, lpn: u32) -> u16 {
            self.policy.stream(&Rig::context(lpn, false), &self.table).0 + 1
        }

        /// Returns the class of a copy out of a segment of class `from`.
        fn copy_class(&mut self, lpn: u32, from: u16) -> u16 {
            self.table.open(SEGMENT, StreamId(from - 1));
            let class = self.policy.stream(&Rig::context(lpn, true), &self.table).0 + 1;
            self.table.erased(SEGMENT);
            class
        }

        /// Collects a segment of a class `lifespan` writes after its first page was written.
        fn collect(&mut self, class: u16, lifespan: u32) {
            self.table.open(SEGMENT, StreamId(class - 1));
            self.pass(lifespan);
            self.policy.picked(SEGMENT, &self.table);
            self.table.erased(SEGMENT);
        }
    }

    /// The rule by Wang et al. (2022): a host page goes to class 1 if its copy lived for less than ℓ, and a
    /// new page to class 2. Copies out of class 1 go to class 3, all others to 4, 5 or 6 by their age. ℓ is
    /// the mean lifespan of the last collected segments of class 1, infinite at first.
    #[test]
    fn classes_are_those_of_the_paper() {
        let mut rig = Rig::new(false);
        let fresh = WriteContext { segment: None, ..Rig::context(1, false) };
        assert_eq!(rig.policy.stream(&fresh, &rig.table), StreamId(1));
        assert_eq!(rig.class_at(1, 900), 1, "ℓ is infinite");
        rig.collect(1, 10);
        rig.collect(2, 500);
        assert_eq!((rig.class(1), rig.copy_class(1, 4)), (1, 4), "one segment of class 1 is no mean yet");
        rig.collect(1, 30);
        assert_eq!((rig.class_at(2, 19), rig.class_at(2, 20)), (1, 2), "ℓ is 20");
        for (age, class) in [(79, 4), (80, 5), (319, 5), (320, 6)] {
            rig.class_at(3, age);
            assert_eq!(rig.copy_class(3, 1), 3);
            assert!([2, 3, 4, 5, 6].iter().all(|from| rig.copy_class(3, *from) == class), "{age}");
        }
        rig.collect(1, 6);
        rig.collect(1, 8);
        assert_eq!((rig.class_at(4, 6), rig.class_at(4, 7)), (1, 2), "ℓ is 7");
    }

    /// The rule by the program of Wang et al.: a lifespan is known only while the page is in the queue. The
    /// queue grows by one with each host write up to ℓ, and shrinks by one while it is longer.
    #[test]
    fn a_lifespan_is_known_only_within_the_queue() {
        let mut rig = Rig::new(true);
        assert_eq!(rig.class_at(1, 5), 2, "it is as long ago as the queue is long");
        assert_eq!(rig.class_at(2, 5), 1, "ten writes are in the queue");
        rig.collect(1, 10);
        rig.collect(1, 30);
        // The queue holds 50 writes now, and shrinks to 20.
        for _ in 0..5 {
            assert_eq!((rig.class_at(3, 19), rig.class_at(3, 20)), (1, 2), "ℓ is 20");
            rig.pass(1);
        }
        rig.collect(1, 100);
        rig.table.open(SEGMENT, StreamId(0));
        rig.pass(70);
        rig.write(4);
        rig.pass(29);
        rig.policy.picked(SEGMENT, &rig.table);
        assert_eq!(rig.class(4), 2, "ℓ is 100, but 20 writes are in the queue");
        assert_eq!(rig.class_at(5, 60), 1, "it has grown by 60");
        rig.pass(200);
        assert_eq!((rig.class_at(6, 99), rig.class_at(6, 100)), (1, 2));
    }
}

//! Preconditions a layer: brings it to the state in which measurements start. The layer has then been written
//! for long, and the drive below has received all of the layer's writes.

use crate::LogConfig;
use crate::tails::Tails;
use fulgurite_base::{Ppn, SpecError, StreamId};
use fulgurite_ftl::precondition::{Precondition, precondition};
use fulgurite_ftl::{FlashSink, Ftl, FtlConfig, SegmentId};

/// An operation of the layer on the drive below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Writes pages, in a stream of the drive below.
    Write {
        /// The physical number of the first page.
        first: u32,
        /// The number of pages.
        pages: u32,
        /// The stream on the drive below.
        stream: StreamId,
    },
    /// Trims pages.
    Trim {
        /// The physical number of the first page.
        first: u32,
        /// The number of pages.
        pages: u32,
    },
}

/// The programs and erases that the translation layer emits, in order.
#[derive(Default)]
struct Emitted(Vec<Operation>);

enum Operation {
    Program(Ppn),
    Erase(SegmentId),
}

impl FlashSink for Emitted {
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, ppn: Ppn, _: Option<Ppn>) {
        self.0.push(Operation::Program(ppn));
    }

    fn erase(&mut self, segment: SegmentId) {
        self.0.push(Operation::Erase(segment));
    }
}

impl LogConfig {
    /// Returns the layer's translation layer with the configuration `ftl`, brought to the state `goal` by
    /// writes of `request_pages` pages. `below` receives the layer's operations on the drive below, which
    /// separates `streams` streams.
    pub fn preconditioned(
        &self,
        ftl: FtlConfig,
        goal: Precondition,
        request_pages: u32,
        seed: u64,
        streams: u16,
        mut below: impl FnMut(Below),
    ) -> Result<Ftl, SpecError> {
        let segment_pages = ftl.segment_pages;
        let mut layer = Ftl::new(ftl)?;
        let (mut emitted, mut tails) = (Emitted::default(), Tails::new(&layer, streams));
        precondition(&mut layer, goal, request_pages, seed, |layer, lpn, pages| {
            let mut tell = |layer: &Ftl, emitted: &mut Emitted| {
                for operation in emitted.0.drain(..) {
                    match operation {
                        Operation::Program(ppn) => {
                            let stream = tails.wrote(layer, ppn, 1);
                            below(Below::Write { first: ppn.0, pages: 1, stream });
                        }
                        Operation::Erase(segment) if self.trim => {
                            below(Below::Trim { first: segment.0 * segment_pages, pages: segment_pages });
                        }
                        Operation::Erase(_) => {}
                    }
                }
                // Reports padding too, as a layer in virtual time would write it.
                while let Some((stream, first, pages)) = tails.next_cut_short(layer) {
                    below(Below::Write { first: first.0, pages, stream });
                }
            };
            // Picking a victim may merge the groups of the placement. So operations before it are reported
            // with the old groups, and segments that it seals early are padded before any other write.
            layer.write_watched(lpn, pages, StreamId::default(), &mut emitted, &mut tell);
            tell(layer, &mut emitted);
        });
        layer.start_anew(0);
        Ok(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Share;
    use fulgurite_ftl::placement::{
        AnyPlacement, CustomPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
    };
    use fulgurite_ftl::{Collect, FtlCounters, SegmentTable};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// Places even pages in one group and odd pages in another, and repeatedly merges the second group into
    /// the first.
    #[derive(Clone, Debug)]
    struct Joining {
        picked: u32,
    }

    impl PlacementPolicy for Joining {
        fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
            StreamId((context.lpn % 2) as u16)
        }

        fn picked(&mut self, _: SegmentId, _: &SegmentTable) {
            self.picked += 1;
        }

        fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
            self.picked.is_multiple_of(3).then(|| vec![StreamId(0); 2])
        }
    }

    impl CustomPlacement for Joining {
        fn name(&self) -> &str {
            "joining"
        }

        fn streams(&self) -> u16 {
            2
        }

        fn start(&self, _: &DriveShape) -> Box<dyn AnyPlacement> {
            Box::new(Joining { picked: 0 })
        }
    }

    /// The rule: a segment that is sealed early during preconditioning is written to its end on the drive
    /// below, so that segments of the layer and of the drive stay in step.
    #[test]
    fn the_drive_below_gets_the_rest_of_segments_cut_short() {
        let placement = PlacementConfig::Custom(Arc::new(Joining { picked: 0 }));
        let usual = LogConfig::default();
        let collect = Collect { placement, ..usual.collect };
        let config = LogConfig { op: Share::percent(50), segment_bytes: 8 * 512, collect, ..usual };
        let ftl = config.ftl(512, 512).unwrap();
        // The number of written pages of each segment on the drive below, and the next page of each stream
        // there.
        let (mut written, mut next) = ([0; 512 / 8], [0; 2]);
        let mut cut_short = 0;
        let layer = config.preconditioned(ftl, Precondition::Steady, 1, 42, 2, |below| match below {
            Below::Write { first, pages, stream } => {
                let next = &mut next[usize::from(stream.0)];
                assert!(
                    *next % 8 == 0 && first % 8 == 0 || first == *next,
                    "stream {} goes on at {first}",
                    stream.0
                );
                *next = first + pages;
                written[first as usize / 8] += pages;
                // Only padding is reported with several pages at once; all other pages are reported one by
                // one.
                cut_short += u32::from(pages > 1);
            }
            Below::Trim { first, .. } => {
                let pages = std::mem::take(&mut written[first as usize / 8]);
                // A segment may have been sealed before its first page, so 0 pages are possible.
                assert!([0, 8].contains(&pages), "{pages} of 8 pages are written");
            }
        });
        layer.unwrap();
        assert!(cut_short > 10, "{cut_short}");
    }

    /// The rule: the drive below receives every page write of the layer, and with `trim` a trim of every
    /// freed segment, in order. So the drive holds each page of the layer at the end.
    #[test]
    fn the_drive_below_receives_all_operations() {
        for trim in [true, false] {
            let config =
                LogConfig { op: Share::percent(50), segment_bytes: 8 * 512, trim, ..LogConfig::default() };
            let ftl = config.ftl(512, 512).unwrap();
            let (mut held, mut writes, mut trims) = (BTreeSet::new(), 0, 0);
            let layer = config.preconditioned(ftl, Precondition::Steady, 1, 42, 1, |below| match below {
                Below::Write { first, pages, .. } => {
                    writes += 1;
                    (first..first + pages)
                        .for_each(|page| assert!(held.insert(page) || !trim, "{page} was not trimmed"));
                }
                Below::Trim { first, pages } => {
                    trims += 1;
                    assert_eq!((first % 8, pages), (0, 8));
                    (first..first + pages)
                        .for_each(|page| assert!(held.remove(&page), "{page} is not there"));
                }
            });
            let layer = layer.unwrap();
            assert_eq!(layer.counters(), FtlCounters::default(), "preconditioning is not counted");
            let lies = |lpn: u32| layer.lookup(lpn).is_none_or(|ppn| held.contains(&ppn.0));
            assert!((0..layer.config().logical_pages).all(lies));
            let used = (0..layer.segments().len()).map(|id| layer.segments().written(SegmentId(id)));
            if trim {
                assert_eq!(held.len() as u32, used.sum::<u32>(), "freed segments hold no pages");
            }
            assert!(writes > 1_000 && (trims > 100) == trim, "{writes} writes, {trims} trims");
        }
    }
}

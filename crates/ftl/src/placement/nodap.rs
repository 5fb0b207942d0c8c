//! NoDaP: the oracle of DOGI, which collects a segment of short-lived pages only after all of them have died.
//!
//! "DOGI: Data Placement with Oracle-Guided Insights for Log-Structured Systems" (Kim et al., FAST 2026, "the
//! paper" in this file), section 3.1. A group holds the pages whose remaining time is in its range, host pages
//! and copies alike. A segment has expired if the time since its first page was written exceeds the upper bound
//! of its group. The next victim is an expired segment, of the group with the lowest bound; the oldest one. If
//! no segment has expired, the victim policy picks in the last group. The paper's policy is `greedy`. The paper
//! does not say what happens if all pages of the last group are valid. Then the other groups give up the segment
//! with the fewest valid pages among their oldest ones, and if these are all valid too, the group with the most
//! invalid pages its oldest one; otherwise collection would gain no space.
//!
//! The paper searches the bounds of each workload by simulation: it adds groups until a further one reduces the
//! write amplification by less than 5 %. Here they are an option, as shares of the logical pages. The default
//! is the result of the paper for YCSB-A (table 2): 200 K, 9 M, 17 M, 27 M, 42 M and 51 M of 31.25 M pages.
//! The sizes in that table are a result too: groups have no fixed size.
//!
//! NoDaP needs a first pass over all writes, so it is only available in `gc`. A decision takes O(groups), a
//! pick O(segments). It takes 4 bytes a page and 4 a write.

use super::expired::expired;
use super::future::Future;
use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::SegmentTable;
use fulgurite_base::units::{self, Share};
use fulgurite_base::{Declared, Form, Opt, SpecError, StreamId, opt};

/// The options of NoDaP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodapConfig {
    /// The ascending upper bounds of all groups but the last, as shares of the logical pages.
    pub bounds: Vec<Share>,
}

impl Default for NodapConfig {
    fn default() -> NodapConfig {
        let thousandths = [6_400, 288_000, 544_000, 864_000, 1_344_000, 1_632_000];
        NodapConfig { bounds: thousandths.map(Share::from_ppm).to_vec() }
    }
}

impl Declared for NodapConfig {
    const OPTIONS: &'static [Opt<NodapConfig>] = &[opt!(
        "bounds",
        bounds,
        BOUNDS,
        "upper bounds of all groups but the last, in logical pages written"
    )];
}

const BOUNDS: Form<Vec<Share>> = Form {
    written: "%/%/…",
    parse: |text| {
        let bounds = text.split('/').map(units::parse_share).collect::<Result<Vec<Share>, _>>()?;
        let ascend = bounds.is_sorted_by(|low, high| low < high) && bounds[0] > Share::ZERO;
        if ascend && bounds.len() <= BOUNDS_AT_MOST {
            return Ok(bounds);
        }
        Err(SpecError::new(format!(
            "`{text}` is not accepted: write up to {BOUNDS_AT_MOST} shares that increase, like 1%/50%/200%"
        )))
    },
    show: |bounds| bounds.iter().map(Share::to_string).collect::<Vec<_>>().join("/"),
};

const BOUNDS_AT_MOST: usize = 63;

/// NoDaP at work, with the future writes.
#[derive(Clone, Debug)]
pub struct Nodap {
    future: Future,
    /// The upper bounds of all groups but the last, in page writes.
    bounds: Vec<u64>,
}

impl Nodap {
    pub(super) fn streams(config: &NodapConfig) -> u16 {
        config.bounds.len() as u16 + 1
    }

    pub(super) fn start(config: &NodapConfig, drive: &DriveShape) -> Nodap {
        Nodap {
            future: Future::new(drive.logical_pages),
            bounds: config.bounds.iter().map(|share| share.of(drive.logical_pages.into())).collect(),
        }
    }
}

impl PlacementPolicy for Nodap {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let left = self.future.left(context, segments.now());
        StreamId(self.bounds.iter().take_while(|bound| left > **bound).count() as u16)
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        self.future.written(context, segments.now());
    }

    #[inline]
    fn queue(&self, stream: StreamId) -> Option<u16> {
        (usize::from(stream.0) < self.bounds.len()).then_some(stream.0)
    }

    fn overfull(&self, segments: &SegmentTable) -> Option<u16> {
        expired(segments, |group| self.bounds.get(usize::from(group)).copied())
    }

    fn foresee(&mut self, next: Vec<u32>) {
        self.future.next = next;
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        self.future.prefetch(lpn);
    }

    fn bytes(&self) -> usize {
        self.future.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SegmentId;
    use crate::victim::VictimConfig;

    /// NoDaP with the bounds 10 and 100, and a table of segments of 16 pages.
    fn rig() -> (Nodap, SegmentTable) {
        let victim = VictimConfig::GREEDY;
        let drive = DriveShape { logical_pages: 100, segments: 8, segment_pages: 16, reserve: 2, victim };
        let config = NodapConfig { bounds: (BOUNDS.parse)("10%/100%").unwrap() };
        assert_eq!(Nodap::streams(&config), 3);
        (Nodap::start(&config, &drive), SegmentTable::new(8, 16, 3))
    }

    fn pass(table: &mut SegmentTable, writes: u32) {
        (0..writes).for_each(|_| table.tick());
    }

    /// The rule of Kim et al. (2026): host pages and copies go to the group whose range has their remaining time.
    #[test]
    fn pages_go_by_their_remaining_time() {
        let (mut nodap, mut table) = rig();
        pass(&mut table, 7);
        let host = WriteContext { lpn: 3, copied: false, hint: StreamId(0), segment: None };
        for (left, group) in [(1, 0), (10, 0), (11, 1), (100, 1), (101, 2)] {
            nodap.foresee(vec![7 + left; 8]);
            assert_eq!(nodap.stream(&host, &table), StreamId(group), "{left}");
        }
        nodap.written(&host, StreamId(2), &table);
        let copy = WriteContext::copy(3, SegmentId(1));
        for (writes, group) in [(0, 2), (1, 1), (89, 1), (1, 0), (500, 0)] {
            pass(&mut table, writes);
            assert_eq!(nodap.stream(&copy, &table), StreamId(group), "at {}", table.now());
        }
        nodap.foresee(vec![u32::MAX; 1_000]);
        assert_eq!(nodap.stream(&host, &table), StreamId(2), "a page that is never written again");
    }

    /// The rule of Kim et al. (2026): the next victim is a sealed segment whose first page is older than the bound
    /// of its group, of the lowest such group. The last group has no bound; there the victim policy picks.
    #[test]
    fn only_expired_segments_are_collected_from_groups_with_a_bound() {
        let (nodap, mut table) = rig();
        for (segment, group) in [(0, 1), (1, 0), (2, 2)] {
            table.open(SegmentId(segment), StreamId(group));
            table.append(SegmentId(segment), 16);
            pass(&mut table, 4);
            table.seal(SegmentId(segment));
        }
        table.invalidate(SegmentId(2));
        table.open(SegmentId(3), StreamId(0));
        // The segments 0, 1 and 2 were opened at 0, 4 and 8, and segment 3, which is not full, at 12.
        let steps = [(12, None), (14, None), (15, Some(0)), (100, Some(0)), (200, Some(0))];
        for (now, queue) in steps {
            let writes = now - table.now() as u32;
            pass(&mut table, writes);
            assert_eq!(nodap.overfull(&table), queue, "at {now}");
        }
        table.begin_collection(SegmentId(1));
        assert_eq!(nodap.overfull(&table), Some(1));
        table.begin_collection(SegmentId(0));
        assert_eq!(nodap.overfull(&table), None);
        assert_eq!([0, 1, 2].map(|group| nodap.queue(StreamId(group))), [Some(0), Some(1), None]);
    }

    /// The rule: if no segment has expired and the last group has no invalid page, the group whose oldest segment
    /// has the fewest valid pages gives it up; if all of these are valid, the group with the most invalid pages.
    #[test]
    fn collection_always_gains_space() {
        let (nodap, mut table) = rig();
        for (segment, group, invalid) in [(0, 1, 2), (1, 0, 1), (2, 1, 9), (3, 2, 0)] {
            table.open(SegmentId(segment), StreamId(group));
            table.append(SegmentId(segment), 16);
            (0..invalid).for_each(|_| table.invalidate(SegmentId(segment)));
            table.tick();
            table.seal(SegmentId(segment));
        }
        // Segment 2 has more invalid pages, but segment 0 is older.
        assert_eq!(nodap.overfull(&table), Some(1));
        (0..2).for_each(|_| table.invalidate(SegmentId(1)));
        assert_eq!(nodap.overfull(&table), Some(0));
        table.invalidate(SegmentId(3));
        assert_eq!(nodap.overfull(&table), None, "the last group has an invalid page");
        // All pages of the oldest segments are valid.
        (0..2).for_each(|_| table.revive(SegmentId(0)));
        (0..3).for_each(|_| table.revive(SegmentId(1)));
        table.revive(SegmentId(3));
        assert_eq!(nodap.overfull(&table), Some(1), "segment 2 has invalid pages");
    }

    /// The rule: bounds are shares that increase from above zero.
    #[test]
    fn bounds_must_increase() {
        for text in ["1%", "0.5%/3%/250%"] {
            assert_eq!((BOUNDS.show)(&(BOUNDS.parse)(text).unwrap()), text);
        }
        for text in ["", "0%/2%", "2%/2%", "3%/2%", "7", "1%/"] {
            assert!((BOUNDS.parse)(text).is_err(), "{text}");
        }
        assert_eq!((BOUNDS.show)(&NodapConfig::default().bounds), "0.64%/28.8%/54.4%/86.4%/134.4%/163.2%");
    }
}

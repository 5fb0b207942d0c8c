//! The oracle: placement by the true time until a page is overwritten or trimmed.
//!
//! This is ORA of MiDAS (Oh et al., FAST 2024, "the paper" in this file). The bounds of its six classes are
//! 250 K, 5 M, 14 M, 28 M and 62 M page writes on 128 GiB (table 1). Here they are the same shares of the
//! logical pages (`classes=seed`). `classes=log2` has twelve classes, each with twice the bound of the class
//! before; the first bound is a thousandth of the logical pages. A copy is placed by its remaining time.
//!
//! With `sizes=50%` all classes but the last have a fixed number of segments and give up the oldest one, as
//! in table 2 of the paper, which does not say how the sizes were found. Here such a group has room for the
//! valid pages of its class and for invalid pages. The number of invalid pages is limited to the number at
//! which all pages live for the longest time of the class, so that no page is valid at collection. The groups
//! together use at most the given share of the over-provisioned space. Copies stay in their group; otherwise
//! a group would have no fixed number of pages. If collection gains no space with these sizes, they are given
//! up for good.
//!
//! The oracle needs a first pass over all writes, so it is only available for repeatable runs, in `gc`. A
//! decision takes O(1). The oracle takes 4 bytes a page and 4 a write.

use super::future::Future;
use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use super::runaway::Runaway;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::units::{self, Share};
use fulgurite_base::{Choice, Declared, Form, Opt, SpecError, StreamId, opt};

/// The division of the remaining time into classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// The bounds are those of table 1 of the paper, as shares of the logical pages.
    Seed,
    /// Each bound is twice the bound before.
    Log2,
}

impl Choice for Classes {
    const NAMES: &'static [(&'static str, Classes)] = &[("log2", Classes::Log2), ("seed", Classes::Seed)];
}

/// The options of the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleConfig {
    /// The bounds of the classes.
    pub classes: Classes,
    /// The share of the over-provisioned space for groups of a fixed size; `None` for groups without sizes.
    pub sizes: Option<Share>,
}

impl Classes {
    /// Returns the bounds between the classes in page writes, on a drive of `logical_pages` pages.
    pub fn bounds(self, logical_pages: u32) -> Vec<u64> {
        self.thousandths().iter().map(|part| u64::from(logical_pages) * part / 1000).collect()
    }

    fn thousandths(self) -> &'static [u64] {
        if self == Classes::Seed { &SEED } else { &LOG2 }
    }
}

impl Default for OracleConfig {
    fn default() -> OracleConfig {
        OracleConfig { classes: Classes::Log2, sizes: None }
    }
}

impl Declared for OracleConfig {
    const OPTIONS: &'static [Opt<OracleConfig>] = &[
        opt!(
            "classes",
            classes,
            Form::<Classes>::choice("log2|seed"),
            "division of the remaining time into classes"
        ),
        opt!("sizes", sizes, SIZES, "the share of the spare space that groups of a fixed size use"),
    ];
}

const SIZES: Form<Option<Share>> = Form {
    written: "no|%",
    parse: |text| match text {
        "no" => Ok(None),
        share => match units::parse_share(share)? {
            share if share > Share::ZERO && share < Share::ONE => Ok(Some(share)),
            _ => Err(SpecError::new(format!("{share} is out of range; accepted: no, or less than 100%"))),
        },
    },
    show: |sizes| sizes.map_or_else(|| "no".to_owned(), |share| share.to_string()),
};

/// The bounds of `seed` in thousandths of the logical pages: 250 K, 5 M, 14 M, 28 M and 62 M of 33.5 M.
const SEED: [u64; 5] = [7, 149, 417, 834, 1848];
const LOG2: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// The number of logical capacities of page writes after which groups get their sizes. Until then they
/// contain pages of the initial fill, which are not overwritten at a steady rate.
const SIZED_AFTER: u64 = 3;

/// The oracle at work, with the future writes.
#[derive(Clone, Debug)]
pub struct Oracle {
    future: Future,
    /// The bounds of the classes, in page writes.
    bounds: Vec<u64>,
    config: OracleConfig,
    drive: DriveShape,
    /// The largest number of segments of each group that has a size; `sized_from` is the time when sizes take
    /// effect.
    sizes: Vec<u32>,
    sized_from: u64,
    runaway: Runaway,
    /// Whether sizes are in effect; `regroup` tells whether that has just changed.
    sizing: bool,
    regroup: bool,
}

impl Oracle {
    pub(super) fn streams(config: &OracleConfig) -> u16 {
        config.classes.thousandths().len() as u16 + 1
    }

    pub(super) fn start(config: &OracleConfig, drive: &DriveShape) -> Oracle {
        Oracle {
            future: Future::new(drive.logical_pages),
            bounds: config.classes.bounds(drive.logical_pages),
            config: *config,
            drive: drive.clone(),
            sizes: Vec::new(),
            sized_from: u64::MAX,
            // Each segment may be collected once before invalid pages are required.
            runaway: Runaway::new(drive.segments),
            sizing: false,
            regroup: false,
        }
    }

    fn class(&self, left: u64) -> usize {
        self.bounds.iter().take_while(|bound| left >= **bound).count()
    }

    /// Returns the size in segments of each group but the last.
    fn sizes(&self, share: f64) -> Vec<u32> {
        // For each class, the number of pages written and the sum of their lifetimes, without the initial
        // fill.
        let fill = self.drive.logical_pages as usize;
        let mut traffic = vec![(0.0, 0.0); self.bounds.len()];
        for (now, next) in self.future.next.iter().enumerate().skip(fill) {
            let life = u64::from(*next) - now as u64;
            if let Some((pages, lives)) = traffic.get_mut(self.class(life)) {
                (*pages, *lives) = (*pages + 1.0, *lives + life as f64);
            }
        }
        let writes = (self.future.next.len() - fill).max(1) as f64;
        // Returns, by Little's law, the valid pages of a class, and its invalid pages if no page is valid at
        // collection.
        let group = |(bound, (pages, lives)): (&u64, &(f64, f64))| {
            let valid = lives / writes;
            (valid, pages / writes * *bound as f64 - valid)
        };
        let groups: Vec<(f64, f64)> = self.bounds.iter().zip(&traffic).map(group).collect();
        let garbage: f64 = groups.iter().map(|(_, garbage)| garbage).sum();
        let DriveShape { logical_pages, segments, segment_pages, reserve, .. } = self.drive;
        // Subtracts the reserve and an open segment of each class, including the last.
        let room = f64::from(segments) - f64::from(reserve) - groups.len() as f64 - 1.0;
        let spare = (room * f64::from(segment_pages) - f64::from(logical_pages)).max(0.0);
        let fits = if garbage > 0.0 { (share * spare / garbage).min(1.0) } else { 1.0 };
        let size = |(valid, garbage): &(f64, f64)| (valid + fits * garbage) / f64::from(segment_pages);
        // Adds the open segment of the group.
        groups.iter().map(|group| size(group).ceil() as u32 + 1).collect()
    }
}

impl PlacementPolicy for Oracle {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        if let Some(victim) = context.segment.filter(|_| context.copied && self.config.sizes.is_some()) {
            return segments.stream(victim);
        }
        StreamId(self.class(self.future.left(context, segments.now())) as u16)
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        self.future.written(context, segments.now());
    }

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        if segments.now() >= self.sized_from && !self.sizing {
            (self.regroup, self.sizing) = (true, true);
        }
        if self.runaway.picked(victim, segments) && self.sizing {
            (self.regroup, self.sizing, self.sized_from) = (true, false, u64::MAX);
        }
    }

    #[inline]
    fn queue(&self, stream: StreamId) -> Option<u16> {
        (self.sizing && usize::from(stream.0) < self.sizes.len()).then_some(stream.0)
    }

    fn overfull(&self, segments: &SegmentTable) -> Option<u16> {
        if self.sizing { segments.first_above(&self.sizes) } else { None }
    }

    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        // No group changes, but the segments are sorted into queues again.
        let streams = Oracle::streams(&self.config);
        std::mem::take(&mut self.regroup).then(|| (0..streams).map(StreamId).collect())
    }

    fn foresee(&mut self, next: Vec<u32>) {
        self.future.next = next;
        if let Some(share) = self.config.sizes {
            self.sizes = self.sizes(share.as_f64());
            self.sized_from = SIZED_AFTER * u64::from(self.drive.logical_pages);
        }
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
    use crate::placement::PlacementConfig;
    use crate::victim::VictimConfig;
    use crate::{Collect, CountingSink, Ftl, FtlConfig, check};
    use fulgurite_base::Prng;

    /// The rule: a group of a fixed size has room for the valid pages of its class, for an open segment, and
    /// for invalid pages within its share of the over-provisioned space. The initial fill does not count.
    #[test]
    fn sizes_follow_from_the_traffic() {
        // Every second page lives for 5 writes, the others for 100. The bounds are 7 and 149 writes. So 2.5
        // and 50 pages are valid at a time. If all pages lived for the longest time of their class, 1 and
        // 24.5 more pages would be invalid.
        let lives = |now: u32| now + if now.is_multiple_of(2) { 5 } else { 100 };
        let next: Vec<u32> = (0..1_000).map(|now| now + 3).chain((1_000..2_000).map(lives)).collect();
        let drive = DriveShape {
            logical_pages: 1_000,
            segments: 627,
            segment_pages: 2,
            reserve: 100,
            victim: VictimConfig::GREEDY,
        };
        let sizes = |share| {
            let config = OracleConfig { classes: Classes::Seed, sizes: Some(Share::percent(share)) };
            let mut oracle = Oracle::start(&config, &drive);
            oracle.foresee(next.clone());
            oracle.sizes
        };
        // 627 − 100 − 5 − 1 segments have 42 pages more than the logical pages. 49 % of that is 20.58, for
        // 25.5 invalid pages: 34.9 segments.
        assert_eq!(sizes(49), [3, 36, 1, 1, 1]);
        // The share is larger than all invalid pages: 37.25 segments.
        assert_eq!(sizes(80), [3, 39, 1, 1, 1]);
    }

    const PAGES: u32 = 4_000;

    /// Runs skewed writes after a fill, with the oracle. `look` is called with the drive at intervals.
    fn run(placement: &str, mut look: impl FnMut(&Ftl, &Oracle)) -> Ftl {
        let mut prng = Prng::new(8, "oracle");
        let draw = |prng: &mut Prng| {
            let range = if prng.below(10) < 9 { PAGES / 10 } else { PAGES };
            prng.below(u64::from(range)) as u32
        };
        let writes: Vec<u32> = (0..PAGES).chain((0..12 * PAGES).map(|_| draw(&mut prng))).collect();
        let mut next = vec![u32::MAX; writes.len()];
        let mut last = vec![u32::MAX; PAGES as usize];
        for (now, lpn) in writes.iter().enumerate().rev() {
            next[now] = std::mem::replace(&mut last[*lpn as usize], now as u32);
        }
        let placement = placement.parse::<PlacementConfig>().unwrap();
        let collect = Collect { placement, victim: VictimConfig::FIFO, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(PAGES, 320, 16) }).unwrap();
        ftl.foresee(next);
        for lpn in writes {
            ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default());
            look(&ftl, ftl.placer().policy::<Oracle>().unwrap());
        }
        check::check(&ftl).unwrap();
        ftl
    }

    /// The rule: sizes take effect after three capacities, and the groups give up the segments above their
    /// size. From then on no group has more segments than its size, since copies stay in their group.
    #[test]
    fn groups_keep_to_their_sizes() {
        let ftl = run("oracle:classes=seed,sizes=50%", |ftl, oracle| {
            let table = ftl.segments();
            // Sizes take effect at a pick, and there is at least one pick for each segment of writes.
            let writes = table.now() - table.now().min(3 * u64::from(PAGES));
            if !(1..=16).contains(&writes) {
                assert_eq!(oracle.sizing, writes > 0, "after {} writes", table.now());
            }
            if table.now() > 5 * u64::from(PAGES) {
                let above = table.first_above(&oracle.sizes);
                assert_eq!(above, None, "of {:?} after {} writes", oracle.sizes, table.now());
            }
        });
        let oracle = ftl.placer().policy::<Oracle>().unwrap();
        let full = (0..5u16)
            .filter(|group| ftl.segments().in_stream(StreamId(*group)) == oracle.sizes[usize::from(*group)]);
        assert!(full.count() > 3, "groups are as large as they may be");
    }

    /// Returns an oracle with these sizes, or without sizes if `sizes` is empty, and a table of segments
    /// after `now` writes.
    fn at(sizes: &[u32], now: u64) -> (Oracle, SegmentTable) {
        let drive = DriveShape {
            logical_pages: 1_000,
            segments: 100,
            segment_pages: 16,
            reserve: 2,
            victim: VictimConfig::GREEDY,
        };
        let share = (!sizes.is_empty()).then_some(Share::percent(50));
        let mut oracle = Oracle::start(&OracleConfig { classes: Classes::Seed, sizes: share }, &drive);
        oracle.foresee((0..5_000).map(|now| now + 300).collect());
        oracle.sizes = sizes.to_vec();
        let mut table = SegmentTable::new(100, 16, 6);
        (0..now).for_each(|_| table.tick());
        (oracle, table)
    }

    /// The rule: a host page is placed by the time until it is written again, one class up for each bound
    /// that this time reaches. A copy is placed by its remaining time.
    #[test]
    fn pages_go_by_their_remaining_time() {
        let (mut oracle, mut table) = at(&[], 10);
        for (left, class) in
            [(0, 0), (6, 0), (7, 1), (148, 1), (149, 2), (416, 2), (417, 3), (834, 4), (1_848, 5)]
        {
            oracle.future.next[10] = 10 + left;
            let context = WriteContext { lpn: 3, copied: false, hint: StreamId(0), segment: None };
            assert_eq!(oracle.stream(&context, &table), StreamId(class), "{left}");
        }
        oracle.written(
            &WriteContext { lpn: 3, copied: false, hint: StreamId(0), segment: None },
            StreamId(5),
            &table,
        );
        let copy = WriteContext::copy(3, SegmentId(1));
        let steps = [
            (0, 5),
            (1, 4),
            (1_013, 4),
            (1, 3),
            (416, 3),
            (1, 2),
            (267, 2),
            (1, 1),
            (141, 1),
            (1, 0),
            (900, 0),
        ];
        for (writes, class) in steps {
            (0..writes).for_each(|_| table.tick());
            assert_eq!(oracle.stream(&copy, &table), StreamId(class), "at {}", table.now());
            // A copy does not start a new lifetime.
            oracle.written(&copy, StreamId(class), &table);
        }
    }

    /// The rule: sizes take effect at the first pick after three capacities. Until then, and always in the
    /// last group, the victim policy picks. Sizes are given up for good once collection gains no space.
    #[test]
    fn sizes_take_effect_at_the_first_pick_after_three_capacities() {
        let (mut oracle, mut table) = at(&[1, 1, 1, 1, 1], 2_999);
        for segment in 0..2 {
            table.open(SegmentId(segment), StreamId(0));
            table.append(SegmentId(segment), 16);
        }
        let queues = |oracle: &Oracle| [0, 4, 5].map(|stream| oracle.queue(StreamId(stream)));
        oracle.picked(SegmentId(0), &table);
        assert_eq!((queues(&oracle), oracle.overfull(&table)), ([None; 3], None));
        assert_eq!(oracle.take_regrouping(), None);
        table.tick();
        oracle.picked(SegmentId(0), &table);
        assert_eq!((queues(&oracle), oracle.overfull(&table)), ([Some(0), Some(4), None], Some(0)));
        assert_eq!(oracle.take_regrouping(), Some((0..6).map(StreamId).collect()));
        assert_eq!(oracle.take_regrouping(), None);
        // Picks as many victims without invalid pages as there are segments.
        (0..98).for_each(|_| oracle.picked(SegmentId(0), &table));
        assert!(oracle.sizing);
        oracle.picked(SegmentId(0), &table);
        assert_eq!((queues(&oracle), oracle.overfull(&table)), ([None; 3], None));
        assert!(oracle.take_regrouping().is_some());
        (0..5_000).for_each(|_| table.tick());
        oracle.picked(SegmentId(0), &table);
        assert!(!oracle.sizing);
    }
}

//! WARCIP: placement of a host write into the cluster whose mean rewrite interval is nearest.
//!
//! "WARCIP: write amplification reduction by clustering I/O pages" (Yang et al., SYSTOR 2019) forms clusters of
//! pages with similar rewrite intervals, as k-means does. This file follows the program by Wang et al. (SepBIT,
//! FAST 2022), which has WARCIP as a baseline.
//!
//! The interval of a host write is the time since the page's last write, 0 for a new page. If the page was
//! copied in between, its age at the last copy is added as a penalty. Each cluster is a stream, and its centre
//! is the mean interval of the pages in its open segment. Copies have a stream of their own.
//!
//! After every 256 full segments of the host, the clusters change. If a cluster took over half of the writes
//! and another one is closed, the busy cluster is split: the closed one opens halfway between the busy one and
//! the next lower centre. Otherwise the lowest cluster that wrote less than a segment is merged: it closes as
//! soon as its segment is full, and its pages go to their next nearest cluster.
//!
//! *Differences.* The program counts time in the trace's microseconds; here time is in page writes. A trimmed
//! page is new. On a drive of several units a cluster ends its segment when it has written as many pages as a
//! segment has. A page takes 8 bytes, and a decision O(streams).

use super::policy::{DriveShape, PlacementPolicy, STREAMS_AT_MOST, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::{COUNT, COUNT_16, YES_NO};
use fulgurite_base::{Declared, Opt, StreamId, opt, prefetch};

/// The options of WARCIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarcipConfig {
    /// The number of streams: one for all copies, and one for each cluster.
    pub streams: u16,
    /// The number of full segments of the host after which clusters may be split or merged.
    pub window: u32,
    /// Whether a page that was copied has a longer rewrite interval.
    pub penalty: bool,
}

impl Default for WarcipConfig {
    fn default() -> WarcipConfig {
        WarcipConfig { streams: 6, window: 256, penalty: true }
    }
}

impl Declared for WarcipConfig {
    const OPTIONS: &'static [Opt<WarcipConfig>] = &[
        opt!("streams", streams, COUNT_16, 2 => STREAMS_AT_MOST, "streams; the first one takes all copies"),
        opt!("window", window, COUNT, 1 => u32::MAX, "full segments of the host between changes of the clusters"),
        opt!("penalty", penalty, YES_NO, "a copied page's interval is longer by its age at the last copy"),
    ];
}

/// The times of a page, in host page writes modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// The time of the last host write.
    written: u32,
    /// The page's age at its last copy since then; 0 if there was none.
    penalty: u32,
}

/// The pages that were written to a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    /// The mean interval of the pages in the open segment; the last one's if the segment is empty.
    centre: f64,
    /// The number of pages in the open segment.
    pages: u32,
    /// The number of pages that were written in this window.
    writes: u64,
}

/// The clusters, and the times of each page.
#[derive(Clone, Debug)]
pub struct Warcip {
    config: WarcipConfig,
    segment_pages: u32,
    pages: Vec<Times>,
    /// The cluster of each stream; that of stream 0, the copies, is not used.
    clusters: Vec<Cluster>,
    /// The streams of the open clusters, by ascending centre.
    open: Vec<u16>,
    /// The streams of the closed clusters.
    closed: Vec<u16>,
    /// The cluster that closes when its segment is full.
    closing: Option<u16>,
    /// The number of full segments in this window.
    full: u32,
}

impl Warcip {
    pub(super) fn streams(config: &WarcipConfig) -> u16 {
        config.streams
    }

    pub(super) fn start(config: &WarcipConfig, drive: &DriveShape) -> Warcip {
        Warcip {
            config: *config,
            segment_pages: drive.segment_pages,
            pages: vec![Times::default(); drive.logical_pages as usize],
            clusters: vec![Cluster::default(); usize::from(config.streams)],
            open: (1..config.streams).collect(),
            closed: Vec::new(),
            closing: None,
            full: 0,
        }
    }

    #[inline]
    fn interval(&self, context: &WriteContext, segments: &SegmentTable) -> f64 {
        if context.segment.is_none() {
            return 0.0;
        }
        let times = self.pages[context.lpn as usize];
        let age = (segments.now() as u32).wrapping_sub(times.written);
        f64::from(age) + f64::from(times.penalty)
    }

    /// Counts a full segment of a cluster.
    fn fill(&mut self, stream: u16) {
        self.clusters[usize::from(stream)].pages = 0;
        if self.closing == Some(stream) {
            self.closing = None;
            self.open.retain(|open| *open != stream);
            self.closed.push(stream);
        }
        self.full += 1;
        if self.full == self.config.window {
            self.full = 0;
            self.split_or_merge();
            self.clusters.iter_mut().for_each(|cluster| cluster.writes = 0);
        }
    }

    fn split_or_merge(&mut self) {
        let writes = |stream: &u16| self.clusters[usize::from(*stream)].writes;
        let total = self.clusters.iter().map(|cluster| cluster.writes).sum::<u64>();
        let busy = self.open.iter().position(|stream| writes(stream) > total / 2);
        if let (Some(at), false) = (busy, self.closed.is_empty()) {
            let centre = |at: usize| self.clusters[usize::from(self.open[at])].centre;
            let below = if at == 0 { 0.0 } else { centre(at - 1) };
            let centre = (below + centre(at)) / 2.0;
            if let Some(stream) = self.closed.pop() {
                self.clusters[usize::from(stream)] = Cluster { centre, ..Cluster::default() };
                self.open.insert(at, stream);
            }
        } else if self.closing.is_none() && self.open.len() > 1 {
            let few = u64::from(self.segment_pages);
            self.closing = self.open.iter().find(|stream| writes(stream) < few).copied();
        }
    }
}

impl PlacementPolicy for Warcip {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        if context.copied {
            return StreamId(0);
        }
        let interval = self.interval(context, segments);
        let (mut nearest, mut least) = (0, f64::INFINITY);
        // Among equal centres the last, so that the centres stay in order when it moves up.
        for stream in self.open.iter().rev() {
            let distance = (self.clusters[usize::from(*stream)].centre - interval).abs();
            if distance < least {
                (nearest, least) = (*stream, distance);
            }
        }
        StreamId(nearest)
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, to: StreamId, segments: &SegmentTable) {
        let (now, lpn) = (segments.now() as u32, context.lpn as usize);
        if context.copied {
            if self.config.penalty {
                self.pages[lpn].penalty = now.wrapping_sub(self.pages[lpn].written);
            }
            return;
        }
        let interval = self.interval(context, segments);
        self.pages[lpn] = Times { written: now, penalty: 0 };
        // Without a free segment a host page can go to the stream of the copies, which is no cluster.
        if to.0 == 0 {
            return;
        }
        let cluster = &mut self.clusters[usize::from(to.0)];
        let pages = f64::from(cluster.pages);
        cluster.centre = (cluster.centre * pages + interval) / (pages + 1.0);
        cluster.pages += 1;
        cluster.writes += 1;
        if cluster.pages >= self.segment_pages {
            self.fill(to.0);
        }
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(0))
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.pages, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.pages[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::victim::VictimConfig;

    const PAGES: u32 = 4;

    struct Rig {
        policy: Warcip,
        table: SegmentTable,
    }

    impl Rig {
        /// Creates a rig with three clusters, in the streams 1 to 3.
        fn new(window: u32, penalty: bool) -> Rig {
            let victim = VictimConfig::GREEDY;
            let drive =
                DriveShape { logical_pages: 100, segments: 8, segment_pages: PAGES, reserve: 2, victim };
            let config = WarcipConfig { streams: 4, window, penalty };
            Rig { policy: Warcip::start(&config, &drive), table: SegmentTable::new(8, PAGES, 4) }
        }

        fn context(lpn: u32, copied: bool) -> WriteContext {
            WriteContext { lpn, copied, hint: StreamId(0), segment: Some(SegmentId(0)) }
        }

        /// Writes a page `interval` writes after its last write, and returns its stream.
        fn write(&mut self, interval: u32) -> u16 {
            self.policy.pages[1] = Times { written: self.table.now() as u32, penalty: 0 };
            (0..interval).for_each(|_| self.table.tick());
            let context = Rig::context(1, false);
            let to = self.policy.stream(&context, &self.table);
            self.policy.written(&context, to, &self.table);
            to.0
        }

        fn writes<const N: usize>(&mut self, intervals: [u32; N]) -> [u16; N] {
            intervals.map(|interval| self.write(interval))
        }

        fn centres(&self) -> Vec<f64> {
            self.policy.open.iter().map(|stream| self.policy.clusters[usize::from(*stream)].centre).collect()
        }
    }

    /// The rule: a page goes to the cluster with the nearest centre. The centre is the mean interval of the
    /// pages in the cluster's open segment, and the first page of the next segment begins a new mean. A new page
    /// has the interval 0. Copies go to a stream of their own and move no centre.
    #[test]
    fn a_page_goes_to_the_nearest_centre() {
        let mut rig = Rig::new(1000, true);
        assert_eq!(rig.writes([100, 40, 15, 9]), [3, 2, 1, 1]);
        assert_eq!(rig.centres(), [12.0, 40.0, 100.0]);
        assert_eq!(
            rig.writes([60, 80, 200, 220]),
            [2, 3, 3, 3],
            "50 and 90, then 126.7, then a full segment"
        );
        assert_eq!(rig.centres(), [12.0, 50.0, 150.0]);
        assert_eq!(rig.write(110), 3);
        assert_eq!(rig.centres(), [12.0, 50.0, 110.0]);
        let new = WriteContext { segment: None, ..Rig::context(9, false) };
        assert_eq!(rig.policy.stream(&new, &rig.table), StreamId(1));
        let copy = Rig::context(1, true);
        assert_eq!(rig.policy.stream(&copy, &rig.table), StreamId(0));
        rig.policy.written(&copy, StreamId(0), &rig.table);
        assert_eq!(rig.centres(), [12.0, 50.0, 110.0]);
    }

    /// The rule: the interval of a page that was copied is longer by its age at the last copy, once.
    #[test]
    fn a_copied_page_has_a_longer_interval() {
        for (penalty, interval) in [(true, 10 + 7), (false, 10)] {
            let mut rig = Rig::new(1000, penalty);
            let host = Rig::context(1, false);
            rig.policy.written(&host, StreamId(1), &rig.table);
            for copied in 1..=10 {
                rig.table.tick();
                if [3, 7].contains(&copied) {
                    rig.policy.written(&Rig::context(1, true), StreamId(0), &rig.table);
                }
            }
            assert_eq!(rig.policy.interval(&host, &rig.table), f64::from(interval));
            rig.policy.written(&host, StreamId(1), &rig.table);
            rig.table.tick();
            assert_eq!(rig.policy.interval(&host, &rig.table), 1.0);
        }
    }

    /// The rule: after a window, the lowest cluster that wrote less than a segment closes as soon as its segment
    /// is full. After a later window, a cluster with over half of the writes is split: the closed cluster opens
    /// between it and the next lower centre.
    #[test]
    fn clusters_are_merged_and_split() {
        let mut rig = Rig::new(4, true);
        rig.writes([100, 40, 15]);
        for interval in [100, 100, 100, 40, 40, 40] {
            rig.write(interval);
        }
        assert_eq!(rig.policy.closing, None, "two segments are full");
        rig.writes([40, 40, 40, 40, 100, 100, 100, 100]);
        assert_eq!(
            (rig.policy.closing, rig.policy.open.len()),
            (Some(1), 3),
            "one of 17 writes went to cluster 1"
        );
        assert_eq!(rig.writes([15, 15, 15, 15]), [1, 1, 1, 2], "its segment is full");
        assert_eq!((&rig.policy.open[..], &rig.policy.closed[..]), (&[2, 3][..], &[1][..]));
        // Cluster 1 filled one segment of this window; cluster 3 fills the others.
        rig.writes([100; 12]);
        assert_eq!(rig.policy.open, [2, 1, 3]);
        assert_eq!(rig.centres(), [15.0, 57.5, 100.0]);
        assert_eq!(rig.writes([50, 30]), [1, 2]);
    }

    /// The rule: the busiest cluster is not split while all clusters are open, and the last cluster never closes.
    #[test]
    fn some_cluster_is_always_open() {
        let mut rig = Rig::new(1, true);
        for _ in 0..200 {
            for interval in [7, 70, 35, 50] {
                rig.write(interval);
            }
            let mut streams = [&rig.policy.open[..], &rig.policy.closed[..]].concat();
            streams.sort_unstable();
            assert!(streams == [1, 2, 3] && !rig.policy.open.is_empty());
            assert!(rig.centres().is_sorted(), "{:?}", rig.centres());
        }
    }
}

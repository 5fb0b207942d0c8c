//! 2R: copies go to segments of their own, and the host continues in the last of them.
//!
//! "2R: Efficiently Isolating Cold Pages in Flash Storages" (Kang et al., PVLDB 13, 2020) has a region of
//! segments that the host wrote and a region of segments that collection wrote. "SSD-iq: Uncovering the
//! Hidden Side of SSD Performance" (Haas et al., PVLDB 18, 2025) compares it with greedy collection by a
//! program. This file and the victim policies `2r-fifo` and `2r-greedy` follow that program.
//!
//! Victims come in rounds. A round takes victims until their invalid pages fill a segment. The copies of a
//! round fill as many segments as they can. The last segment has room left. The host fills one new segment and
//! then that last one (*handover*): in the program both are free. With [`TwoRConfig::handover`] off, the last
//! segment waits for the next round, so no segment has pages of both kinds.
//!
//! *Differences.* The program moves pages inside a victim, which needs no free segment; here copies need one.
//! On a drive of several units the victims of all units are one round. A decision takes O(1), and the policy
//! needs no information about pages.

use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::YES_NO;
use fulgurite_base::{Declared, Opt, StreamId, opt};

/// The options of 2R.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoRConfig {
    /// Whether the host continues in the segment that the copies of a round have begun.
    pub handover: bool,
}

impl Default for TwoRConfig {
    fn default() -> TwoRConfig {
        TwoRConfig { handover: true }
    }
}

impl Declared for TwoRConfig {
    const OPTIONS: &'static [Opt<TwoRConfig>] =
        &[opt!("handover", handover, YES_NO, "whether the host fills the last segment of a round's copies")];
}

/// The policy at work. The two streams change roles, because a stream keeps its open segment.
#[derive(Clone, Debug)]
pub struct TwoR {
    segment_pages: u32,
    handover: bool,
    /// The stream of the host.
    host: u16,
    /// The stream of the copies of this round.
    copies: u16,
    /// The invalid pages of this round's victims. The round has ended if they fill a segment.
    invalid: u32,
    /// The host pages until the handover, after a round.
    left: u32,
}

impl TwoR {
    pub(super) fn streams(_: &TwoRConfig) -> u16 {
        2
    }

    pub(super) fn start(config: &TwoRConfig, drive: &DriveShape) -> TwoR {
        let segment_pages = drive.segment_pages;
        TwoR { segment_pages, handover: config.handover, host: 0, copies: 1, invalid: 0, left: 0 }
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.invalid >= self.segment_pages
    }
}

impl PlacementPolicy for TwoR {
    #[inline]
    fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
        StreamId(if context.copied { self.copies } else { self.host })
    }

    #[inline]
    fn copies_to(&self, _: SegmentId, _: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(self.copies))
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, _: &SegmentTable) {
        if self.left > 0 && !context.copied {
            self.left -= 1;
            if self.left == 0 {
                self.host = self.copies;
            }
        }
    }

    fn copied(&mut self, _: &[u32], _: SegmentId, _: StreamId, _: &SegmentTable) {}

    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        if self.has_ended() {
            (self.invalid, self.left) = (0, 0);
            if self.host == self.copies {
                self.copies = 1 - self.copies;
            }
        }
        self.invalid += self.segment_pages - segments.valid(victim);
        if self.has_ended() && self.handover {
            // A round begins with a new segment for the host, which the host fills first.
            self.left = self.segment_pages;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::victim::VictimConfig;

    const PAGES: u32 = 8;
    const VICTIM: SegmentId = SegmentId(3);

    struct Rig {
        policy: TwoR,
        table: SegmentTable,
    }

    impl Rig {
        fn new(handover: bool) -> Rig {
            let drive = DriveShape {
                logical_pages: 100,
                segments: 20,
                segment_pages: PAGES,
                reserve: 2,
                victim: VictimConfig::GREEDY,
            };
            let policy = TwoR::start(&TwoRConfig { handover }, &drive);
            Rig { policy, table: SegmentTable::new(20, PAGES, 2) }
        }

        /// Picks a victim with so many invalid pages, and returns the stream of its copies.
        fn pick(&mut self, invalid: u32) -> u16 {
            self.table.erased(VICTIM);
            self.table.invalidate_all(VICTIM);
            self.table.open(VICTIM, StreamId(0));
            self.table.append(VICTIM, PAGES - invalid);
            self.policy.picked(VICTIM, &self.table);
            let to = self.policy.copies_to(VICTIM, &self.table).unwrap();
            assert_eq!(self.policy.stream(&WriteContext::copy(1, VICTIM), &self.table), to);
            to.0
        }

        /// Writes host pages and returns their streams.
        fn write(&mut self, pages: u32) -> Vec<u16> {
            let context = WriteContext { lpn: 1, copied: false, hint: StreamId(0), segment: None };
            let mut write = || {
                let to = self.policy.stream(&context, &self.table);
                self.policy.written(&context, to, &self.table);
                to.0
            };
            (0..pages).map(|_| write()).collect()
        }
    }

    /// The rule: victims whose invalid pages do not fill a segment are one round. The host keeps its stream
    /// during a round and for one more segment, and then fills the last segment of the copies. The copies of
    /// the next round go to the other stream.
    #[test]
    fn the_host_fills_the_last_segment_of_a_round() {
        let mut rig = Rig::new(true);
        rig.table.open(VICTIM, StreamId(0));
        assert_eq!(rig.write(3), [0; 3]);
        assert_eq!((rig.pick(3), rig.write(20)), (1, vec![0; 20]), "the round has 3 of 8 pages");
        assert_eq!((rig.pick(4), rig.write(20)), (1, vec![0; 20]), "the round has 7 of 8 pages");
        assert_eq!(rig.pick(1), 1, "the round ends");
        // Copies are not host pages, so they do not bring the handover nearer.
        rig.policy.written(&WriteContext::copy(1, VICTIM), StreamId(1), &rig.table);
        assert_eq!(rig.write(PAGES + 4), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!((rig.pick(PAGES), rig.write(PAGES)), (0, vec![1; 8]), "a round of one victim");
        assert_eq!(rig.write(2), [0; 2]);
        assert_eq!((rig.pick(5), rig.write(1)), (1, vec![0]));
    }

    /// The rule: if a round begins before the host has reached the last segment of the copies, the copies go
    /// on in it.
    #[test]
    fn copies_go_on_if_the_host_is_slow() {
        let mut rig = Rig::new(true);
        rig.table.open(VICTIM, StreamId(0));
        assert_eq!((rig.pick(PAGES), rig.write(PAGES - 1)), (1, vec![0; 7]));
        assert_eq!((rig.pick(2), rig.write(5)), (1, vec![0; 5]));
    }

    /// The rule: without handover the host and the copies never share a segment.
    #[test]
    fn without_handover_the_regions_stay_apart() {
        let mut rig = Rig::new(false);
        rig.table.open(VICTIM, StreamId(0));
        for _ in 0..5 {
            assert_eq!((rig.pick(5), rig.write(3 * PAGES)), (1, vec![0; 24]));
        }
    }
}

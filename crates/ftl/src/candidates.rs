//! The candidates for collection: the sealed segments of a unit. A group has the segments that one stream
//! wrote. Segments of groups with a fixed size wait in queues, the oldest first. The victim policy picks
//! among all other segments.

use crate::placement::{PlacementPolicy, Placer, STREAMS_AT_MOST};
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use crate::victim::per_segment::PerSegment;
use crate::victim::{VictimConfig, VictimPolicy, Victims};
use std::collections::VecDeque;
use std::ops::Range;

/// The value for a segment that is in no queue.
const NO_QUEUE: u16 = STREAMS_AT_MOST;

#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    policy: VictimConfig,
    victims: Victims,
    /// The queues by number, each with the oldest segment first.
    queues: Vec<VecDeque<SegmentId>>,
    /// The number of the queue of each sealed segment.
    queue_of: PerSegment<u16>,
}

impl Candidates {
    pub(crate) fn new(
        policy: VictimConfig,
        segments: Range<u32>,
        segment_pages: u32,
        streams: u16,
    ) -> Candidates {
        Candidates {
            victims: policy.start(segments.clone(), segment_pages),
            policy,
            queues: vec![VecDeque::new(); usize::from(streams)],
            queue_of: PerSegment::filled(segments, NO_QUEUE),
        }
    }

    pub(crate) fn sealed(&mut self, segment: SegmentId, placer: &Placer, table: &SegmentTable) {
        let queue = placer.queue(table.stream(segment)).unwrap_or(NO_QUEUE);
        self.queue_of[segment] = queue;
        match self.queues.get_mut(usize::from(queue)) {
            Some(queue) => queue.push_back(segment),
            None => self.victims.sealed(segment, table),
        }
    }

    #[inline]
    pub(crate) fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.queue_of[segment] == NO_QUEUE {
            self.victims.invalidated(segment, table);
        }
    }

    /// Returns the oldest segment of a queue.
    pub(crate) fn oldest(&self, queue: u16) -> Option<SegmentId> {
        self.queues[usize::from(queue)].front().copied()
    }

    pub(crate) fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        match self.queues.get_mut(usize::from(self.queue_of[segment])) {
            Some(queue) => queue.retain(|sealed| *sealed != segment),
            None => self.victims.remove(segment, table),
        }
    }

    /// Picks the oldest segment of an overfull group, or else the victim policy's choice.
    pub(crate) fn pick(&mut self, placer: &Placer, table: &SegmentTable) -> Option<SegmentId> {
        let overfull = placer.overfull(table);
        // The queue may be empty, because an overfull group may have only its open segment.
        let queued = overfull.and_then(|queue| self.queues[usize::from(queue)].pop_front());
        queued.or_else(|| self.victims.pick(table)).or_else(|| {
            // All sealed segments may be in queues, so the longest queue gives its oldest segment.
            self.queues.iter_mut().max_by_key(|queue| queue.len())?.pop_front()
        })
    }

    /// Sorts every sealed segment into its queue or into the victim policy's index again, after the groups
    /// have changed.
    pub(crate) fn sort(&mut self, placer: &Placer, table: &SegmentTable) {
        // Builds the index again, because it cannot change the group of a segment.
        self.victims = self.policy.start(self.queue_of.segments(), table.segment_pages());
        self.queues.iter_mut().for_each(VecDeque::clear);
        let mut sealed: Vec<SegmentId> = self
            .queue_of
            .segments()
            .map(SegmentId)
            .filter(|id| table.state(*id) == SegmentState::Sealed)
            .collect();
        // Indexes expect segments in the order of sealing.
        sealed.sort_by_key(|id| table.sealed_at(*id));
        for segment in sealed {
            self.sealed(segment, placer, table);
        }
    }
}

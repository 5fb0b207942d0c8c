//! The sealed segments of a unit, among which collection chooses. Segments of groups with a size of their own wait in
//! queues. The victim policy chooses among all others.

use crate::placement::{PlacementPolicy, Placer, STREAMS_AT_MOST};
use crate::segments::{SegmentId, SegmentState, SegmentTable};
use crate::victim::per_segment::PerSegment;
use crate::victim::{VictimConfig, VictimPolicy, Victims};
use std::collections::VecDeque;
use std::ops::Range;

/// In no queue.
const NO_QUEUE: u16 = STREAMS_AT_MOST;

#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    policy: VictimConfig,
    victims: Victims,
    /// Oldest first, by the number that placement gives them.
    queues: Vec<VecDeque<SegmentId>>,
    /// The queue of each sealed segment.
    queue_of: PerSegment<u16>,
}

impl Candidates {
    pub fn new(policy: VictimConfig, segments: Range<u32>, segment_pages: u32, streams: u16) -> Candidates {
        Candidates {
            victims: policy.start(segments.clone(), segment_pages),
            policy,
            queues: vec![VecDeque::new(); usize::from(streams)],
            queue_of: PerSegment::filled(segments, NO_QUEUE),
        }
    }

    pub fn sealed(&mut self, segment: SegmentId, placer: &Placer, table: &SegmentTable) {
        let queue = placer.queue(table.stream(segment)).unwrap_or(NO_QUEUE);
        self.queue_of[segment] = queue;
        match self.queues.get_mut(usize::from(queue)) {
            Some(queue) => queue.push_back(segment),
            None => self.victims.sealed(segment, table),
        }
    }

    #[inline]
    pub fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.queue_of[segment] == NO_QUEUE {
            self.victims.invalidated(segment, table);
        }
    }

    /// The segment that is next in a queue.
    pub fn oldest(&self, queue: u16) -> Option<SegmentId> {
        self.queues[usize::from(queue)].front().copied()
    }

    pub fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        match self.queues.get_mut(usize::from(self.queue_of[segment])) {
            Some(queue) => queue.retain(|sealed| *sealed != segment),
            None => self.victims.remove(segment, table),
        }
    }

    /// The oldest segment of a group that is too large, else the victim policy's choice.
    pub fn pick(&mut self, placer: &Placer, table: &SegmentTable) -> Option<SegmentId> {
        let overfull = placer.overfull(table);
        // An overfull group may have nothing but its open segment.
        let queued = overfull.and_then(|queue| self.queues[usize::from(queue)].pop_front());
        queued.or_else(|| self.victims.pick(table)).or_else(|| {
            // Nothing is sealed but in queues: the longest gives.
            self.queues.iter_mut().max_by_key(|queue| queue.len())?.pop_front()
        })
    }

    /// Sorts every sealed segment anew: groups have changed.
    pub fn sort(&mut self, placer: &Placer, table: &SegmentTable) {
        // A policy's index cannot be told that a segment has changed its group, so it is built anew.
        self.victims = self.policy.start(self.queue_of.segments(), table.segment_pages());
        self.queues.iter_mut().for_each(VecDeque::clear);
        let mut sealed: Vec<SegmentId> = self
            .queue_of
            .segments()
            .map(SegmentId)
            .filter(|id| table.state(*id) == SegmentState::Sealed)
            .collect();
        // Indexes expect segments in the order in which they were sealed.
        sealed.sort_by_key(|id| table.sealed_at(*id));
        for segment in sealed {
            self.sealed(segment, placer, table);
        }
    }
}

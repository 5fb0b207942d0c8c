//! Rare changes of pages that are already written: placement merges its groups, or a power cut rolls writes
//! back.

use super::Ftl;
use super::unit::Collection;
use crate::placement::PlacementPolicy;
use crate::segments::{SegmentId, SegmentState};
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Moves every segment to the new group of its stream. Seals the open segments of groups that no longer
    /// exist.
    pub(super) fn regroup(&mut self, groups: &[StreamId]) {
        for (stream, group) in groups.iter().enumerate() {
            if stream != usize::from(group.0) {
                let of_stream = self.open.iter_mut().skip(stream).step_by(usize::from(self.streams));
                of_stream.filter_map(Option::take).for_each(|open| self.segments.seal(open));
            }
        }
        // The map does not change: segments change their group, and pages keep their physical pages.
        self.segments.regroup(groups);
        self.sort_candidates();
        // An overfull group passes its oldest segments on to the next group as a whole, without copies.
        let mut passed_on = false;
        while let Some(queue) = self.placer.overfull(&self.segments)
            && let Some(segment) = self.oldest_in(queue)
            && let Some(group) = self.placer.copies_to(segment, &self.segments)
            // Stops at the last group, which would pass its segments to itself, so that the loop would never
            // end.
            && group != self.segments.stream(segment)
        {
            let unit = self.unit_of(segment).0 as usize;
            self.units[unit].candidates.remove(segment, &self.segments);
            self.segments.move_to(segment, group);
            self.units[unit].candidates.sealed(segment, &self.placer, &self.segments);
            passed_on = true;
        }
        if passed_on {
            // Sorts the queues by age again, since each passed segment entered its queue as the youngest.
            self.sort_candidates();
        }
    }

    fn sort_candidates(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.candidates.sort(&self.placer, &self.segments));
    }

    /// Returns the oldest segment of a queue, over all units.
    fn oldest_in(&self, queue: u16) -> Option<SegmentId> {
        let oldest = self.units.iter().filter_map(|unit| unit.candidates.oldest(queue));
        oldest.min_by_key(|segment| self.segments.sealed_at(*segment))
    }

    /// Seals half-collected victims again, after a power cut.
    pub fn give_up_collection(&mut self) {
        self.idle = false;
        for unit in 0..self.units.len() {
            self.units[unit].urgent = false;
            if let Some(victim) = self.units[unit].erasing.take() {
                self.seal(victim);
            }
            if let Some(Collection { victim, .. }) = self.units[unit].collection.take() {
                // The victim's valid pages are all still in it; the pages that had moved are invalid in it.
                self.seal(victim);
            }
        }
    }

    /// Maps the logical page at `ppn` back to its previous physical page `old` after a power cut, if the
    /// logical page is still at `ppn`.
    pub fn take_back(&mut self, ppn: Ppn, old: Option<Ppn>) {
        if !self.map.is_valid(ppn) {
            return;
        }
        let lpn = self.map.owner(ppn);
        let Some(old) = old else { return self.discard(lpn) };
        if self.map.is_valid(old) {
            // Other logical pages share `old`, so the page becomes one of the sharers.
            self.discard(lpn);
            return self.map.share(lpn, old);
        }
        self.map.relocate(ppn, old);
        self.invalidated(ppn);
        let segment = self.segment(old);
        let is_sealed = self.segments.state(segment) == SegmentState::Sealed;
        // Removes the segment and inserts it again, because an index can only decrease a valid count.
        if is_sealed {
            let unit = self.unit_of(segment).0 as usize;
            self.units[unit].candidates.remove(segment, &self.segments);
        }
        if self.has_units() {
            let unit = self.unit_of(segment);
            self.of_mut(unit).valid += 1;
        }
        self.segments.revive(segment);
        if is_sealed {
            // Counts the segment as sealed now, because an index by age accepts no earlier time.
            self.seal(segment);
        }
    }
}

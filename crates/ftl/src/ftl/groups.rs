//! Changes of pages that are already written, which are rare: placement changes its groups, or a power cut takes writes
//! back.

use super::{Collection, Ftl};
use crate::placement::PlacementPolicy;
use crate::segments::{SegmentId, SegmentState};
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Gives every segment the group that placement has for those of its group. Append points of groups that
    /// are no more are sealed as they are.
    pub(super) fn regroup(&mut self, groups: &[StreamId]) {
        for (stream, group) in groups.iter().enumerate() {
            if stream != usize::from(group.0) {
                let of_stream = self.open.iter_mut().skip(stream).step_by(usize::from(self.streams));
                of_stream.filter_map(Option::take).for_each(|open| self.segments.seal(open));
            }
        }
        // The mapping stays as it is: segments change their group, not their pages.
        self.segments.regroup(groups);
        self.sort_candidates();
        // What is now too large passes its oldest segments on as they are: nothing need be copied for that.
        let mut passed_on = false;
        while let Some(queue) = self.placer.overfull(&self.segments)
            && let Some(segment) = self.oldest_in(queue)
            && let Some(group) = self.placer.copies_to(segment, &self.segments)
            // The last group hands its segments to itself, and the loop would never end.
            && group != self.segments.stream(segment)
        {
            let unit = self.unit_of(segment).0 as usize;
            self.units[unit].candidates.remove(segment, &self.segments);
            self.segments.move_to(segment, group);
            self.units[unit].candidates.sealed(segment, &self.placer, &self.segments);
            passed_on = true;
        }
        if passed_on {
            // Each of them entered its queue as the youngest, so the queues are put in order of age again.
            self.sort_candidates();
        }
    }

    fn sort_candidates(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.candidates.sort(&self.placer, &self.segments));
    }

    /// The segment of any unit that is next in a queue.
    fn oldest_in(&self, queue: u16) -> Option<SegmentId> {
        let oldest = self.units.iter().filter_map(|unit| unit.candidates.oldest(queue));
        oldest.min_by_key(|segment| self.segments.sealed_at(*segment))
    }

    /// Puts victims back among the full segments, half collected as they are: after a power cut.
    pub fn give_up_collection(&mut self) {
        self.idle = false;
        for unit in 0..self.units.len() {
            self.units[unit].urgent = false;
            if let Some(victim) = self.units[unit].erasing.take() {
                self.seal(victim);
            }
            if let Some(Collection { victim, .. }) = self.units[unit].collection.take() {
                // Its valid pages are all still there: those that had moved are garbage in it.
                self.seal(victim);
            }
        }
    }

    /// Gives the logical page at `ppn`, if it is still there, its place before: after a power cut.
    pub fn take_back(&mut self, ppn: Ppn, old: Option<Ppn>) {
        if !self.map.is_valid(ppn) {
            return;
        }
        let lpn = self.map.owner(ppn);
        let Some(old) = old else { return self.discard(lpn) };
        if self.map.is_valid(old) {
            // Others share the old place.
            self.discard(lpn);
            return self.map.share(lpn, old);
        }
        self.map.relocate(ppn, old);
        self.invalidated(ppn);
        let segment = self.segment(old);
        let is_sealed = self.segments.state(segment) == SegmentState::Sealed;
        // An index knows of falling counts only, so the segment leaves it and comes back.
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
            // The segment counts as sealed just now: an index by age takes no segment with an earlier time.
            self.seal(segment);
        }
    }
}

//! Rare changes to what is already written: placement changes its groups, a power cut takes writes back.

use super::{Collection, Ftl};
use crate::placement::PlacementPolicy;
use crate::segments::SegmentState;
use fulgurite_base::{Ppn, StreamId};

impl Ftl {
    /// Gives every segment the group that placement has for those of its group. Append points of groups that
    /// are no more are sealed as they are.
    pub(super) fn regroup(&mut self, groups: &[StreamId]) {
        for (stream, group) in groups.iter().enumerate() {
            if stream != usize::from(group.0)
                && let Some(open) = self.open[stream].take()
            {
                self.segments.seal(open);
            }
        }
        // The mapping stays as it is: segments change their group, not their pages.
        self.segments.regroup(groups);
        self.candidates.sort(&self.placer, &self.segments);
        // What is now too large passes its oldest segments on as they are: nothing need be copied for that.
        let mut passed_on = false;
        while let Some(queue) = self.placer.overfull(&self.segments)
            && let Some(segment) = self.candidates.oldest(queue)
            && let Some(group) = self.placer.copies_to(segment, &self.segments)
            // The last group hands its segments to itself, and the loop would never end.
            && group != self.segments.stream(segment)
        {
            self.candidates.remove(segment, &self.segments);
            self.segments.move_to(segment, group);
            self.candidates.sealed(segment, &self.placer, &self.segments);
            passed_on = true;
        }
        if passed_on {
            // Each of them entered its queue as the youngest, so the queues are put in order of age again.
            self.candidates.sort(&self.placer, &self.segments);
        }
    }

    /// Puts the victim back among the full segments, half collected as it is: after a power cut.
    pub fn give_up_collection(&mut self) {
        (self.idle, self.urgent) = (false, false);
        let Some(Collection { victim, .. }) = self.collection.take() else { return };
        // Its valid pages are all still there: those that had moved are garbage in it.
        self.seal(victim);
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
            self.candidates.remove(segment, &self.segments);
        }
        self.segments.revive(segment);
        if is_sealed {
            // The segment counts as sealed just now: an index by age takes no segment with an earlier time.
            self.seal(segment);
        }
    }
}

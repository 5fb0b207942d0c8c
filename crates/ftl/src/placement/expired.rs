//! Victims by age: for policies that collect the segments of a group only after a time.

use crate::{SegmentId, SegmentState, SegmentTable};

/// Returns the group that gives up its oldest segment; `None` if the victim policy picks. `bound` returns the age
/// at which a segment of a group expires, in page writes since it was opened, and `None` for a group that the
/// victim policy collects.
///
/// The lowest group with an expired segment is the first. If no segment has expired, and the victim policy can
/// gain no space, the group is chosen whose oldest segment has the fewest valid pages; if all pages of these are
/// valid, the group with the most invalid pages. It takes O(groups · segments).
pub(super) fn expired(segments: &SegmentTable, bound: impl Fn(u16) -> Option<u64>) -> Option<u16> {
    let sealed = || {
        let all = (0..segments.len()).map(SegmentId);
        all.filter(|segment| segments.state(*segment) == SegmentState::Sealed)
    };
    let group = |segment: SegmentId| segments.stream(segment).0;
    let is_expired = |segment: &SegmentId| {
        bound(group(*segment)).is_some_and(|bound| segments.now() - segments.opened_at(*segment) > bound)
    };
    let gains = |segment: SegmentId| segments.valid(segment) < segments.segment_pages();
    sealed().filter(is_expired).map(group).min().or_else(|| {
        if sealed().any(|segment| bound(group(segment)).is_none() && gains(segment)) {
            return None;
        }
        let members = |of: u16| sealed().filter(move |segment| group(*segment) == of);
        let oldest = |of: u16| members(of).min_by_key(|segment| segments.sealed_at(*segment));
        let groups = 0..=sealed().map(group).max()?;
        let with_bound = || groups.clone().filter(|group| bound(*group).is_some());
        let fewest = with_bound().filter_map(oldest).min_by_key(|segment| segments.valid(*segment))?;
        if gains(fewest) {
            return Some(group(fewest));
        }
        // The group gets to its invalid pages in the end. One without any would copy its own pages for ever.
        let invalid =
            |of: u16| members(of).map(|id| segments.segment_pages() - segments.valid(id)).sum::<u32>();
        with_bound().max_by_key(|group| invalid(*group))
    })
}

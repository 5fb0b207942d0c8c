//! DAC: by update frequency. A page moves to the next hotter group whenever the host writes it again and
//! to the next colder one whenever it is copied.
//!
//! "Using data clustering to improve cleaning performance for flash memory" (Chiang, Lee, Chang, 1999); CAT ("Cost,
//! age and times", 1999) is the cleaner that goes with it. *Ambiguities.* The original promotes only pages that
//! were written again within a time that it does not give: here every rewrite promotes, as where others
//! rebuilt it (SepBIT, FAST 2022). A page's first write goes to the coldest group. The group is that of the
//! segment which holds the page, so no memory is needed. O(1).

use super::{PlacementPolicy, Shape, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;

/// The number of groups; the coldest is 0.
pub type Options = super::Groups<6>;

/// A ladder of groups.
#[derive(Clone, Debug)]
pub struct Dac(u16);

impl Dac {
    pub(super) fn new(options: Options, _: &Shape) -> Dac {
        Dac(options.groups)
    }
}

impl PlacementPolicy for Dac {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let Some(segment) = context.segment else { return StreamId(0) };
        let group = segments.stream(segment).0;
        StreamId(if context.copied { group.saturating_sub(1) } else { (group + 1).min(self.0 - 1) })
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(StreamId(segments.stream(victim).0.saturating_sub(1)))
    }
}
